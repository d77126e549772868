/**
 * The door on Espruino: `require("blindrelay").start(program)`, where the configuration that
 * `blindrelay provision` wrote lies in Storage under "blindrelay.json".
 *
 * A start raises the boot count in Storage before anything is sent. `save()` keeps RAM: so before it
 * (and before any reset) the agent is stopped and forgotten, and after it a new one is made.
 *
 * [portable]
 */
import type { Program } from "../core/agent.ts";
import type { AgentStatus } from "../core/agent-core.ts";
import { AgentCore } from "../core/agent-core.ts";
import { provisionBootCount, raiseBootCount } from "../core/bootcount.ts";
import type { EspruinoCrypto, EspruinoSockets, EspruinoStorage } from "./board.ts";
import { readConfig, storageFiles } from "./files.ts";
import { boardLog, boardRandom, boardTimer } from "./ports.ts";
import { EspruinoSuite } from "./suite.ts";
import { WebSocketLinks } from "./websocket.ts";

declare const require: (name: string) => unknown;
declare const process: {
  env: { BOARD: string; VERSION: string };
  memory(collect?: boolean): { free: number; total: number; blocksize: number };
};
declare const E: { on(event: "kill", fn: () => void): void; defrag(): void };
declare const getSerial: () => string;

const SDK_VERSION = "0.1.0";
const BOARD_MAX_SESSIONS = 4;
/** Boards from here on (Pico, WiFi, ESP32) have room for larger messages; see docs/runtimes.md. */
const ROOMY_VARIABLES = 4000;
/** Twice what a call of 256 B takes at its peak. */
const TIGHT_VARIABLES = 800;

const storage = require("Storage") as EspruinoStorage;
const crypto = require("crypto") as EspruinoCrypto;

/** A board that is nearly full has its free variables strewn about. */
const makeRoom = (): void => {
  if (process.memory(false).free < TIGHT_VARIABLES) E.defrag();
};

const suite = new EspruinoSuite(crypto, makeRoom);

let core: AgentCore | null = null;

const optionalSockets = (name: string): EspruinoSockets | null => {
  try {
    return require(name) as EspruinoSockets;
  } catch {
    return null;
  }
};

const freeBytes = (): number => process.memory().free * process.memory().blocksize;

const makeCore = (): AgentCore => {
  const config = readConfig(storage);
  const count = raiseBootCount(storageFiles(storage), suite, config.agent_token);
  if (!count.ok) throw new Error(count.advice);
  const roomy = process.memory().total > ROOMY_VARIABLES;
  return new AgentCore({
    url: config.url,
    agentId: config.agent_id,
    relayToken: config.relay_token,
    agentToken: config.agent_token,
    version: config.v,
    name: config.name === undefined ? config.agent_id : config.name,
    runtime: `espruino ${process.env.VERSION} ${process.env.BOARD}`,
    sdkVersion: SDK_VERSION,
    bootCount: count.count,
    deviceRandom: boardRandom(16),
    serialNumber: getSerial(),
    freeMemory: freeBytes,
    freshStack: true,
    maxPlaintext: roomy ? 2048 : 384,
    limits: { maxSessions: BOARD_MAX_SESSIONS, unheldPerSecond: 2, unheldBurst: 8 },
    ports: {
      link: new WebSocketLinks({
        net: require("net") as EspruinoSockets,
        tls: optionalSockets("tls"),
        random: boardRandom,
        crypto: crypto,
        timer: boardTimer,
        maxMessage: roomy ? 4096 : 1536,
      }),
      timer: boardTimer,
      random: boardRandom,
      suite: suite,
      log: boardLog,
    },
  });
};

/** Starts the agent with a device program. Throws where the board is not provisioned. */
const startAgent = (program: Program): void => {
  if (core !== null) throw new Error("the agent runs already");
  core = makeCore();
  program(core.agent);
  core.start();
};

/** Ends the agent; `start` makes a new one. */
const stopAgent = (): void => {
  if (core !== null) core.stop();
  core = null;
};

/** How the agent is; null while none runs. */
const agentStatus = (): AgentStatus | null => (core === null ? null : core.currentStatus());

/** Writes the boot count of a new agent_token; `blindrelay provision` calls it once. */
const provisionAgent = (): void => {
  const token = readConfig(storage).agent_token;
  const result = provisionBootCount(storageFiles(storage), suite, token);
  if (!result.ok) throw new Error(result.advice);
};

// Before save(), load() and reset(): no session or epoch may get into a saved image.
E.on("kill", stopAgent);

export {
  agentStatus as status,
  provisionAgent as provision,
  startAgent as start,
  stopAgent as stop,
};
