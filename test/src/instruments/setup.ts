/**
 * Vitest set-up, run in every test file: no key and nonce may seal two different plaintexts, and no
 * secret that was created may appear in a log or on standard error. Both apply to this process,
 * where each test is its own scope for the nonces, and together with all processes that the file
 * started, which are checked at its end.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, beforeEach, expect } from "vitest";
import { childEnvironment, RECORDS, RUN } from "./child-environment.ts";
import { watchChildProcesses } from "./child-processes.ts";
import { spawnedViolations } from "./nonces/judge.ts";
import { processRecorder } from "./nonces/recorder.ts";
import { takeLeaks } from "./secrets/judge.ts";
import { listen } from "./secrets/witness.ts";

// In the run's folder: a file whose tests are all left out never removes its own.
const folder = mkdtempSync(join(process.env[RUN] ?? tmpdir(), "records-"));
process.env[RECORDS] = folder;
Object.assign(process.env, childEnvironment(process.env));
watchChildProcesses();
listen();

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
  const leaks = takeLeaks(folder);
  rmSync(folder, { recursive: true, force: true });
  expect(violations).toEqual([]);
  expect(leaks, "a secret is in a log or on standard error").toEqual([]);
});
