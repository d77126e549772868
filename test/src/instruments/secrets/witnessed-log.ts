/**
 * Stands in for the relay's log wherever tests run (../stand-ins.ts): it logs as it was asked to,
 * and tells the witness everything down to `trace`, so that a silent relay is listened to as well.
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
