/**
 * A Node agent that takes programs over the relay (core/push.ts). Its slots and the records are
 * files in its state folder; slot 0 holds nothing until a program was pushed, because the first
 * one is the caller's own.
 *
 * What a program does to its process (a loop without end, memory, an exit) only another process
 * survives: who takes pushes is supervised by one that calls `endTrial` and starts it anew.
 */
import { createHash } from "node:crypto";
import { closeSync, fsyncSync, openSync, readFileSync, rmSync, writeSync } from "node:fs";
import { join } from "node:path";
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
import type { Log } from "../ports.ts";
import { flushFolder, folderStorage } from "./storage.ts";

/** A module each, whatever the folder's package.json says. */
const PROGRAMS = ["program.0.mjs", "program.1.mjs"] as const;
const MAX_BYTES = 4 * 1024 * 1024;
/** The answer leaves before. */
const RESTART_MS = 500;

export interface TakesPushes {
  /** The program in a file that was pushed. Rejects where it cannot be loaded. */
  load(path: string): Promise<Program | ((agent: Agent) => Promise<void>)>;
  /** Ends what runs the agent, so that `startAgent` is called anew on the same folder. */
  restart(): void;
}

/** One start of an agent that takes pushes. */
export interface PushedStart {
  /** What runs in place of the caller's own program; null: nothing was pushed. */
  readonly program: ((agent: Agent) => Promise<void>) | null;
  /** What the relay is told of that; null with it. */
  readonly version: string | null;
  takePushes(core: AgentCore): void;
  /** Harmless when repeated. */
  stop(): void;
}

/** Once for every start, under the folder's lock, before a program runs. */
export const pushedStart = (stateDir: string, options: TakesPushes, log: Log): PushedStart => {
  const storage = folderStorage(stateDir);
  const transfer = newTransfer();
  const state = startPush(storage);
  const trial = state.trial;
  let stopped = false;
  let onTrial = trial !== null;
  const restart = (): void => {
    if (!stopped) options.restart();
  };
  const giveUp = (reason: string): void => {
    failTrial(storage, reason);
    restart();
  };
  const deadline =
    trial === null
      ? undefined
      : setTimeout(
          () => giveUp(`it was not confirmed in ${trial.seconds} s`),
          trial.seconds * 1000,
        );
  const pathOf = (slot: number): string => join(stateDir, PROGRAMS[slot as 0 | 1]);
  const port = (maxPlaintext: number): PushPort => ({
    storage,
    maxPlaintext,
    room: () => MAX_BYTES,
    erase: (slot) => rmSync(pathOf(slot), { force: true }),
    write: (slot, at, size, part) => {
      writePart(pathOf(slot), at, part);
      if (at + part.length === size) flushFolder(stateDir);
    },
    sha256: (slot) =>
      createHash("sha256")
        .update(readFileSync(pathOf(slot)))
        .digest("hex"),
    restart: () => setTimeout(restart, RESTART_MS),
    onTrial,
    confirmed: () => {
      onTrial = false;
      clearTimeout(deadline);
    },
  });
  const program = async (agent: Agent): Promise<void> => {
    try {
      await (await options.load(pathOf(slotOf(state))))(agent);
    } catch (thrown) {
      if (trial !== null) {
        giveUp(reasonOf(thrown));
        throw thrown;
      }
      // The agent goes on without it, and takes another.
      const reason = { reason: reasonOf(thrown) };
      log("error", "the program that was pushed and kept cannot be started", reason, thrown);
    }
  };
  const isOwn = trial === null && state.id === "";
  return {
    program: isOwn ? null : program,
    version: isOwn ? null : (trial ?? state).version,
    takePushes: (core) =>
      core.dispatcher.add(PUSH_METHOD, (params) =>
        answerPush(port(core.maxPlaintext), transfer, params),
      ),
    stop() {
      stopped = true;
      clearTimeout(deadline);
    },
  };
};

/**
 * For the supervisor, when the agent's process has ended by itself: a trial that ran has failed.
 * Whether another program than before is to be started.
 */
export const endTrial = (stateDir: string, reason: string): boolean => {
  const storage = folderStorage(stateDir);
  const { trial } = readPush(storage);
  if (trial?.started === true) failTrial(storage, reason);
  return trial !== null;
};

/** On the medium when it returns. */
const writePart = (path: string, at: number, part: Uint8Array): void => {
  const file = openSync(path, at === 0 ? "w" : "r+", 0o600);
  try {
    for (let done = 0; done < part.length; ) {
      done += writeSync(file, part, done, part.length - done, at + done);
    }
    fsyncSync(file);
  } finally {
    closeSync(file);
  }
};
