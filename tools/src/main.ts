#!/usr/bin/env node
/**
 * `blindrelay`: the commands of docs/commands.md. Results go to standard output, everything else to
 * standard error.
 */
import { enableCompileCache } from "node:module";

// The kernel drops what the first process of a container has no handler for.
if (process.pid === 1) {
  process.once("SIGINT", () => process.exit(130));
  process.once("SIGTERM", () => process.exit(143));
}

/** As the relay's log waits. */
const LAST_WORDS_MS = 1000;

// Reading its sources is most of a command's start.
enableCompileCache();
// Node's warnings about its own features (such as erasing types) are of no use to users.
process.removeAllListeners("warning");

const { Failure, joinKeys } = await import("@blindrelay/protocol/command-line");
const { exitCodeOf, makeCli } = await import("./cli.ts");
const { wasInterrupted } = await import("./base/interrupted.ts");
const { isClaimed } = await import("./base/uncaught.ts");
// A closed reader (`… | head`) ends the command, as usual; a full disk does not.
const endUnwritten = (error: NodeJS.ErrnoException): never => {
  if (error.code === "EPIPE") process.exit(0);
  const why = `the answer could not be written: ${error.message}`;
  process.exit(exitCodeOf(new Failure("fault", why)));
};
process.stdout.on("error", endUnwritten);
// If the reader of the log is gone, only logging ends: saying so would fail in the same way.
process.stderr.on("error", () => undefined);
// Errors outside of every command's own code; those from a device program's timers and promises are
// claimed.
process.on("uncaughtException", (error) => {
  if (!isClaimed(error)) process.exit(exitCodeOf(error));
});
let exitCode = 0;
try {
  const words = joinKeys(process.argv);
  await (await makeCli(process.env, words.slice(2))).parseAsync(words);
} catch (error) {
  exitCode = exitCodeOf(error);
}
// Pending output is flushed first. A reader that takes none of it must not keep alive what a signal
// has ended.
if (wasInterrupted()) setTimeout(() => process.exit(exitCode), LAST_WORDS_MS);
// Device programs may have timers.
process.stdout.write("", () => {
  const { errored } = process.stdout;
  if (errored !== null) endUnwritten(errored);
  process.stderr.write("", () => process.exit(exitCode));
});
