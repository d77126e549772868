import { chmodSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { makeToken, tokenProblem } from "@blindrelay/protocol";
import type { Failure } from "@blindrelay/protocol/command-line";
import { afterEach, beforeEach, expect, it } from "vitest";
import { makePushKey, readPushKey } from "./push-key.ts";

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "blindrelay-push-key-"));
});
afterEach(() => rmSync(folder, { recursive: true }));

const failureOf = (fn: () => unknown): Failure => {
  try {
    fn();
  } catch (error) {
    return error as Failure;
  }
  throw new Error("it did not fail");
};

it("is made once, for its owner alone, and read as it was made", () => {
  const file = join(folder, "pumps.key");
  const key = makePushKey(file);
  expect(tokenProblem(key, "push")).toBe(null);
  expect(statSync(file).mode & 0o777).toBe(0o600);
  expect(readFileSync(file, "utf8")).toBe(`${key}\n`);
  chmodSync(file, 0o440);
  expect([makePushKey(file), readPushKey(file)]).toEqual([key, key]);
  expect(makePushKey(join(folder, "other.key"))).not.toBe(key);
});

it("is not made where there is no folder, nor read where there is no file", () => {
  const file = join(folder, "no/pumps.key");
  for (const fn of [makePushKey, readPushKey]) {
    const failure = failureOf(() => fn(file));
    expect([failure.exitCode, failure.message]).toEqual([2, expect.stringContaining(file)]);
  }
});

it.each([
  ["an end-to-end secret", makeToken("e2e", new Uint8Array(32)), "got an end-to-end secret (e2e_)"],
  ["mistyped", `${makeToken("push", new Uint8Array(32)).slice(0, -1)}_`, "checksum"],
  ["nothing", "\n", "expected a push key (push_)"],
])("is refused without being shown if it is %s", (_what, text, reason) => {
  const file = join(folder, "wrong.key");
  writeFileSync(file, text);
  for (const fn of [makePushKey, readPushKey]) {
    const failure = failureOf(() => fn(file));
    expect([failure.exitCode, failure.message]).toEqual([5, expect.stringContaining(reason)]);
    if (text.trim() !== "") expect(failure.message).not.toContain(text.trim());
  }
});
