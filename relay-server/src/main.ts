#!/usr/bin/env node
/**
 * `blindrelay-server`: the commands of docs/commands.md. Answers go to standard output, all else to
 * standard error.
 */
import { enableCompileCache } from "node:module";

// Much of a start is the reading of its sources.
enableCompileCache();

const { CommanderError } = await import("commander");
const { EXIT, Failure } = await import("./failure.ts");
const { makeProgram } = await import("./program.ts");

const fail = (error: unknown): never => {
  const failure =
    error instanceof Failure
      ? error
      : new Failure("fault", `a bug in blindrelay: ${(error as Error)?.stack ?? error}`);
  process.stderr.write(`blindrelay-server: ${failure.message}\n`);
  process.exit(failure.exitCode);
};

process.on("uncaughtException", fail);
try {
  await makeProgram().parseAsync();
  process.exit(); // with the code that a command set, whatever a dependency may have left open
} catch (error) {
  if (error instanceof CommanderError) process.exit(error.exitCode === 0 ? 0 : EXIT.usage);
  fail(error);
}
