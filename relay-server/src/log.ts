/**
 * The relay's log: JSON lines on standard error, which leaves standard output to answers. Callers
 * log identifiers, addresses and times, never a token, password or code; `redact` is the second
 * line of defence for fields that hold one by name.
 */
import { type DestinationStream, destination, type Logger, pino } from "pino";

const SECRET_FIELDS = [
  "authorization",
  "password",
  "current_password",
  "totp_code",
  "api_token",
  "session_token",
  "access_token",
  "secret",
];

/** `out`: instead of standard error. */
export const createLog = (level: string, out: DestinationStream = destination(2)): Logger =>
  pino(
    {
      level,
      base: null,
      timestamp: pino.stdTimeFunctions.isoTime,
      redact: SECRET_FIELDS.flatMap((field) => [field, `*.${field}`, `*.*.${field}`]),
    },
    out,
  );
