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
import { provisionBootCount } from "../core/bootcount.ts";
import { limitsOf, SMALL_AGENT_LIMITS } from "../core/limits.ts";
import type { AgentStatus } from "../core/link.ts";
import type { LinkPort, Log } from "../ports.ts";
import { SDK_VERSION } from "../version.ts";
import type { EspruinoCrypto, EspruinoStorage } from "./board.ts";
import type { BoardConfig } from "./files.ts";
import { readConfig, storageFiles } from "./files.ts";
import { boardLog, boardRandom, boardTimer } from "./ports.ts";
import { countStart, serveRekeys } from "./start-count.ts";
import { EspruinoSuite } from "./suite.ts";

declare const require: (name: string) => unknown;
declare const process: {
  env: { BOARD: string; VERSION: string };
  memory(collect?: boolean): { free: number; total: number; blocksize: number };
};
declare const E: { on(event: "kill", fn: () => void): void; defrag(): void };
declare const getSerial: () => string;

/** Needed by the shortest message until it is answered, on a board of 32 bits. */
export const MESSAGE_VARIABLES = 360;
/**
 * Needed to seal nothing, and one for each two bytes: an event comes at any time, and an answer
 * when what was free for its call may be taken by others that wait.
 */
const SEAL_VARIABLES = 260;
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

const canSeal = (bytes: number): boolean => hasFree(SEAL_VARIABLES + bytes / 2);

/** On a nearly full board free memory is fragmented. */
const makeRoom = (): void => {
  if (process.memory(false).free < TIGHT_VARIABLES) E.defrag();
};

export const boardSuite = new EspruinoSuite(boardCrypto, makeRoom);

let core: AgentCore | null = null;

/** What log.ts makes for each start, in files that have it. */
export interface BoardLog {
  readonly log: Log;
  readonly serve: (core: AgentCore) => void;
}
type MakeLog = (config: BoardConfig, bootCount: number) => BoardLog;

let logMaker: MakeLog | null = null;

export const useLog = (make: MakeLog): void => {
  logMaker = make;
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
  const count = countStart(boardStorage, boardSuite, config);
  if (!count.ok) throw new Error(count.advice);
  const roomy = process.memory().total > ROOMY_VARIABLES;
  const kept = logMaker === null || config.log === 0 ? null : logMaker(config, count.count);
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
    canSeal: canSeal,
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
      log: kept === null ? boardLog : kept.log,
    },
  });
  if (kept !== null) kept.serve(made);
  serveRekeys(made);
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
