/**
 * The agents of the user's account, for several commands: over REST, with their secrets in the
 * keyring.
 */
import { randomBytes } from "node:crypto";
import { makeToken } from "@blindrelay/protocol";
import type { Version } from "@blindrelay/protocol/crypto";
import type { Agent, AgentPage } from "@blindrelay/protocol/schema/rest";
import { checkToken } from "./check-token.ts";
import type { Key } from "./config/profile.ts";
import { checkAgentId, type Settings } from "./config/settings.ts";
import { Rest } from "./rest.ts";

/** REST with the account of the settings. */
export const accountRest = (settings: Settings): Rest => {
  const token = settings.accountToken();
  checkToken(token, "account", "account token");
  return new Rest(settings.httpUrl(), token);
};

/** All agents of the account. */
export const listAgents = async (rest: Rest): Promise<Agent[]> => {
  const items: Agent[] = [];
  let cursor: string | null = null;
  do {
    const query: string = cursor === null ? "" : `?cursor=${encodeURIComponent(cursor)}`;
    const page: AgentPage = await rest.ask<AgentPage>("GET", `/agents${query}`);
    items.push(...page.items);
    cursor = page.next_cursor;
  } while (cursor !== null);
  return items;
};

export const agentPath = (agentId: string): string => `/agents/${checkAgentId(agentId)}`;

/** A fresh end-to-end secret. It is made here and the relay never sees it. */
export const makeKey = (version: Version): Key => ({
  agent_token: makeToken("e2e", randomBytes(32)),
  packet_version: version,
});

/**
 * Stores an agent's secret in the keyring, or removes it (null); without a profile it does nothing.
 */
export const keepKey = (settings: Settings, agentId: string, key: Key | null): void => {
  if (settings.profile === null) return;
  settings.update((profile) => {
    if (profile === null) return null;
    const keyring: Record<string, Key> = Object.assign(Object.create(null), profile.keyring);
    if (key === null) delete keyring[agentId];
    else keyring[agentId] = key;
    return { ...profile, keyring };
  });
};
