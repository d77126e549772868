/**
 * Stands in for the relay's log wherever tests run (../stand-ins.ts): it logs as it was asked to,
 * and tells the witness everything down to `trace`, so that a silent relay is listened to as well.
 */
import { writeSync } from "node:fs";
import { createLog as plain } from "../../../../relay-server/src/log.ts";
import { noteSaid } from "./witness.ts";

const LEVELS: Readonly<Record<string, number>> = {
  trace: 10,
  debug: 20,
  info: 30,
  warn: 40,
  error: 50,
};

export const createLog: typeof plain = (level, out) => {
  const least = LEVELS[level] ?? Number.POSITIVE_INFINITY;
  return plain("trace", {
    write: (line) => {
      noteSaid(line);
      if (JSON.parse(line).level < least) return;
      if (out === undefined) writeSync(2, line);
      else out.write(line);
    },
  });
};
