/**
 * A new end-to-end secret for an agent, over the air (`system.rekey`, protocol/README.md). The
 * keyring has it before the device does, and keeps the old one until the device has answered under
 * the new one; whatever ends this early, running it again goes on.
 */
import { createHash, randomBytes } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { type Agent, CallError, type Client } from "@blindrelay/client-sdk";
import { Failure } from "@blindrelay/protocol/command-line";
import { isObject, own, rekeyProof } from "@blindrelay/protocol/crypto";
import { nodeSuite } from "@blindrelay/protocol/suites/node";
import { callFailure } from "../base/call-failure.ts";
import type { Key } from "../config/profile.ts";
import type { Secret, Settings } from "../config/settings.ts";
import { keepProvenKey, keepSentKey, makeKey } from "./account.ts";
import { agentWith } from "./agent-with.ts";

const METHOD = "system.rekey";
/** How long an agent may take to answer under a secret that it may not have. */
const OPEN_MS = 5_000;
const CALL_MS = 30_000;
/** Between two looks for an agent that is offline. */
const RETRY_MS = 2_000;
/**
 * A device has forgotten a trial by then, whatever happened; the second: one that says no trial.
 */
const FORGOTTEN_MS = 15 * 60_000;
const SURELY_FORGOTTEN_MS = 30 * 60_000;

interface Answer {
  readonly serial: number;
  /** Undefined: an agent that does not say. */
  readonly trial: string | null | undefined;
}

const asAnswer = (value: unknown): Answer => {
  const said = isObject(value) ? value : {};
  const [serial, trial] = [own(said, "serial"), own(said, "trial")];
  return {
    serial: typeof serial === "number" ? serial : 0,
    trial: typeof trial === "string" || trial === null ? trial : undefined,
  };
};

/**
 * Whether the agent answers under a secret, which it may not have. Rejects with a CallError if it
 * is not there.
 */
const answersTo = async (
  client: Client,
  agentId: string,
  secret: Secret,
  timeoutMs = OPEN_MS,
): Promise<boolean> => {
  try {
    const options = { timeoutMs, idempotent: true };
    await agentWith(client, agentId, secret).call("system.ping", undefined, options);
    return true;
  } catch (error) {
    if (!(error instanceof CallError)) throw error;
    if (error.code === "TIMED_OUT" || error.code === "OUTCOME_UNKNOWN") return false;
    throw error;
  }
};

const keyOf = ({ agentToken, version, deviceKey }: Secret): Key => ({
  agent_token: agentToken,
  packet_version: version,
  ...(deviceKey === null ? {} : { device_key: deviceKey }),
});

interface Waiting {
  /** By performance.now(). */
  readonly deadline?: number;
  /** For an agent that is offline. */
  readonly waits?: boolean;
}

/**
 * The secret to use: one that was sent to the device and not confirmed is tried first, and kept if
 * the device has it. Without an answer it is the one that was given.
 */
export const presentSecret = async (
  client: Client,
  settings: Settings,
  agentId: string,
  secret: Secret,
  { deadline = Number.POSITIVE_INFINITY, waits = false }: Waiting = {},
): Promise<Secret> => {
  const sent = settings.sentSecretOf(agentId);
  const kept = settings.keptSecretOf(agentId);
  // One in the environment is what its user wants.
  if (sent === null || kept?.agentToken !== secret.agentToken) return secret;
  for (;;) {
    const leftMs = Math.max(1, deadline - performance.now());
    try {
      if (!(await answersTo(client, agentId, sent, Math.min(OPEN_MS, leftMs)))) return secret;
      keepProvenKey(settings, agentId, keyOf(sent), secret.agentToken);
      return sent;
    } catch (error) {
      if (!(error instanceof CallError)) throw error;
      const isOver = performance.now() + RETRY_MS >= deadline;
      if (error.code !== "AGENT_OFFLINE" || !waits || isOver) return secret;
      await sleep(RETRY_MS);
    }
  }
};

