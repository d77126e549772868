/**
 * One call: from the queue, through the session that carries it, to its single outcome. It is
 * settled exactly once; its deadline does not depend on sessions and links.
 */
import type { CallError } from "../errors.ts";
import type { Outcome } from "./jsonrpc.ts";
import type { Call } from "./session.ts";

/** Whether repeating it cannot execute it twice. */
export const isSafe = (call: Call): boolean => call.idempotent || call.session === null;

/** An outcome that is an error. */
export const failed = (error: CallError): Outcome => ({ ok: false, error });
