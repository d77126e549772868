/**
 * Decides which agent a command runs as: from flags, then the environment, then the profile and its
 * keyring.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { Failure } from "@blindrelay/protocol/command-line";
import { deviceKeyProblem, type Version } from "@blindrelay/protocol/crypto";
import { checkToken } from "../base/check-token.ts";
import { printStatus } from "../base/output.ts";
import { RestFailure } from "../base/rest.ts";
import type { Settings } from "../config/settings.ts";
import { accountRest, agentPath, demandToken } from "./account.ts";

/** The identity of an agent; checked. */
export interface Identity {
  readonly agentId: string;
  readonly relayToken: string;
  readonly agentToken: string;
  readonly version: Version;
  /** The private half of the device's pinned key, base64url; null: it has none. */
  readonly deviceSecret: string | null;
}

interface IdentityFlags {
  readonly agent?: string;
  readonly stateDir?: string;
}

const FIRST_WAIT_MS = 1_000;
const LONGEST_WAIT_MS = 30_000;

/** A relay that is away, restarts or is busy, not one that refuses or a server that is no relay. */
const isTemporary = (error: unknown): error is Failure => {
  if (!(error instanceof Failure)) return false;
  if (error instanceof RestFailure) {
    return (
      error.kind === "unreachable" || ["RATE_LIMITED", "LOCKED_OUT"].includes(error.code ?? "")
    );
  }
  const { code, status } = Object(error.cause) as { code?: unknown; status?: number };
  if (code === "NOT_A_RELAY") return status !== undefined && status >= 500; // a proxy's page
  return error.cause !== undefined && ["unreachable", "timeout"].includes(error.kind);
};

/** Repeats what `ask` does until the relay is there; tells each reason once. */
const onceThere = async <T>(ask: () => Promise<T>): Promise<T> => {
  let told = "";
  for (let waitMs = FIRST_WAIT_MS; ; waitMs = Math.min(2 * waitMs, LONGEST_WAIT_MS)) {
    try {
      return await ask();
    } catch (error) {
      if (!isTemporary(error)) throw error;
      if (error.message !== told) printStatus(`${error.message} (it keeps trying)`);
      told = error.message;
      await sleep(waitMs);
    }
  }
};

/**
 * The relay token from the environment or, for an agent of the profile's account, from the relay.
 */
const relayTokenOf = async (settings: Settings, agentId: string): Promise<string> => {
  const given = settings.relayToken(agentId);
  if (given !== null) return given;
  const path = `${agentPath(agentId)}/export`;
  const rest = accountRest(settings);
  const { api_token } = await onceThere(() => rest.ask("AgentExport", "GET", path));
  demandToken(api_token, "agent", settings.httpUrl());
  return api_token;
};

/** Includes the agent's own folder. Waits for a relay that is away. Rejects with a Failure. */
export const identify = async (
  settings: Settings,
  flags: IdentityFlags,
): Promise<Identity & { readonly stateDir: string }> => {
  const agentId =
    flags.agent ?? settings.demand("BLINDRELAY_AGENT_ID", "the agent's id, or use --agent ID");
  const { agentToken, version, deviceKey } = settings.checkedSecretOf(agentId);
  const deviceSecret = settings.deviceSecret(agentId);
  if (deviceKey !== null && deviceSecret === null) {
    throw new Failure(
      "usage",
      `clients of ${agentId} want its device key proven: set BLINDRELAY_DEVICE_SECRET to its private half`,
    );
  }
  const problem = deviceKeyProblem(version, deviceSecret ?? undefined);
  if (problem !== null) throw new Failure("usage", `BLINDRELAY_DEVICE_SECRET: ${problem}`);
  const relayToken = await relayTokenOf(settings, agentId);
  checkToken(relayToken, "agent", "BLINDRELAY_RELAY_TOKEN");
  return {
    agentId,
    relayToken,
    stateDir: flags.stateDir ?? settings.stateDirOf(agentId),
    agentToken,
    version,
    deviceSecret,
  };
};
