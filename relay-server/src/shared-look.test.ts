import { expect, test } from "vitest";
import { sharedLook } from "./shared-look.ts";

test("callers share one look, and its answer for 200 ms", async () => {
  let [looks, nowMs] = [0, 0];
  const begun: ((answer: number) => void)[] = [];
  const look = sharedLook(
    () => new Promise<number>((resolve) => begun.push(() => resolve(++looks))),
    () => nowMs,
  );
  const asked = Array.from({ length: 100 }, look);
  expect(begun).toHaveLength(1);
  begun[0]?.(0);
  expect(new Set(await Promise.all(asked))).toEqual(new Set([1]));
  nowMs = 199;
  expect(await look()).toBe(1);
  nowMs = 200;
  const later = look();
  expect(begun).toHaveLength(2);
  begun[1]?.(0);
  expect(await later).toBe(2);
});

test("a look that fails is not remembered", async () => {
  const answers = [Promise.reject(new Error("away")), Promise.resolve("here")];
  const look = sharedLook(
    () => answers.shift() as Promise<string>,
    () => 0,
  );
  await expect(look()).rejects.toThrow("away");
  expect(await look()).toBe("here");
});
