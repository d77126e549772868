/**
 * The steps of a new end-to-end secret over the air (`system.rekey`, protocol/README.md). Whoever
 * takes them keeps both secrets from before `sendSecret` until the agent has answered under the new
 * one.
 */
import { isObject, own } from "@blindrelay/protocol/crypto";
import type { Agent } from "./client.ts";
import { CallError } from "./errors.ts";

export const REKEY_METHOD = "system.rekey";
/** How long an agent may take to answer under a secret that it may not have. */
export const ANSWER_MS = 5_000;
const CALL_MS = 30_000;

/** Whether nobody knows what became of a call. */
const isUnknown = (error: unknown): boolean =>
  error instanceof CallError && (error.code === "TIMED_OUT" || error.code === "OUTCOME_UNKNOWN");

/**
 * Whether the agent answers under a secret, which it may not have. The first answer under a secret
 * on trial ends the one before it. Rejects with a CallError if the agent is not there.
 */
export const hasSecret = async (agent: Agent, timeoutMs = ANSWER_MS): Promise<boolean> => {
  try {
    await agent.call("system.ping", undefined, { timeoutMs, idempotent: true });
    return true;
  } catch (error) {
    if (isUnknown(error)) return false;
    throw error;
  }
};

/** What an agent says of its secret. */
export interface SecretState {
  /** The last one that a push key has proven; 0: none. */
  readonly serial: number;
  /** The `id` of the secret on trial; null: none is. Undefined: the agent does not say. */
  readonly trial: string | null | undefined;
}

/** Under its present secret. Rejects with a CallError; REMOTE -32601: it takes no other one. */
export const secretState = async (agent: Agent): Promise<SecretState> => {
  const options = { timeoutMs: CALL_MS, idempotent: true };
  const answer = await agent.call<unknown>(REKEY_METHOD, {}, options);
  const said = isObject(answer) ? answer : {};
  const [serial, trial] = [own(said, "serial"), own(said, "trial")];
  return {
    serial: typeof serial === "number" ? serial : 0,
    trial: typeof trial === "string" || trial === null ? trial : undefined,
  };
};

/** One for each microsecond since 1970: some take their serials from a clock. */
const SERIALS_PER_MS = 1000;

/**
 * The serial of a push key's next proof, above the `last` one that the agent says. Throws a
 * CallError for a `last` that no device can have reached: whoever has the agent's secret could get
 * a proof with the highest serial by that, after which the device accepts none. This limit moves
 * on faster than proofs are made. `nowMs`: since 1970.
 */
export const nextSerial = (agentId: string, last: unknown, nowMs = Date.now()): number => {
  if (!Number.isSafeInteger(last) || (last as number) < 0)
    throw new CallError("BAD_ANSWER", `${agentId} says a last serial that is none`);
  const serial = (last as number) + 1;
  if (serial <= nowMs * SERIALS_PER_MS && Number.isSafeInteger(serial)) return serial;
  const date = new Date(nowMs).toISOString().slice(0, 10);
  const fix = "check this computer's date; if it is right, give the device a new agent_token";
  const text = `${agentId} says a last serial that is too high for ${date}, so no proof was made`;
  throw new CallError("BAD_ANSWER", `${text}: ${fix} by its cable`);
};

/** A secret that is sent to an agent. */
export interface SentSecret {
  readonly secret: string;
  /** Drawn for it: the same secret is sent again under the same id. */
  readonly id: string;
  /** Of a push key, with its proof: `rekeyProof` of the protocol. */
  readonly serial?: number;
  readonly proof?: string;
}

/**
 * Sends it under the present secret. Resolves also if the outcome is unknown, which `hasSecret` of
 * the new one tells. Rejects with a CallError if the agent refuses it.
 */
export const sendSecret = async (agent: Agent, sent: SentSecret): Promise<void> => {
  try {
    await agent.call(REKEY_METHOD, sent, { timeoutMs: CALL_MS });
  } catch (error) {
    if (!isUnknown(error)) throw error;
  }
};
