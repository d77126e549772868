/**
 * A Node agent that accepts programs over the relay (core/push.ts). Its slots and records are files
 * in its state folder; slot 0 is empty until a program is pushed, because the first program is the
 * caller's own.
 *
 * A program can hang its process, exhaust its memory or exit, and only another process survives
 * that. So an agent that accepts pushes needs a supervisor that calls `endTrial` and restarts it.
 */
import { hash } from "node:crypto";
import {
  closeSync,
  constants,
  fsyncSync,
  openSync,
  readFileSync,
  rmSync,
  writeSync,
} from "node:fs";
import { dirname, join } from "node:path";
import type { Suite } from "@blindrelay/protocol/crypto";
import { giveToOwner, NO_LINK } from "@blindrelay/protocol/file-owner";
import { flushFolder } from "@blindrelay/protocol/platform";
import type { Agent, Program } from "../core/agent.ts";
import type { AgentCore } from "../core/agent-core.ts";
import { reasonOf } from "../core/dispatch.ts";
import {
  answerPush,
  failTrial,
  newTransfer,
  PUSH_METHOD,
  type PushPort,
  readPush,
  slotOf,
  startPush,
} from "../core/push.ts";
import { endReason, tellEnd } from "../core/tell-end.ts";
import type { Log } from "../ports.ts";
import { StateError } from "./errors.ts";
import { lockState, type StateLock } from "./lock.ts";
import { folderStorage } from "./storage.ts";

/** The suffix makes each a module, whatever the folder's package.json says. */
const PROGRAMS = ["program.0.mjs", "program.1.mjs"] as const;
const MAX_BYTES = 4 * 1024 * 1024;
/** Enough time to send the answer. */
const RESTART_MS = 500;
/** How long to wait for the start of a kept program. */
const START_LIMIT_MS = 60_000;

export interface TakesPushes {
  /** Loads the program from a pushed file. Rejects if it cannot be loaded. */
  load(path: string): Promise<Program | ((agent: Agent) => Promise<void>)>;
  /**
   * Ends the process that runs the agent, so that `startAgent` is called again on the same folder.
   */
  restart(): void;
}

/** One start of an agent that accepts pushes. */
export interface PushedStart {
  /** What runs instead of the caller's program; null: nothing was pushed. */
  readonly program: ((agent: Agent) => Promise<void>) | null;
  /** Its version, reported to the relay; null if it has none. */
  readonly version: string | null;
  takePushes(core: AgentCore): void;
  /** May be repeated. */
  stop(): void;
}

/**
 * Call it once for every start, under the folder's lock, before a program runs. `key`: the push
 * key, without which no program is taken; null: anyone who may call the agent pushes. `ending`:
 * told before the restart, with what failed, or "".
 */
export const pushedStart = (
  stateDir: string,
  options: TakesPushes,
  key: string | null,
  suite: Suite,
  log: Log,
  ending: (text: string) => void,
): PushedStart => {
  const storage = folderStorage(stateDir);
  const transfer = newTransfer();
  const state = startPush(storage);
  const trial = state.trial;
  let stopped = false;
  let onTrial = trial !== null;
  const restart = (failure = ""): void => {
    if (stopped) return;
    ending(failure);
    options.restart();
  };
  const giveUp = (reason: string): void => {
    failTrial(storage, reason);
    restart(reason);
  };
  const deadline =
    trial === null
      ? undefined
      : setTimeout(
          () => giveUp(`it was not confirmed in ${trial.seconds} s`),
          trial.seconds * 1000,
        );
  const pathOf = (slot: number): string => join(stateDir, PROGRAMS[slot as 0 | 1]);
  const port = (core: AgentCore): PushPort => ({
    key,
    agentId: core.agent.id,
    suite,
    storage,
    maxPlaintext: core.maxPlaintext,
    room: () => MAX_BYTES,
    erase: (slot) => rmSync(pathOf(slot), { force: true }),
    write: (slot, at, size, part) => {
      writePart(pathOf(slot), at, part);
      if (at + part.length === size) flushFolder(stateDir);
    },
    sha256: (slot) => hash("sha256", readFileSync(pathOf(slot))),
    restart: () => setTimeout(restart, RESTART_MS),
    onTrial,
    hasWatchdog: true,
    confirmed: () => {
      onTrial = false;
      clearTimeout(deadline);
    },
  });
  const begin = async (agent: Agent): Promise<void> =>
    (await options.load(pathOf(slotOf(state))))(agent);
  const program = async (agent: Agent): Promise<void> => {
    try {
      // A trial has its own deadline.
      await (trial === null ? inTime(begin(agent)) : begin(agent));
    } catch (thrown) {
      if (trial !== null) {
        giveUp(reasonOf(thrown));
        throw thrown;
      }
      // The agent continues without it, and accepts another.
      const reason = { reason: reasonOf(thrown) };
      log("error", "the program that was pushed and kept cannot be started", reason, thrown);
    }
  };
  const isOwn = trial === null && state.id === "";
  return {
    program: isOwn ? null : program,
    version: isOwn ? null : (trial ?? state).version,
    takePushes: (core) =>
      core.dispatcher.add(PUSH_METHOD, (params) => answerPush(port(core), transfer, params)),
    stop() {
      stopped = true;
      clearTimeout(deadline);
    },
  };
};

const inTime = async (started: Promise<void>): Promise<void> => {
  let timer: NodeJS.Timeout | undefined;
  const limit = new Promise<never>((_resolve, reject) => {
    const late = new Error(`it has not started in ${START_LIMIT_MS / 1000} s`);
    timer = setTimeout(() => reject(late), START_LIMIT_MS);
  });
  await Promise.race([started, limit]).finally(() => clearTimeout(timer));
};

/**
 * For the supervisor, when the agent's process has ended by itself: a running trial has failed, and
 * a reason that says "memory" is what the next start answers to `system.log`. Returns whether there
 * was one and its failure is stored; also false if the folder cannot be locked, because another
 * agent's trial must not be ended.
 */
export const endTrial = async (stateDir: string, reason: string): Promise<boolean> => {
  let lock: StateLock;
  try {
    lock = await lockState(stateDir);
  } catch (error) {
    if (error instanceof StateError) return false;
    throw error;
  }
  try {
    const storage = folderStorage(stateDir);
    const isTrial = readPush(storage).trial?.started === true;
    const told = endReason(reason, isTrial);
    // Else what the log has said of its last failure stays.
    if (told !== "reset") tellEnd(storage, told, reason);
    if (!isTrial) return false;
    failTrial(storage, reason);
    return readPush(storage).trial === null;
  } finally {
    await lock.release();
  }
};

/** Durable on return. */
const writePart = (path: string, at: number, part: Uint8Array): void => {
  const making = at === 0 ? constants.O_CREAT | constants.O_TRUNC : 0;
  const file = openSync(path, constants.O_RDWR | making | NO_LINK, 0o600);
  try {
    giveToOwner(file, dirname(path));
    for (let done = 0; done < part.length; ) {
      done += writeSync(file, part, done, part.length - done, at + done);
    }
    fsyncSync(file);
  } finally {
    closeSync(file);
  }
};
