/** The agents that a selector matches, and this machine's secrets for them. */
import type { Agent, Client } from "@blindrelay/client-sdk";
import { Failure } from "@blindrelay/protocol/command-line";
import type { Agent as ListedAgent } from "@blindrelay/protocol/schema/rest";
import { accountRest, listAgents } from "../account/account.ts";
import { presentAgent } from "../account/rekey.ts";
import type { Settings } from "../config/settings.ts";

/** Throws a Failure: usage for a selector that the relay refuses, expectation if none matches. */
export const matching = async (settings: Settings, where: string): Promise<ListedAgent[]> => {
  const found = await listAgents(accountRest(settings), where);
  if (found.length > 0) return found;
  throw new Failure("expectation", where === "" ? "no agent" : `no agent matches ${where}`);
};

/** The same, by their ids. */
export const matchingIds = async (settings: Settings, where: string): Promise<string[]> =>
  (await matching(settings, where)).map(({ agent_id }) => agent_id);

/**
 * Null where the keyring has no secret for the agent: one in the environment belongs to a single
 * agent.
 */
export const heldAgent = async (
  client: Client,
  settings: Settings,
  agentId: string,
): Promise<Agent | null> => {
  const secret = settings.keptSecretOf(agentId);
  if (secret === null) return null;
  return presentAgent(client, settings, agentId, secret);
};

/** Errors of calls begin with the agent's id, as a word of its own; others do not. */
export const aboutAgent = (agentId: string, text: string): string =>
  [`${agentId}: `, `${agentId} `].some((start) => text.startsWith(start))
    ? text
    : `${agentId}: ${text}`;
