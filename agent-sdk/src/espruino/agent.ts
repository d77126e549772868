/**
 * An agent on Espruino, for any transport: main.ts gives it WebSockets, serial.ts a UART. The
 * configuration written by `blindrelay provision` is in Storage under "blindrelay.json".
 *
 * A start raises the boot count in Storage before anything is sent. `save()` stores RAM, so before
 * it (and before any reset) the agent is stopped and forgotten, and afterwards a new one is made.
 *
 * [portable]
 */

import { decodeJson } from "@blindrelay/protocol/crypto";
import type { Program } from "../core/agent.ts";
import { AgentCore } from "../core/agent-core.ts";
import { provisionBootCount, raiseBootCount } from "../core/bootcount.ts";
import { reasonOf } from "../core/dispatch.ts";
import { limitsOf, SMALL_AGENT_LIMITS } from "../core/limits.ts";
import type { AgentStatus } from "../core/link.ts";
import {
  type DeviceLog,
  endLog,
  keepingLog,
  keepLine,
  openLog,
  type RestartReason,
  SMALL_LOG_BYTES,
  serveLog,
} from "../core/log.ts";
import type { LinkPort } from "../ports.ts";
import { SDK_VERSION } from "../version.ts";
import type { EspruinoCrypto, EspruinoStorage } from "./board.ts";
import type { BoardConfig } from "./files.ts";
import { readConfig, storageFiles } from "./files.ts";
import { boardLog, boardRandom, boardTimer } from "./ports.ts";
import { EspruinoSuite } from "./suite.ts";

declare const require: (name: string) => unknown;
declare const process: {
  env: { BOARD: string; VERSION: string };
  memory(collect?: boolean): { free: number; total: number; blocksize: number };
  on(event: "uncaughtException", fn: (thrown: unknown) => void): void;
};
declare const E: {
  on(event: "kill", fn: () => void): void;
  on(event: "errorFlag", fn: (flags: readonly string[]) => void): void;
  defrag(): void;
};
declare const getSerial: () => string;

/** Needed by the shortest message until it is answered, on a board of 32 bits. */
export const MESSAGE_VARIABLES = 360;
/**
 * Must be free beside a session that is about to be stored, in the middle of a message: others may
 * wait in the link's buffer.
 */
const SESSION_VARIABLES = 450;
/**
 * Boards with more than this (Pico, WiFi, ESP32) have room for larger messages; see
 * docs/espruino.md.
 */
const ROOMY_VARIABLES = 4000;
/** Twice what a call of 256 B takes at its peak. */
const TIGHT_VARIABLES = 800;

export const boardStorage = require("Storage") as EspruinoStorage;
export const boardCrypto = require("crypto") as EspruinoCrypto;

/** Whether this many are free after a garbage collection, which takes long on a large board. */
export const hasFree = (variables: number): boolean =>
  process.memory(false).free > 2 * variables || process.memory(true).free > variables;

/**
 * A bare packet is read in place; the JSON around one is copied three times. A variable holds nine
 * characters of a text.
 */
const hasRoomFor = (text: string): boolean =>
  hasFree(MESSAGE_VARIABLES + text.length / (text.charAt(2) === "v" ? 9 : 3));

/** On a nearly full board free memory is fragmented. */
const makeRoom = (): void => {
  if (process.memory(false).free < TIGHT_VARIABLES) E.defrag();
};

export const boardSuite = new EspruinoSuite(boardCrypto, makeRoom);

let core: AgentCore | null = null;
let kept: DeviceLog | null = null;
/** Whether this start has run out of memory. */
let isStarved = false;
let thrower: ((thrown: unknown) => void) | null = null;

/** The board will restart: what it says of that when it is back. */
export const tellEnd = (reason: RestartReason, text: string): void => {
  if (kept !== null) endLog(kept, isStarved ? "memory" : reason, text);
};

/** Keeps in flash that memory ran out: once, and by itself, since endLog may not find enough. */
export const tellStarved = (): void => {
  if (isStarved || kept === null) return;
  isStarved = true;
  boardStorage.write("log.last", "memory\nit ran out of memory");
};

/** `fn` gets what is thrown outside of handlers. */
export const watchThrows = (fn: (thrown: unknown) => void): void => {
  thrower = fn;
};

