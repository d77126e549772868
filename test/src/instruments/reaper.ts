/**
 * Vitest's global set-up: whatever the tests start ends with them, also where vitest itself is
 * killed. Everything that a test starts inherits the name of the run (child-environment.ts); the
 * reaper is its own process that waits for the end of its standard input, which is the end of
 * vitest, and then ends every process of that name. Where there is no /proc (macOS, Windows) it
 * does nothing.
 */
import { spawn } from "node:child_process";
import { RUN } from "./child-environment.ts";

export default (): (() => Promise<void>) => {
  const run = `${process.pid}-${Date.now()}`;
  const reaper = spawn(process.execPath, [new URL("reap.mjs", import.meta.url).pathname, run], {
    stdio: ["pipe", "ignore", "inherit"],
    // Of its own group, so that a Ctrl-C that is meant for the tests does not end it first.
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
