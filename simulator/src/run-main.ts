/** What ends a process of the simulator: its exit code, once all output is written. */
import { Failure } from "@blindrelay/protocol/command-line";
import { exitCodeOf } from "./cli.ts";

/** Runs a command and ends the process with the code that it returns. */
export async function runMain(command: () => number | Promise<number>): Promise<void> {
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
    exitCode = await command();
  } catch (error) {
    exitCode = exitCodeOf(error);
  }
  // Output is flushed first; whatever a scenario's file left running does not delay the exit.
  process.stdout.write("", () => {
    const { errored } = process.stdout;
    if (errored !== null) endUnwritten(errored);
    process.stderr.write("", () => process.exit(exitCode));
  });
}
