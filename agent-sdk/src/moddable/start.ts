/**
 * An agent on Moddable, from preferences to a running link. The SDK's modules are passed in;
 * index.ts takes them from the SDK.
 *
 * A start raises the boot count before the core is constructed. The count is never created here: an
 * erased flash looks like a new one, so only `provision` writes a first count, and only for a new
 * agent_token.
 */
import type { Suite } from "@blindrelay/protocol/crypto";
import type { AgentCore as AgentCoreType } from "../core/agent-core.ts";
import type { DeviceOptions } from "../core/start-options.ts";
import type { Log, Random } from "../ports.ts";
import { SDK_VERSION } from "../version.ts";
import {
  AgentCore,
  limitsOf,
  provisionBootCount,
  raiseBootCount,
  SMALL_AGENT_LIMITS,
} from "./core.ts";
import { ecmaLinks } from "./link.ts";
import type {
  EcmaNetwork,
  ModdableCrypt,
  ModdablePreference,
  ModdableTime,
  ModdableTimer,
} from "./sdk.ts";
import { steadyNetwork } from "./socket.ts";
import { preferenceStorage } from "./storage.ts";
import { moddableSuite } from "./suite.ts";
import { moddableTimer } from "./timer.ts";
import { parseAddress } from "./url.ts";

export interface ModdableSdk {
  readonly Timer: ModdableTimer;
  readonly Time: ModdableTime;
  readonly Preference: ModdablePreference;
  /** Prints a line on the console, including its newline. */
  readonly trace: (text: string) => void;
}

export interface StartOptions extends DeviceOptions {
  /** The relay: http(s) base or ws(s) address. */
  readonly url: string;
  /** How to open ws:// and wss:// addresses; the one required by the address must be present. */
  readonly network: { readonly ws?: EcmaNetwork; readonly wss?: EcmaNetwork };
  /**
   * The SDK's native hash and cipher. Without it all crypto is JavaScript, and only version "1" is
   * available.
   */
  readonly crypt?: ModdableCrypt;
  /** Reported in system.info after "moddable". */
  readonly device?: string;
  /** By default, warnings and errors go to the console. */
  readonly log?: Log;
}

/**
 * As good as the platform's `Math.random`: hardware on ESP32 and ESP8266, libc's `rand` elsewhere.
 */
const mathRandom: Random = (length) => {
  const bytes = new Uint8Array(length);
  for (let i = 0; i < length; i++) bytes[i] = Math.floor(Math.random() * 256);
  return bytes;
};

const traceLog =
  (trace: (text: string) => void): Log =>
  (level, message, fields) => {
    if (level !== "warn" && level !== "error") return;
    const more = fields === undefined ? "" : ` ${JSON.stringify(fields)}`;
    trace(`blindrelay ${level}: ${message}${more}\n`);
  };

const wsUrl = (url: string, network: StartOptions["network"]): string => {
  const address = parseAddress(url);
  if (address === null)
    throw new Error("url: a relay's address begins with ws, wss, http or https");
  const scheme = address.secure ? "wss" : "ws";
  if (network[scheme] === undefined) throw new Error(`network: ${url} needs a ${scheme} network`);
  return `${scheme}://${address.host}:${address.port}${address.path}`;
};

/** Starts a device program. Throws if the boot count does not allow it, and for invalid values. */
export const startOn = (sdk: ModdableSdk, options: StartOptions): AgentCoreType => {
  const url = wsUrl(options.url, options.network);
  const suite: Suite = moddableSuite(options.crypt ?? {});
  const storage = preferenceStorage(sdk.Preference);
  const count = raiseBootCount(storage, suite, options.agentToken);
  if (!count.ok) {
    // A release build aborts on the error without printing it.
    sdk.trace(`blindrelay error: ${count.advice}\n`);
    throw new Error(count.advice);
  }
  const timer = moddableTimer(sdk.Timer, sdk.Time);
  const core = new AgentCore({
    url,
    agentId: options.agentId,
    relayToken: options.relayToken,
    agentToken: options.agentToken,
    version: options.packetVersion ?? "1",
    name: options.name,
    runtime: options.device === undefined ? "moddable" : `moddable ${options.device}`,
    firmwareVersion: options.firmwareVersion,
    sdkVersion: SDK_VERSION,
    bootCount: count.count,
    deviceRandom: mathRandom(16),
    serialNumber: options.serialNumber ?? null,
    freeMemory: options.freeMemory,
    maxPlaintext: options.maxPlaintext,
    limits: limitsOf(SMALL_AGENT_LIMITS, options.limits),
    ports: {
      link: ecmaLinks({
        ws: steadyNetwork(options.network.ws),
        wss: steadyNetwork(options.network.wss),
        timer,
      }),
      timer,
      random: mathRandom,
      suite,
      log: options.log ?? traceLog(sdk.trace),
    },
  });
  options.program(core.agent);
  core.start();
  return core;
};

/**
 * Writes the first boot count for an agent_token that was never used. Throws if it was, or if it
 * cannot be written.
 */
export const provisionOn = (
  sdk: Pick<ModdableSdk, "Preference">,
  agentToken: string,
  crypt: ModdableCrypt,
): void => {
  const result = provisionBootCount(
    preferenceStorage(sdk.Preference),
    moddableSuite(crypt),
    agentToken,
  );
  if (!result.ok) throw new Error(result.advice);
};
