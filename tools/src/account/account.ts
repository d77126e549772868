/**
 * The agents of the user's account, for several commands: over REST, with their secrets in the
 * keyring.
 */
import { randomBytes } from "node:crypto";
import { makeToken, tokenProblem } from "@blindrelay/protocol";
import { Failure } from "@blindrelay/protocol/command-line";
import { toBase64url, type Version } from "@blindrelay/protocol/crypto";
import type { Agent, AgentCreated } from "@blindrelay/protocol/schema/rest";
import { matchesSelector, parseSelector, type Selector } from "@blindrelay/protocol/selector";
import { nodeX25519 } from "@blindrelay/protocol/suites/node-x25519";
import { checkToken } from "../base/check-token.ts";
import { Rest } from "../base/rest.ts";
import type { Key, Keyring, Profile } from "../config/profile.ts";
import { checkAgentId, type Settings } from "../config/settings.ts";

/** REST with the account of the settings. */
export const accountRest = (settings: Settings): Rest => {
  const token = settings.accountToken();
  checkToken(token, "account", "account token");
  return new Rest(settings.httpUrl(), token);
};

/**
 * All agents of the account, or those that a selector matches. Throws a Failure (usage) for a text
 * that is no selector.
 */
export const listAgents = async (rest: Rest, where?: string): Promise<Agent[]> => {
  if (where === undefined) return rest.list("AgentPage", "/agents");
  const selector = readSelector(where);
  const found = await rest.list("AgentPage", "/agents", { where });
  // A relay from before selectors would answer all agents.
  return found.filter((agent) => matchesSelector(selector, agent));
};

const readSelector = (text: string): Selector => {
  try {
    return parseSelector(text);
  } catch (error) {
    throw new Failure("usage", `--where: ${(error as Error).message}`, error);
  }
};

/**
 * Refuses what another server may have put in a token's place. Throws a Failure (unreachable).
 */
export const demandToken = (token: string, kind: "account" | "agent", url: string): void => {
  const problem = tokenProblem(token, kind);
  if (problem === null) return;
  throw new Failure("unreachable", `${url} answered unlike a relay (api_token: ${problem})`);
};

export const agentPath = (agentId: string): string => `/agents/${checkAgentId(agentId)}`;

/**
 * Creates an agent. `id`: proposed, or null. Throws a Failure (unreachable) for an answer that
 * names another agent: its secret in the keyring would be replaced.
 */
export const createAgent = async (
  settings: Settings,
  name: string,
  id: string | null,
): Promise<AgentCreated> => {
  const proposed = id === null ? {} : { agent_id: checkAgentId(id) };
  const rest = accountRest(settings);
  const made = await rest.ask("AgentCreated", "POST", "/agents", { name, ...proposed });
  const isTaken = settings.profile?.keyring[made.agent_id] !== undefined;
  if (id === null ? isTaken : made.agent_id !== id) {
    const what = `made ${made.agent_id}, which was not asked for`;
    throw new Failure("unreachable", `${settings.httpUrl()} ${what}; the keyring is unchanged`);
  }
  demandToken(made.api_token, "agent", settings.httpUrl());
  return made;
};

/** A fresh end-to-end secret. It is made here and the relay never sees it. */
export const makeKey = (version: Version, deviceKey?: string): Key => ({
  agent_token: makeToken("e2e", randomBytes(32)),
  packet_version: version,
  ...(deviceKey === undefined ? {} : { device_key: deviceKey }),
});

/** Both halves of a device's own key, base64url: the private one for the device alone. */
export const makeDeviceKey = (): { readonly secret: string; readonly key: string } => {
  const secret = randomBytes(32);
  const key = toBase64url(nodeX25519.pair(secret).publicKey());
  return { secret: toBase64url(secret), key };
};

const withKeys = (keyring: Keyring | undefined, keys: ReadonlyMap<string, Key | null>): Keyring => {
  const changed: Record<string, Key> = Object.assign(Object.create(null), keyring);
  for (const [agentId, key] of keys) {
    if (key === null) delete changed[agentId];
    else changed[agentId] = key;
  }
  return changed;
};

/** The profile with these secrets, which replace pending ones. */
const keeping = (profile: Profile, keys: ReadonlyMap<string, Key | null>): Profile => {
  const replaced = new Map([...keys.keys()].map((agentId) => [agentId, null]));
  const pending = withKeys(profile.pending, replaced);
  const { pending: _, ...others } = profile;
  const keyring = withKeys(profile.keyring, keys);
  return { ...others, keyring, ...(Object.keys(pending).length > 0 ? { pending } : {}) };
};

/**
 * Stores agents' secrets in the keyring, or removes them (null); without a profile it does nothing.
 */
export const keepKeys = (settings: Settings, keys: ReadonlyMap<string, Key | null>): void => {
  if (settings.profile === null) return;
  settings.update((profile) => profile && keeping(profile, keys));
};

/** The same for one agent. */
export const keepKey = (settings: Settings, agentId: string, key: Key | null): void =>
  keepKeys(settings, new Map([[agentId, key]]));

/**
 * Keeps new secrets beside the agents' present ones, before anything else changes. A pending one is
 * used again: nobody knows how far its change came. Returns what is pending now.
 */
export const keepPendingKeys = (
  settings: Settings,
  keys: ReadonlyMap<string, Key>,
): ReadonlyMap<string, Key> => {
  let kept = keys;
  settings.update((profile) => {
    if (profile === null) return null;
    const before = profile.pending;
    kept = new Map([...keys].map(([agentId, key]) => [agentId, before?.[agentId] ?? key]));
    return { ...profile, pending: withKeys(before, kept) };
  });
  return kept;
};

/** The same for one agent. */
export const keepPendingKey = (settings: Settings, agentId: string): Key => {
  const kept = settings.keptSecretOf(agentId);
  const key = makeKey(kept?.version ?? "1", kept?.deviceKey ?? undefined);
  return keepPendingKeys(settings, new Map([[agentId, key]])).get(agentId) ?? key;
};

/** The same for one that is about to be sent to the device itself. */
export const keepSentKey = (settings: Settings, agentId: string, key: Key): void =>
  settings.update(
    (profile) =>
      profile && { ...profile, pending: withKeys(profile.pending, new Map([[agentId, key]])) },
  );

/** Drops a pending secret of which the relay knows nothing. */
export const dropPendingKey = (settings: Settings, agentId: string): void =>
  settings.update(
    (profile) =>
      profile && keeping(profile, new Map([[agentId, profile.keyring[agentId] ?? null]])),
  );