const freeBytes = (): number => process.memory().free * process.memory().blocksize;

/**
 * How to reach the relay; `maxMessage`: bytes of the longest message that the board has room for.
 */
export type BoardLinks = (config: BoardConfig, bootCount: number, maxMessage: number) => LinkPort;

const makeCore = (firmwareVersion: string | undefined, links: BoardLinks): AgentCore => {
  const config = readConfig(boardStorage);
  // Throws if board or file does not support that packet version, before a start is counted.
  boardSuite.aeadKey(config.v, new Uint8Array(32));
  const count = raiseBootCount(storageFiles(boardStorage), boardSuite, config.agent_token);
  if (!count.ok) throw new Error(count.advice);
  const roomy = process.memory().total > ROOMY_VARIABLES;
  const bytes = config.log === undefined ? SMALL_LOG_BYTES : config.log;
  let log = boardLog;
  if (bytes > 0) {
    kept = openLog({
      bytes: bytes,
      bootCount: count.count,
      timer: boardTimer,
      storage: storageFiles(boardStorage),
      secrets: [config.relay_token, config.agent_token].concat(
        config.wifi === undefined ? [] : [config.wifi.password],
      ),
    });
    log = keepingLog(kept, boardLog, () => "");
  }
  const made = new AgentCore({
    url: config.url,
    agentId: config.agent_id,
    relayToken: config.relay_token,
    agentToken: config.agent_token,
    version: config.v,
    name: config.name === undefined ? config.agent_id : config.name,
    // Programs for a board with Unicode strings have other literals.
    runtime: `espruino ${process.env.VERSION} ${process.env.BOARD}${(decodeJson('"\\u20ac"') as string).length === 1 ? " unicode" : ""}`,
    firmwareVersion: firmwareVersion,
    sdkVersion: SDK_VERSION,
    bootCount: count.count,
    deviceRandom: boardRandom(16),
    serialNumber: getSerial(),
    freeMemory: freeBytes,
    hasRoom: hasRoomFor,
    freshStack: true,
    maxPlaintext: roomy ? 2048 : 384,
    limits: limitsOf(
      Object.assign({ hasRoom: () => hasFree(SESSION_VARIABLES) }, SMALL_AGENT_LIMITS),
      config.limits,
    ),
    ports: {
      link: links(config, count.count, roomy ? 4096 : 1536),
      timer: boardTimer,
      random: boardRandom,
      suite: boardSuite,
      log: log,
    },
  });
  if (kept !== null) serveLog(kept, made);
  return made;
};

/**
 * Starts the agent with a device program. `firmwareVersion`: of that program, as SemVer; sent to
 * the relay at every login. Throws if the board is not provisioned.
 */
export const startOver = (
  links: BoardLinks,
  program: Program,
  firmwareVersion: string | undefined,
): void => {
  if (core !== null) throw new Error("the agent runs already");
  core = makeCore(firmwareVersion, links);
  program(core.agent);
  core.start();
};

/** The running agent. */
export const boardCore = (): AgentCore | null => core;

/** Ends the agent; `start` makes a new one. */
export const stopAgent = (): void => {
  if (core !== null) core.stop();
  core = null;
  kept = null;
};

/** The agent's status; null if none is running. */
export const agentStatus = (): AgentStatus | null => (core === null ? null : core.link.status);

/** Writes the boot count of a new agent_token; called once by `blindrelay provision`. */
export const provisionAgent = (): void => {
  const token = readConfig(boardStorage).agent_token;
  const result = provisionBootCount(storageFiles(boardStorage), boardSuite, token);
  if (!result.ok) throw new Error(result.advice);
};

// Before save(), load() and reset(): no saved image may contain a session or epoch.
E.on("kill", stopAgent);

E.on("errorFlag", (flags) => {
  if (flags.indexOf("MEMORY") >= 0) tellStarved();
});

process.on("uncaughtException", (thrown) => {
  if (thrower !== null) thrower(thrown);
  // Another timer of the same pass that catches an error takes this one's value.
  const reason = thrown === undefined ? "unknown" : reasonOf(thrown);
  // biome-ignore lint/style/useTemplate: on Espruino a template forgets that a text is UTF-8.
  if (kept !== null) keepLine(kept, "error", "uncaught: " + reason, undefined);
  // For the console.
  throw thrown;
});