/** The agent under that secret. */
export const presentAgent = async (
  client: Client,
  settings: Settings,
  agentId: string,
  secret: Secret,
  waiting?: Waiting,
): Promise<Agent> =>
  agentWith(client, agentId, await presentSecret(client, settings, agentId, secret, waiting));

/** Sends the pending secret. Its refusal is a Failure; an unknown outcome is none. */
const send = async (
  client: Client,
  agentId: string,
  secret: Secret,
  sent: { readonly agentToken: string; readonly id: string },
  proof: object,
): Promise<void> => {
  try {
    const params = { secret: sent.agentToken, id: sent.id, ...proof };
    const options = { timeoutMs: CALL_MS };
    await agentWith(client, agentId, secret).call(METHOD, params, options);
  } catch (error) {
    if (!(error instanceof CallError)) throw error;
    if (error.code !== "TIMED_OUT" && error.code !== "OUTCOME_UNKNOWN") throw callFailure(error);
  }
};

/** What the agent says of its trial, under its present secret. */
const ask = async (client: Client, agentId: string, secret: Secret): Promise<Answer> => {
  try {
    const options = { timeoutMs: CALL_MS, idempotent: true };
    return asAnswer(await agentWith(client, agentId, secret).call(METHOD, {}, options));
  } catch (error) {
    if (!(error instanceof CallError)) throw error;
    if (error.remote?.code === -32601) {
      const why = "started with --no-rekey, or from before system.rekey";
      throw new Failure("agentError", `${agentId} does not take a new secret: ${why}`, error);
    }
    throw callFailure(error);
  }
};

const isForgotten = (at: string, { trial }: Answer): boolean => {
  const ms = Date.now() - Date.parse(at);
  return trial === null ? ms > FORGOTTEN_MS : trial === undefined && ms > SURELY_FORGOTTEN_MS;
};

/** Resolves once the agent has answered under its new secret, which the keyring then has. */
const rekeyed = async (
  client: Client,
  settings: Settings,
  agentId: string,
  pushKey: string | null,
): Promise<void> => {
  const secret = settings.keptSecretOf(agentId);
  if (secret === null) {
    throw new Failure("usage", `the keyring has no secret for ${agentId} that could be changed`);
  }
  let sent = settings.sentSecretOf(agentId);
  if (sent !== null && (await answersTo(client, agentId, sent))) {
    keepProvenKey(settings, agentId, keyOf(sent), secret.agentToken);
    return;
  }
  const said = await ask(client, agentId, secret);
  const again = sent === null || isForgotten(sent.at, said) ? null : sent;
  const key = again ? keyOf(again) : makeKey(secret.version, secret.deviceKey ?? undefined);
  const id = again?.id ?? randomBytes(16).toString("base64url");
  const rekey = { id, at: new Date().toISOString() };
  const kept = keepSentKey(settings, agentId, { ...key, rekey }, sent?.at ?? null);
  sent = { ...secret, ...rekey, ...kept.rekey, agentToken: kept.agent_token };
  const digest = createHash("sha256").update(sent.agentToken).digest("hex");
  const serial = said.serial + 1;
  const proof =
    pushKey === null
      ? {}
      : { serial, proof: rekeyProof(nodeSuite(), pushKey, agentId, serial, digest) };
  await send(client, agentId, secret, sent, proof);
  if (await answersTo(client, agentId, sent)) {
    keepProvenKey(settings, agentId, keyOf(sent), secret.agentToken);
    return;
  }
  const fix = "the keyring has both, so run this again";
  throw new Failure("timeout", `${agentId} has not answered under its new secret: ${fix}`);
};

/** The same, with its errors as a command tells them. Rejects with a Failure. */
export const rekeyAgent: typeof rekeyed = async (...args) => {
  try {
    await rekeyed(...args);
  } catch (error) {
    throw error instanceof CallError ? callFailure(error) : error;
  }
};
