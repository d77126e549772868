import { expect, test } from "vitest";
import { sharedLook } from "./shared-look.ts";

test("callers at the same time share one look", async () => {
  const begun: (() => void)[] = [];
  const look = sharedLook(
    () => new Promise<number>((resolve) => begun.push(() => resolve(7))),
    () => 0,
  );
  const asked = Array.from({ length: 100 }, look);
  expect(begun).toHaveLength(1);
  begun[0]?.();
  expect(new Set(await Promise.all(asked))).toEqual(new Set([7]));
});

test("who asks seldom gets a new look, and a flood ten a second, of which no answer is old", async () => {
  let [looks, nowMs] = [0, 0];
  const look = sharedLook(
    async () => {
      looks += 1;
      return nowMs;
    },
    () => nowMs,
  );
  for (; nowMs < 10_000; nowMs += 500) expect(await look()).toBe(nowMs);
  looks = 0;
  const ages: number[] = [];
  for (; nowMs < 20_000; nowMs += 1) ages.push(nowMs - (await look()));
  expect(looks).toBeLessThanOrEqual(20 + 10 * 10 + 1);
  expect(Math.max(...ages)).toBeLessThan(200);
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
