/**
 * One call: from the queue, through the session that carries it, to its single outcome. It is
 * settled exactly once; the deadline is its own, whatever sessions and links come and go.
 */
import type { CallError } from "../errors.ts";
import type { Outcome } from "./jsonrpc.ts";
import type { Call } from "./session.ts";

/** Whether making it again cannot execute it twice. */
export const isSafe = (call: Call): boolean => call.idempotent || call.session === null;

/** An outcome that is an error. */
export const failed = (error: CallError): Outcome => ({ ok: false, error });
