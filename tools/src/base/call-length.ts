/**
 * A call that is too long for its agent is refused here, as the agent refuses it: a board cannot
 * answer a message that it has no memory to read.
 */
import { type Agent, CallError, type CallOptions } from "@blindrelay/client-sdk";
import { encodeJson } from "@blindrelay/protocol/crypto";

/** Every agent accepts this much. */
const SHORTEST_MAX = 384;
const HANDLER_FAILED = -32000;

/** Asks the agent for its limit before a long call; rejects with a CallError if that is smaller. */
export const checkCallLength = async (
  agent: Pick<Agent, "call">,
  method: string,
  params: object | undefined,
  options: CallOptions,
): Promise<void> => {
  // In a new session nothing expires later than that.
  const expires = Math.floor(options.timeoutMs ?? 0);
  const { length } = encodeJson({ jsonrpc: "2.0", id: 1, expires, method, params }) ?? "";
  if (length <= SHORTEST_MAX) return;
  const max = await maxPlaintextOf(agent, options);
  if (max === null || length <= max) return;
  const message = `the call has ${length} bytes, at most ${max} fit`;
  throw new CallError("REMOTE", message, { remote: { code: HANDLER_FAILED, message } });
};

/** Null if it reports none, or if its answer does not fit its own limit. */
const maxPlaintextOf = async (
  agent: Pick<Agent, "call">,
  options: CallOptions,
): Promise<number | null> => {
  try {
    const info = await agent.call("system.info", undefined, { ...options, idempotent: true });
    const { max_plaintext: max } = (info ?? {}) as { max_plaintext?: unknown };
    return typeof max === "number" ? max : null;
  } catch (error) {
    if (error instanceof CallError && error.remote !== undefined) return null;
    throw error;
  }
};
