/**
 * Entry point on Moddable: `import { startAgent } from "blindrelay"`. moddable/manifest.json has
 * the modules that it requires.
 */
import print from "blindrelay/print";
import values from "blindrelay/values";
import Time from "time";
import Timer from "timer";
import type { AgentCore } from "../core/agent-core.ts";
import type { ModdableCrypt } from "./sdk.ts";
import { provisionOn, type StartOptions, startOn } from "./start.ts";

export type { Program } from "../core/agent.ts";
export type { AgentCore } from "../core/agent-core.ts";
export type { AgentStatus } from "../core/link.ts";
export type { EcmaNetwork, ModdableCrypt } from "./sdk.ts";
export type { StartOptions } from "./start.ts";

const sdk = { Timer, Time, values, print };

/** Starts a device program as an agent; see StartOptions. Throws if it must not start. */
export const startAgent = (options: StartOptions): AgentCore => startOn(sdk, options);

/** Call it once for every new agent_token, before its first start; see provisionOn. */
export const provisionAgent = (agentToken: string, crypt?: ModdableCrypt, seed?: string): void =>
  provisionOn(sdk, agentToken, crypt ?? {}, seed);
