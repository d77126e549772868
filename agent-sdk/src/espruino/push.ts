/**
 * A board that accepts programs over the relay (core/push.ts), for the files that include this. Its
 * slots are "program", which `flash` also writes, and "program.1".
 *
 * A watchdog ends a pushed program that hangs. During the trial a timer feeds it, which runs out of
 * memory when the program does; afterwards Espruino feeds it whenever it is idle, and the timer
 * only wakes it for that.
 *
 * [portable]
 */
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
import { boardCore, boardCrypto, boardStorage, boardSuite, startOver } from "./agent.ts";
import { readConfig, storageFiles } from "./files.ts";

declare const require: (name: string) => unknown;
declare const load: () => void;
declare const setTimeout: (fn: () => void, ms: number) => unknown;
declare const setInterval: (fn: () => void, ms: number) => unknown;
declare const clearTimeout: (handle: unknown) => void;
declare const E: {
  toUint8Array(text: string): Uint8Array;
  enableWatchdog(seconds: number, isAuto: boolean): void;
  kickWatchdog(): void;
};

const PROGRAMS = ["program", "program.1"];
/** Longer than any call takes; some boards allow no more than 26. */
const WATCHDOG_S = 25;
const FEED_MS = 5000;
/** Enough time to send the answer. */
const RESTART_MS = 500;
/** Bytes of Storage that stay free, for the records and some starts. */
const RESERVE = 1024;

let transfer: Transfer | null = null;
/** Deadline of the running trial. */
let deadline: unknown = null;

/** Whether a program is on trial: the board must stay reachable then. */
export const isOnTrial = (): boolean => deadline !== null;

const giveUp = (reason: string): void => {
  failTrial(storageFiles(boardStorage), reason);
  load();
};

const watch = (trial: Trial | null): void => {
  E.enableWatchdog(WATCHDOG_S, trial === null);
  setInterval(() => E.kickWatchdog(), FEED_MS);
  if (trial === null) return;
  const seconds = trial.seconds;
  deadline = setTimeout(() => giveUp(`it was not confirmed in ${seconds} s`), seconds * 1000);
};

const pushPort = (maxPlaintext: number): PushPort => ({
  storage: storageFiles(boardStorage),
  maxPlaintext: maxPlaintext,
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
  restart: () => setTimeout(load, RESTART_MS),
  onTrial: isOnTrial(),
  confirmed: () => {
    clearTimeout(deadline);
    deadline = null;
    E.enableWatchdog(WATCHDOG_S, true);
  },
});

const takePushes = (core: AgentCore): void =>
  core.dispatcher.add(PUSH_METHOD, (params) => {
    if (transfer === null) transfer = newTransfer();
    return answerPush(pushPort(core.maxPlaintext), transfer, params);
  });

/**
 * Starts the agent with the current program: the last one that was pushed and kept, one on trial
 * or, if none was pushed, the flashed one, with that `firmwareVersion`.
 */
export const bootBoard = (links: BoardLinks, firmwareVersion: string | undefined): void => {
  const state = startPush(storageFiles(boardStorage));
  const trial = state.trial;
  if (trial !== null || state.id !== "") watch(trial);
  const kept = state.id === "" ? firmwareVersion : state.version;
  const run = (agent: Agent): void => {
    // It may have been provisioned again since the file was flashed.
    if (readConfig(boardStorage).push !== false) takePushes(boardCore() as AgentCore);
    try {
      (require(PROGRAMS[slotOf(state)] as string) as Program)(agent);
    } catch (thrown) {
      if (trial !== null) giveUp(reasonOf(thrown));
      // The agent continues without it, and accepts another.
      setTimeout(() => {
        throw thrown;
      }, 0);
    }
  };
  startOver(links, run, trial === null ? kept : trial.version);
};
