#!/usr/bin/env node
/**
 * `blindrelay-server`: the commands of docs/commands.md. Results go to standard output, everything
 * else to standard error.
 */
import { enableCompileCache } from "node:module";

// The kernel drops what the first process of a container has no handler for.
if (process.pid === 1) {
  process.once("SIGINT", () => process.exit(130));
  process.once("SIGTERM", () => process.exit(143));
}

// Reading its sources is a large part of a start.
enableCompileCache();

const { CommanderError } = await import("commander");
const { asFailure, EXIT, Failure, joinKeys } = await import("@blindrelay/protocol/command-line");
const { tidyVariables } = await import("./settings/environment.ts");
tidyVariables(process.env);
const { makeCli } = await import("./cli.ts");
const { unavailability } = await import("./store/unavailable.ts");

const failureOf = (thrown: unknown) => {
  const error = asFailure(thrown);
  if (error instanceof Failure) return error;
  const cause = unavailability(error);
  return cause === null
    ? new Failure("fault", `a bug in blindrelay: ${(error as Error)?.stack ?? error}`)
    : new Failure("unreachable", cause.message, error);
};

const fail = (error: unknown): never => {
  const failure = failureOf(error);
  process.stderr.write(`blindrelay-server: ${failure.message}\n`);
  process.exit(failure.exitCode);
};

process.on("uncaughtException", fail);
// A closed reader (`… | head`) ends the command, as usual; a full disk does not.
const endUnwritten = (error: NodeJS.ErrnoException): never =>
  error.code === "EPIPE"
    ? process.exit(0)
    : fail(new Failure("fault", `the answer could not be written: ${error.message}`));
process.stdout.on("error", endUnwritten);
try {
  await makeCli().parseAsync(joinKeys(process.argv));
} catch (error) {
  if (!(error instanceof CommanderError)) fail(error);
  else if (error.exitCode !== 0) process.exit(EXIT.usage);
}
process.stdout.write("", () => {
  const { errored } = process.stdout;
  if (errored !== null) endUnwritten(errored);
  process.exit(); // whatever a dependency may have left open
});
