/**
 * The agents of the user's account, for several commands: over REST, with their secrets in the
 * keyring.
 */
import { randomBytes } from "node:crypto";
import { makeToken, tokenProblem } from "@blindrelay/protocol";
import { Failure } from "@blindrelay/protocol/command-line";
import { toBase64url, type Version } from "@blindrelay/protocol/crypto";
import type { Agent, AgentCreated } from "@blindrelay/protocol/schema/rest";
import { matchesSelector, parseSelector } from "@blindrelay/protocol/selector";
import { nodeX25519 } from "@blindrelay/protocol/suites/node-x25519";
import { checkToken } from "../base/check-token.ts";
import { failing } from "../base/failing.ts";
import { Rest } from "../base/rest.ts";
import type { Key, Keyring, Profile } from "../config/profile.ts";
import { checkAgentId, httpBase, isSameRelay, type Settings } from "../config/settings.ts";

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
  const selector = failing("usage", "--where: ", () => parseSelector(where));
  const found = await rest.list("AgentPage", "/agents", { where });
  // A relay from before selectors would answer all agents.
  return found.filter((agent) => matchesSelector(selector, agent));
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
 * Refuses to replace the secret of another relay's agent that has the same id, as when the
 * environment names another relay. Throws a Failure (usage).
 */
export const demandOwnId = (settings: Settings, agentId: string): void => {
  const { profile } = settings;
  const key = profile?.keyring[agentId] ?? profile?.pending?.[agentId];
  if (profile === null || key === undefined) return;
  const relay = key.relay ?? httpBase(profile.url);
  if (isSameRelay(relay, settings.httpUrl())) return;
  const what = `the keyring's secret of ${agentId} is for ${relay}, not for ${settings.httpUrl()}`;
  const fix = `set BLINDRELAY_URL=${relay} with BLINDRELAY_ACCOUNT_TOKEN, or use a profile of that relay`;
  throw new Failure("usage", `${what}: ${fix} (--profile NAME)`);
};

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
  if (id !== null) demandOwnId(settings, id);
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

const withPending = ({ pending: _, ...others }: Profile, pending: Keyring): Profile =>
  Object.keys(pending).length > 0 ? { ...others, pending } : others;

/** The profile at its relay's new address: what was noted for that is its own from now on. */
export const atAddress = (profile: Profile, url: string): Profile => {
  const own = (keyring: Keyring = {}): Keyring => {
    const its = Object.entries(keyring).filter(
      ([, { relay }]) => relay !== undefined && isSameRelay(relay, url),
    );
    return withKeys(keyring, new Map(its.map(([id, { relay: _, ...key }]) => [id, key])));
  };
  return withPending({ ...profile, url, keyring: own(profile.keyring) }, own(profile.pending));
};

/**
 * The profile with these secrets. Others that are pending stay, since another command may have sent
 * them to their devices; `forgets`: the devices have these for sure.
 */
const keeping = (
  profile: Profile,
  keys: ReadonlyMap<string, Key | null>,
  forgets = false,
): Profile => {
  const isOver = ([agentId, key]: readonly [string, Key | null]): boolean =>
    forgets || key === null || profile.pending?.[agentId]?.agent_token === key.agent_token;
  const over = new Map([...keys].filter(isOver).map(([agentId]) => [agentId, null]));
  const keyring = withKeys(profile.keyring, keys);
  return withPending({ ...profile, keyring }, withKeys(profile.pending, over));
};

/** The secrets with the relay that commands talk to, if that is not the profile's. */
const noted = <Kept extends Key | null>(
  settings: Settings,
  keys: ReadonlyMap<string, Kept>,
): ReadonlyMap<string, Kept> => {
  if (settings.otherHome() === null) return keys;
  const relay = settings.httpUrl();
  return new Map([...keys].map(([agentId, key]) => [agentId, key && { ...key, relay }]));
};

/** `keepKeys` for agents of the profile's own relay, whatever relay commands talk to. */
export const keepOwnKeys = (
  settings: Settings,
  keys: ReadonlyMap<string, Key | null>,
  forgets = false,
): void => settings.update((profile) => profile && keeping(profile, keys, forgets));

/**
 * Stores agents' secrets in the keyring, or removes them (null); without a profile it does nothing.
 * `forgets`: what is pending, too.
 */
export const keepKeys = (
  settings: Settings,
  keys: ReadonlyMap<string, Key | null>,
  forgets = false,
): void => {
  if (settings.profile !== null) keepOwnKeys(settings, noted(settings, keys), forgets);
};

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
    for (const agentId of keys.keys()) {
      if (before?.[agentId]?.rekey === undefined) continue;
      const fix = `blindrelay agent rekey ${agentId} (or set the device up again: blindrelay provision)`;
      throw new Failure("usage", `${agentId} may have a secret that was sent to it: ${fix}`);
    }
    kept = new Map([...keys].map(([agentId, key]) => [agentId, before?.[agentId] ?? key]));
    return { ...profile, pending: withKeys(before, noted(settings, kept)) };
  });
  return kept;
};

export const keepPendingKey = (settings: Settings, agentId: string): Key => {
  const kept = settings.keptSecretOf(agentId);
  const key = makeKey(kept?.version ?? "1", kept?.deviceKey ?? undefined);
  return keepPendingKeys(settings, new Map([[agentId, key]])).get(agentId) ?? key;
};

/**
 * Stores a secret that its device gets by a cable. Returns what puts everything back, a pending one
 * too.
 */
export const replaceKey = (settings: Settings, agentId: string, key: Key): (() => void) => {
  const { keyring, pending } = settings.demandProfile();
  const [before, sent] = [keyring[agentId] ?? null, pending?.[agentId] ?? null];
  keepKeys(settings, new Map([[agentId, key]]), true);
  return () =>
    settings.update((profile) => {
      if (profile === null) return null;
      const put = keeping(profile, new Map([[agentId, before]]), true);
      return withPending(put, withKeys(put.pending, new Map([[agentId, sent]])));
    });
};

/**
 * Keeps one that is about to be sent to the device itself. `before`: when the one that it may
 * replace was last sent; one that another command has sent since stays. Returns what is pending
 * now.
 */
export const keepSentKey = (
  settings: Settings,
  agentId: string,
  key: Key,
  before: string | null,
): Key => {
  let kept = key;
  settings.update((profile) => {
    if (profile === null) return null;
    const pending = profile.pending?.[agentId];
    kept = pending?.rekey === undefined || pending.rekey.at === before ? key : pending;
    return { ...profile, pending: withKeys(profile.pending, new Map([[agentId, kept]])) };
  });
  return kept;
};

/**
 * The device has answered under this secret, which replaced `before`. What other commands have
 * stored since stays: another secret in the keyring, one that is pending.
 */
export const keepProvenKey = (
  settings: Settings,
  agentId: string,
  key: Key,
  before: string,
): void =>
  settings.update((profile) => {
    if (profile === null) return null;
    const { agent_token: present, relay } = profile.keyring[agentId] ?? {};
    if (present !== before && present !== key.agent_token) return null;
    const proven = relay === undefined ? key : { ...key, relay };
    return keeping(profile, new Map([[agentId, proven]]));
  });

/** Drops a pending secret of which the relay knows nothing. */
export const dropPendingKey = (settings: Settings, agentId: string, key: Key): void =>
  settings.update((profile) => {
    if (profile?.pending?.[agentId]?.agent_token !== key.agent_token) return null;
    return withPending(profile, withKeys(profile.pending, new Map([[agentId, null]])));
  });
