#!/usr/bin/env node
/**
 * `blindrelay`: the commands of docs/commands.md. Answers go to standard output, all else to
 * standard error.
 */
import { enableCompileCache } from "node:module";

// A command's start is mostly the reading of its sources.
enableCompileCache();
// Node's remarks on its own features (erasing types is one) are nothing to who flashes a board.
process.removeAllListeners("warning");

const { Failure } = await import("./failure.ts");
const { exitCodeOf, makeProgram } = await import("./program.ts");
const { isClaimed } = await import("./uncaught.ts");
// A closed reader (`… | head`) ends the command, as usual; a full disk does not.
const endUnwritten = (error: NodeJS.ErrnoException): never => {
  if (error.code === "EPIPE") process.exit(0);
  const why = `the answer could not be written: ${error.message}`;
  process.exit(exitCodeOf(new Failure("fault", why)));
};
process.stdout.on("error", endUnwritten);
// What throws outside of every command's own code; a device program's timers and promises are
// claimed.
process.on("uncaughtException", (error) => {
  if (!isClaimed(error)) process.exit(exitCodeOf(error));
});
let exitCode = 0;
try {
  await (await makeProgram(process.env, process.argv.slice(2))).parseAsync();
} catch (error) {
  exitCode = exitCodeOf(error);
}
// Device programs may hold timers; pending output is flushed first.
process.stdout.write("", () => {
  const { errored } = process.stdout;
  if (errored !== null) endUnwritten(errored);
  process.stderr.write("", () => process.exit(exitCode));
});
