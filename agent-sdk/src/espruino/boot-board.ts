/**
 * A board that accepts programs over the relay (core/push.ts), for the files that include this. Its
 * slots are "program", which `flash` also writes, and "program.1".
 *
 * Its watchdog is fed by a timer, and only while the agent is well: Espruino's own feeding goes on
 * when a program has used all memory, because each turn that fails frees some. The same timer ends
 * a trial that is not confirmed in time; a turn that runs out of memory removes the timer, and the
 * watchdog acts.
 *
 * [portable]
 */

import { LINK_SILENCE_MS } from "@blindrelay/protocol";
import { toHex } from "@blindrelay/protocol/crypto";
import type { Agent, Program } from "../core/agent.ts";
import type { AgentCore } from "../core/agent-core.ts";
import { reasonOf } from "../core/dispatch.ts";
import type { PushPort, Transfer, Trial } from "../core/push.ts";
import {
  answerPush,
  failTrial,
  newTransfer,
  PUSH_METHOD,
  slotOf,
  startPush,
} from "../core/push.ts";
import type { BoardLinks } from "./agent.ts";
import {
  boardCore,
  boardCrypto,
  boardStorage,
  boardSuite,
  hasFree,
  MESSAGE_VARIABLES,
  startOver,
} from "./agent.ts";
import { readConfig, storageFiles } from "./files.ts";
import { placeIn, tellEnd, tellStarved, watchThrows } from "./log.ts";
import { boardTimer } from "./ports.ts";

declare const require: (name: string) => unknown;
declare const load: () => void;
declare const setTimeout: (fn: () => void, ms: number) => unknown;
declare const setInterval: (fn: () => void, ms: number) => unknown;
declare const E: {
  on(event: "kill", fn: () => void): void;
  toUint8Array(text: string): Uint8Array;
  enableWatchdog(seconds: number, isAuto: boolean): void;
  kickWatchdog(): void;
};

const PROGRAMS = ["program", "program.1"];
/** Longer than any call takes; most boards allow no more than 26, RP2040 8.3. */
const WATCHDOG_S = [25, 8];
const FEED_S = 3;
/** After a jump of the clock a deadline seems missed until the relay is heard again. */
const LATE_FEEDS = LINK_SILENCE_MS / 1000 / FEED_S + 5;
/** Enough time to send the answer. */
const RESTART_MS = 500;
/** Bytes of Storage that stay free, for the records and some starts. */
const RESERVE = 1024;

let transfer: Transfer | null = null;
/** Seconds until the running trial has failed, at most 0 once it has; null: none is running. */
let left: number | null = null;
/** Whether the board has a watchdog. */
let isGuarded = false;
/** Feeds in a row that were due and not given. */
let missed = 0;
/** Feeds in a row that found the link's deadline passed: its timer was lost. */
let late = 0;

/** Whether a program is on trial: the board must stay reachable then. */
export const isOnTrial = (): boolean => left !== null;

/** Arms the watchdog, where there is one. `isAuto`: Espruino feeds it whenever it is idle. */
const arm = (isAuto: boolean): void => {
  for (const seconds of WATCHDOG_S) {
    try {
      E.enableWatchdog(seconds, isAuto);
      isGuarded = true;
      return;
    } catch {
      // The chip has none, or none that is so slow.
    }
  }
};

const giveUp = (reason: string): void => {
  left = 0;
  missed = 1;
  // First, because the rest may run out of memory. The boot code's own `load` has no effect, and a
  // timer needs memory.
  load();
  setTimeout(load, 0);
  failTrial(storageFiles(boardStorage), reason);
  tellEnd("push", reason);
};

/** Whether the agent answers calls or tries to come online, and has the memory for it. */
const isWell = (): boolean => {
  const core = boardCore();
  // It was stopped on purpose.
  if (!core) return true;
  const due = core.link.nextDeadline();
  late = due === null || boardTimer.now() < due ? 0 : late + 1;
  return core.link.state !== "idle" && late < LATE_FEEDS && hasFree(MESSAGE_VARIABLES);
};

const feed = (): void => {
  missed = isWell() ? 0 : missed + 1;
  if (left !== null) {
    left -= FEED_S;
    if (left <= 0) giveUp("it was not confirmed in time");
  }
  if (missed === 2 && !hasFree(MESSAGE_VARIABLES)) tellStarved();
  if (isGuarded && missed === 0) E.kickWatchdog();
};

const watch = (trial: Trial | null): void => {
  arm(false);
  setInterval(feed, FEED_S * 1000);
  // What starts after reset() or save() does not feed it.
  E.on("kill", () => arm(true));
  if (!trial) return;
  left = trial.seconds;
  watchThrows((thrown) => {
    if (left !== null)
      giveUp(thrown === undefined ? "it threw" : reasonOf(thrown) + placeIn(thrown));
  });
};

const pushPort = (core: AgentCore, key: string | null): PushPort => ({
  key: key,
  agentId: core.agent.id,
  suite: boardSuite,
  storage: storageFiles(boardStorage),
  maxPlaintext: core.maxPlaintext,
  room: (slot) => {
    const old = boardStorage.read(PROGRAMS[slot] as string);
    const trash = boardStorage.getStats === undefined ? 0 : boardStorage.getStats().trashBytes;
    const held = old === undefined ? 0 : old.length;
    return Math.max(0, boardStorage.getFree() + trash + held - RESERVE);
  },
  erase: (slot) => boardStorage.erase(PROGRAMS[slot] as string),
  write: (slot, at, size, part) => {
    if (!boardStorage.write(PROGRAMS[slot] as string, part, at, size)) {
      throw new Error("no space in flash");
    }
  },
  sha256: (slot) => {
    const text = boardStorage.read(PROGRAMS[slot] as string) as string;
    // The native function reads a text in place in flash.
    const bytes = boardCrypto.SHA256 ? (text as unknown as Uint8Array) : E.toUint8Array(text);
    return toHex(boardSuite.hash(bytes));
  },
  restart: () => {
    tellEnd("push", "");
    setTimeout(load, RESTART_MS);
  },
  onTrial: isOnTrial(),
  hasWatchdog: isGuarded,
  confirmed: () => {
    left = null;
  },
});

const takePushes = (core: AgentCore, key: string | null): void =>
  core.dispatcher.add(PUSH_METHOD, (params) => {
    if (transfer === null) transfer = newTransfer();
    return answerPush(pushPort(core, key), transfer, params);
  });

/**
 * Starts the agent with the current program: the last one that was pushed and kept, one on trial
 * or, if none was pushed, the flashed one, with that `firmwareVersion`.
 */
export const bootBoard = (links: BoardLinks, firmwareVersion: string | undefined): void => {
  const state = startPush(storageFiles(boardStorage));
  const trial = state.trial;
  watch(trial);
  const kept = state.id === "" ? firmwareVersion : state.version;
  const run = (agent: Agent): void => {
    // It may have been provisioned again since the file was flashed.
    const config = readConfig(boardStorage);
    const key = config.push_key === undefined ? null : config.push_key;
    if (config.push !== false) takePushes(boardCore() as AgentCore, key);
    try {
      (require(PROGRAMS[slotOf(state)] as string) as Program)(agent);
    } catch (thrown) {
      if (trial !== null) {
        giveUp(reasonOf(thrown) + placeIn(thrown));
        throw thrown;
      }
      // The agent continues without it, and accepts another.
      setTimeout(() => {
        throw thrown;
      }, 0);
    }
  };
  startOver(links, run, trial === null ? kept : trial.version);
};
