/**
 * Vitest's global set-up: whatever the tests start ends with them, even if vitest itself is killed.
 * Everything that a test starts inherits the name of the run (child-environment.ts); the reaper is
 * a separate process that waits for the end of its standard input, which is the end of vitest, and
 * then ends every process with that name. The name is the path of the run's folder, which it
 * removes. Without /proc (macOS, Windows) it ends none.
 */
import { spawn } from "node:child_process";
import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { RUN } from "./child-environment.ts";

export default (): (() => Promise<void>) => {
  const run = mkdtempSync(join(tmpdir(), "blindrelay-run-"));
  const reaper = spawn(process.execPath, [join(import.meta.dirname, "reap.mjs"), run], {
    stdio: ["pipe", "ignore", "inherit"],
    // In a group of its own, so that a Ctrl-C for the tests does not end it first.
    detached: true,
  });
  process.env[RUN] = run;
  reaper.unref();
  return () =>
    new Promise((resolve) => {
      reaper.ref();
      reaper.once("exit", () => resolve());
      reaper.stdin.end();
    });
};
