/**
 * A new end-to-end secret for an agent, over the air (`system.rekey`, protocol/README.md). The
 * keyring has it before the device does, and keeps the old one until the device has answered under
 * the new one; whatever ends this early, running it again goes on.
 */
import { createHash, randomBytes } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { type Agent, CallError, type Client } from "@blindrelay/client-sdk";
import {
  ANSWER_MS,
  hasSecret,
  nextSerial,
  type SecretState,
  secretState,
  sendSecret,
} from "@blindrelay/client-sdk/rekey";
import { Failure } from "@blindrelay/protocol/command-line";
import { rekeyProof } from "@blindrelay/protocol/crypto";
import { nodeSuite } from "@blindrelay/protocol/suites/node";
import { asFailure } from "../base/call-failure.ts";
import { UNKNOWN_METHOD } from "../base/methods.ts";
import type { Key } from "../config/profile.ts";
import type { Secret, Settings } from "../config/settings.ts";
import { dropPendingKey, keepProvenKey, keepSentKey, makeKey } from "./account.ts";
import { agentWith } from "./agent-with.ts";

/** Between two looks for an agent that is offline. */
const RETRY_MS = 2_000;
/**
 * A device has forgotten a trial by then, whatever happened; the second: one that says no trial.
 */
const FORGOTTEN_MS = 15 * 60_000;
const SURELY_FORGOTTEN_MS = 30 * 60_000;

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
      if (!(await hasSecret(agentWith(client, agentId, sent), Math.min(ANSWER_MS, leftMs))))
        return secret;
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

const isForgotten = (at: string, trial: SecretState["trial"]): boolean => {
  const ms = Date.now() - Date.parse(at);
  return trial === null ? ms > FORGOTTEN_MS : trial === undefined && ms > SURELY_FORGOTTEN_MS;
};

/** Under its present secret; undefined: it takes no other one, so it says no trial either. */
const ask = async (present: Agent): Promise<SecretState | undefined> => {
  try {
    return await secretState(present);
  } catch (error) {
    if (!(error instanceof CallError) || error.remote?.code !== UNKNOWN_METHOD) throw error;
    return undefined;
  }
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
  const isProven = async (one: Secret): Promise<boolean> => {
    const isIt = await hasSecret(agentWith(client, agentId, one));
    if (isIt) keepProvenKey(settings, agentId, keyOf(one), secret.agentToken);
    return isIt;
  };
  if (sent !== null && (await isProven(sent))) return;
  const present = agentWith(client, agentId, secret);
  const said = await ask(present);
  const again = sent === null || isForgotten(sent.at, said?.trial) ? null : sent;
  if (said === undefined) {
    if (sent !== null && again === null) dropPendingKey(settings, agentId, keyOf(sent));
    const why = "started with --no-rekey, or from before system.rekey";
    throw new Failure("agentError", `${agentId} does not take a new secret: ${why}`);
  }
  const serial = pushKey === null ? 0 : nextSerial(agentId, said.serial);
  const key = again ? keyOf(again) : makeKey(secret.version, secret.deviceKey ?? undefined);
  const id = again?.id ?? randomBytes(16).toString("base64url");
  const rekey = { id, at: new Date().toISOString() };
  const kept = keepSentKey(settings, agentId, { ...key, rekey }, sent?.at ?? null);
  sent = { ...secret, ...rekey, ...kept.rekey, agentToken: kept.agent_token };
  const digest = createHash("sha256").update(sent.agentToken).digest("hex");
  const proof =
    pushKey === null
      ? {}
      : { serial, proof: rekeyProof(nodeSuite(), pushKey, agentId, serial, digest) };
  await sendSecret(present, { secret: sent.agentToken, id: sent.id, ...proof });
  if (await isProven(sent)) return;
  const fix = "the keyring has both, so run this again";
  throw new Failure("timeout", `${agentId} has not answered under its new secret: ${fix}`);
};

/** The same, with its errors as a command tells them. Rejects with a Failure. */
export const rekeyAgent: typeof rekeyed = (...args) =>
  rekeyed(...args).catch((error: unknown) => {
    throw asFailure(error);
  });
