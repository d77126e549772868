#!/usr/bin/env node
/**
 * `blindrelay-sim`: the commands of docs/commands.md. Answers go to standard output, everything
 * else to standard error.
 */
import { enableCompileCache } from "node:module";

enableCompileCache();
// Suppresses Node's warnings about its own features, such as type stripping.
process.removeAllListeners("warning");

const { exitCodeOf, runCli } = await import("./cli.ts");
const { Failure } = await import("@blindrelay/protocol/command-line");
// A reader that left (`… | head`) is not a failure, and hides none: the exit code is the same.
const endUnwritten = (error: NodeJS.ErrnoException): void => {
  if (error.code === "EPIPE") return;
  const why = `the answer could not be written: ${error.message}`;
  process.exit(exitCodeOf(new Failure("fault", why)));
};
process.stdout.on("error", endUnwritten);
process.stderr.on("error", () => undefined); // there is nowhere left to report it
let exitCode: number;
try {
  exitCode = await runCli();
} catch (error) {
  exitCode = exitCodeOf(error);
}
// Output is flushed first; whatever a scenario's file left running does not delay the exit.
process.stdout.write("", () => {
  const { errored } = process.stdout;
  if (errored !== null) endUnwritten(errored);
  process.stderr.write("", () => process.exit(exitCode));
});
