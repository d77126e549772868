/**
 * Decides which agent a command runs as: from flags, then the environment, then the profile and its
 * keyring.
 */
import type { Version } from "@blindrelay/protocol/crypto";
import { accountRest, agentPath, demandToken } from "./account.ts";
import { checkToken } from "./check-token.ts";
import { checkAgentId, type Settings } from "./config/settings.ts";

/** The identity of an agent; checked. */
export interface Identity {
  readonly agentId: string;
  readonly relayToken: string;
  readonly agentToken: string;
  readonly version: Version;
}

interface IdentityFlags {
  readonly agent?: string;
  readonly stateDir?: string;
}

/**
 * The relay token from the environment or, for an agent of the profile's account, from the relay.
 */
const relayTokenOf = async (settings: Settings, agentId: string): Promise<string> => {
  const given = settings.relayToken();
  if (given !== null) return given;
  const path = `${agentPath(agentId)}/export`;
  const { api_token } = await accountRest(settings).ask("AgentExport", "GET", path);
  demandToken(api_token, "agent", settings.httpUrl());
  return api_token;
};

/** Includes the agent's own folder. Rejects with a Failure. */
export const identify = async (
  settings: Settings,
  flags: IdentityFlags,
): Promise<Identity & { readonly stateDir: string }> => {
  const agentId = checkAgentId(
    flags.agent ?? settings.demand("BLINDRELAY_AGENT_ID", "the agent's id, or use --agent ID"),
  );
  const secret = settings.secretOf(agentId);
  checkToken(secret.agentToken, "e2e", "agent token");
  const relayToken = await relayTokenOf(settings, agentId);
  checkToken(relayToken, "agent", "BLINDRELAY_RELAY_TOKEN");
  return {
    agentId,
    relayToken,
    stateDir: flags.stateDir ?? settings.stateDirOf(agentId),
    ...secret,
  };
};
