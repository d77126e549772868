/**
 * Vitest set-up, run in every test file: each test is a scope of its own for the recorder of this
 * process, and what spawned processes sealed is put together and judged when the file is done.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, beforeEach, expect } from "vitest";
import { processRecorder } from "./recorder.ts";
import { spawnedViolations } from "./spawned.ts";

const folder = mkdtempSync(join(tmpdir(), "blindrelay-nonces-"));
process.env.BLINDRELAY_TEST_NONCES = folder;
const loader = `--import=${new URL("register.mjs", import.meta.url).href}`;
if (!process.env.NODE_OPTIONS?.includes(loader)) {
  process.env.NODE_OPTIONS = `${process.env.NODE_OPTIONS ?? ""} ${loader}`.trim();
}

const HINT =
  "a test that makes several worlds with the same secrets starts a scope for each: processRecorder().startScope()";

beforeEach(() => {
  processRecorder().startScope();
});

afterEach(() => {
  const violations = processRecorder().takeViolations();
  expect(violations, HINT).toEqual([]);
});

afterAll(() => {
  const violations = spawnedViolations(folder);
  rmSync(folder, { recursive: true, force: true });
  expect(violations).toEqual([]);
});
