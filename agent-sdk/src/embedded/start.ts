/**
 * Starts an agent using only ports: the boot count is raised before the core is constructed, then
 * the program registers its handlers, then the link starts. A start never creates the count: erased
 * storage looks like new storage, so only `provisionAgent` writes a first count, for a new
 * agent_token.
 */
import { asciiBytes, fromBase64url, isForward } from "@blindrelay/protocol/crypto";
import { type AgentSessionsOptions, SmallAgentSessions } from "@blindrelay/protocol/session";
import { AgentCore } from "../core/agent-core.ts";
import { type BootCountResult, provisionBootCount, raiseBootCount } from "../core/bootcount.ts";
import { limitsOf, SMALL_AGENT_LIMITS } from "../core/limits.ts";
import type { DeviceOptions } from "../core/start-options.ts";
import { SDK_VERSION } from "../version.ts";
import {
  boundedLinks,
  messageBytes,
  refusal,
  SMALL_MAX_NESTING,
  SMALL_MAX_PLAINTEXT,
} from "./bounded.ts";
import type { RuntimePorts } from "./host.ts";
import { KnownNames } from "./names.ts";

const SEED_BYTES = 32;
/** Bytes; messages have twenty names. */
const LINK_NAMES = 2048;
/**
 * Those that a login does not bring. Known before anybody invents others: a relay forwards a bare
 * packet as its client wrote it.
 */
const OF_MESSAGES = asciiBytes(
  '{"error","code","retry_after","reconnect_in","agent_id","payload","signature","request_id","v","sid","seq","p"}',
);

const namesOf = (bytes: number | null): KnownNames | null =>
  bytes === null ? null : new KnownNames(bytes);

export interface StartOptions extends DeviceOptions {
  /** The relay's WebSocket: wss://relay.example/wss. */
  readonly url: string;
  /** Reported in system.info, such as "quickjs esp32". */
  readonly runtime: string;
  /**
   * Whether there is memory to seal so many bytes and queue them; if not, an event is not sent, and
   * its client is told of it later, and an answer waits for up to 2 s. Absent: always.
   */
  readonly canSeal?: (bytes: number) => boolean;
}

const raised = (
  { storage, suite }: RuntimePorts,
  agentToken: string,
): Extract<BootCountResult, { ok: true }> => {
  const result = raiseBootCount(storage, suite, agentToken);
  if (!result.ok) throw new Error(result.advice);
  return result;
};

/** Starts a device program. Throws if the boot count does not allow it, and for invalid values. */
export const startAgent = (ports: RuntimePorts, options: StartOptions): AgentCore => {
  if (!/^wss?:\/\//.test(options.url)) {
    throw new Error("url: a relay's WebSocket begins with ws:// or wss://, and ends with /wss");
  }
  const rekeyed = options.rekey?.(ports, options.agentId, options.agentToken);
  const agentToken = rekeyed?.secrets.token ?? options.agentToken;
  const boot = rekeyed?.boot ?? raised(ports, agentToken);
  const { maxPlaintext = SMALL_MAX_PLAINTEXT, maxNesting = SMALL_MAX_NESTING } = options;
  const { keptNames = null } = options;
  const ofCalls = { maxPlaintext, maxNesting, names: namesOf(keptNames) };
  const names = namesOf(keptNames && LINK_NAMES);
  names?.admit(OF_MESSAGES);
  const { packetVersion = "1", deviceKey } = options;
  const secrets = [agentToken, options.relayToken, ...(deviceKey ? [deviceKey] : [])];
  const kept = options.keepLog?.(ports, secrets, boot.count);
  const small = (all: AgentSessionsOptions) => new SmallAgentSessions(all);
  // None under "3" and "4" without the option: the core refuses to start then.
  const sessionsOf = (seed: Uint8Array | undefined) =>
    options.forward?.(packetVersion, seed?.slice(), deviceKey) ??
    (isForward(packetVersion) ? undefined : small);
  const ofSessions = {
    agentId: options.agentId,
    version: packetVersion,
    deviceRandom: ports.random(16),
    serialNumber: options.serialNumber ?? null,
    limits: limitsOf(SMALL_AGENT_LIMITS, options.limits),
  };
  const core = new AgentCore({
    ...options,
    ...ofSessions,
    agentToken,
    maxPlaintext,
    refuses: (plaintext) => refusal(plaintext, ofCalls),
    forward: sessionsOf(boot.seed),
    sdkVersion: SDK_VERSION,
    bootCount: boot.count,
    ports: {
      ...ports,
      link: boundedLinks(ports.link, messageBytes(maxPlaintext), { maxNesting, names }),
      log: kept?.log ?? ports.log,
    },
  });
  kept?.serve(core);
  rekeyed?.serve(core, (token, { count: bootCount, seed }) => {
    const make = sessionsOf(seed) ?? small;
    return make({ ...ofSessions, suite: ports.suite, agentToken: token, bootCount });
  });
  boot.seed?.fill(0);
  options.program(core.agent);
  core.start();
  return core;
};

/**
 * Writes the first boot count for an agent_token that was never used. Throws if it was. `seed`:
 * what packet versions "3" and "4" begin with, base64url of 32 random bytes that are kept nowhere
 * else and never used again.
 */
export const provisionAgent = (
  { storage, suite }: Pick<RuntimePorts, "storage" | "suite">,
  agentToken: string,
  seed?: string,
): void => {
  const bytes = seed === undefined ? null : fromBase64url(seed);
  if (seed !== undefined && bytes?.length !== SEED_BYTES) {
    throw new Error("seed: 43 characters of base64url");
  }
  const result = provisionBootCount(storage, suite, agentToken, bytes);
  if (!result.ok) throw new Error(result.advice);
};
