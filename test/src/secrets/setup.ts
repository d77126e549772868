/**
 * Vitest set-up, run in every test file: what this process and those it spawns say on standard error
 * and in their logs is searched for every secret made meanwhile, when the file is done.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect } from "vitest";
import { takeLeaks } from "./judge.ts";
import { listen } from "./witness.ts";

const folder = mkdtempSync(join(tmpdir(), "blindrelay-secrets-"));
// Spawned processes load ../nonces/register.mjs, which finds the folder here.
process.env.BLINDRELAY_TEST_SECRETS = folder;
listen();

afterAll(() => {
  const leaks = takeLeaks(folder);
  rmSync(folder, { recursive: true, force: true });
  expect(leaks, "a secret stands in a log or on standard error").toEqual([]);
});
