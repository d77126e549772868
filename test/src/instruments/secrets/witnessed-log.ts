/**
 * Replaces the relay's log in all tests (../stand-ins.ts): it logs as configured, and passes
 * everything down to `trace` to the witness, so that a silent relay is recorded as well.
 */
import { createLog as plain, standardError } from "../../../../relay-server/src/log.ts";
import { noteSaid } from "./witness.ts";

export * from "../../../../relay-server/src/log.ts";

const LEVELS: Readonly<Record<string, number>> = {
  trace: 10,
  debug: 20,
  info: 30,
  warn: 40,
  error: 50,
};

export const createLog: typeof plain = (level, out = standardError()) => {
  const least = LEVELS[level] ?? Number.POSITIVE_INFINITY;
  return plain("trace", {
    write: (line) => {
      noteSaid(line);
      if (JSON.parse(line).level >= least) out.write(line);
    },
  });
};
