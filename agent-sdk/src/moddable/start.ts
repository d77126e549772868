/**
 * An agent on Moddable, from stored values to a running link. The SDK's modules are passed in;
 * index.ts takes them from the SDK.
 */
import type { AgentCore } from "../core/agent-core.ts";
import type { DeviceOptions } from "../core/start-options.ts";
import type { Log, Random } from "../ports.ts";
import {
  KEPT_NAMES,
  messageBytes,
  provisionAgent,
  SMALL_MAX_PLAINTEXT,
  startAgent,
} from "./core.ts";
import { ecmaLinks } from "./link.ts";
import type {
  EcmaNetwork,
  ModdableCrypt,
  ModdableTime,
  ModdableTimer,
  ModdableValues,
} from "./sdk.ts";
import { steadyNetwork } from "./socket.ts";
import { valueStorage } from "./storage.ts";
import { moddableSuite } from "./suite.ts";
import { moddableTimer } from "./timer.ts";
import { parseAddress } from "./url.ts";

interface ModdableSdk {
  readonly Timer: ModdableTimer;
  readonly Time: ModdableTime;
  readonly values: ModdableValues;
  /** Prints a line on the console. */
  readonly print: (line: string) => void;
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

const printLog =
  (print: (line: string) => void): Log =>
  (level, message, fields) => {
    if (level !== "warn" && level !== "error") return;
    const more = fields === undefined ? "" : ` ${JSON.stringify(fields)}`;
    print(`blindrelay ${level}: ${message}${more}`);
  };

const wsUrl = (url: string, network: StartOptions["network"]): string => {
  const address = parseAddress(url);
  if (address === null)
    throw new Error("url: a relay's address begins with ws, wss, http or https");
  const scheme = address.secure ? "wss" : "ws";
  if (network[scheme] === undefined) throw new Error(`network: ${url} needs a ${scheme} network`);
  return `${scheme}://${address.host}:${address.port}${address.path}`;
};

/** What `act` returns. A release build aborts on an error without printing it. */
const saying = <T>(print: (line: string) => void, act: () => T): T => {
  try {
    return act();
  } catch (error) {
    print(`blindrelay error: ${(error as Error).message}`);
    throw error;
  }
};

/** Starts a device program. Throws if the boot count does not allow it, and for invalid values. */
export const startOn = (
  sdk: ModdableSdk,
  { network, crypt = {}, device, log, ...options }: StartOptions,
): AgentCore =>
  saying(sdk.print, () => {
    const timer = moddableTimer(sdk.Timer, sdk.Time);
    const link = ecmaLinks({
      ws: steadyNetwork(network.ws),
      wss: steadyNetwork(network.wss),
      timer,
      maxMessage: messageBytes(options.maxPlaintext ?? SMALL_MAX_PLAINTEXT),
    });
    const ports = {
      link,
      timer,
      random: mathRandom,
      storage: valueStorage(sdk.values),
      suite: moddableSuite(crypt),
      log: log ?? printLog(sdk.print),
    };
    const runtime = device === undefined ? "moddable" : `moddable ${device}`;
    return startAgent(ports, {
      keptNames: KEPT_NAMES,
      canSeal: link.hasRoom,
      ...options,
      url: wsUrl(options.url, network),
      runtime,
    });
  });

/**
 * Writes the first boot count for an agent_token that was never used. Throws if it was, or if it
 * cannot be written. `seed`: for packet versions "3" and "4", base64url of 32 random bytes.
 */
export const provisionOn = (
  sdk: Pick<ModdableSdk, "values" | "print">,
  agentToken: string,
  crypt: ModdableCrypt,
  seed?: string,
): void =>
  saying(sdk.print, () => {
    const ports = { storage: valueStorage(sdk.values), suite: moddableSuite(crypt) };
    provisionAgent(ports, agentToken, seed);
    sdk.print("provisioned: build and flash again, without provision=1");
  });
