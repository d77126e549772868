/**
 * Programs over the relay, on small devices whose host has a place for them: `startWithPushes` in
 * place of `startAgent`. A module of its own, so that a project without it does not contain it.
 *
 * What is pushed is byte code, because no parser of text has to be on a device. Byte code fits one
 * build of an engine only, and engines run it unchecked, so it begins with the build's number.
 */
import { toHex } from "@blindrelay/protocol/crypto";
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
import type { Agent, AgentCore, Program } from "../index.ts";
import type { RuntimePorts } from "./host.ts";
import { type StartOptions, startAgent } from "./start.ts";

/** "brbc". */
const MAGIC = "62726263";
/** With the build's number. */
const HEAD_BYTES = 12;
/** Enough time to send the answer. */
const RESTART_MS = 500;

/**
 * Written by the host: two slots in flash, 0 and 1. The first program is the caller's own, so slot
 * 0 is empty until a program is pushed.
 */
export interface ProgramSlots {
  /** The engine's build, whose byte code it runs: 16 lower-case hexadecimal digits. */
  readonly build: string;
  /** Bytes of a slot. */
  readonly room: number;
  erase(slot: number): void;
  /** Parts come in order, after `erase`. Durable on return; throws if it cannot. */
  write(slot: number, at: number, part: Uint8Array): void;
  /** Of the first `size` bytes that are stored, in lower-case hexadecimal. */
  sha256(slot: number, size: number): string;
  /** Runs the module in the slot, and returns its default export. Throws if there is none. */
  load(slot: number): Program;
  /** Ends this start, and begins the next. */
  restart(): void;
  /** Why the start before this one ended, if it failed and the host knows; else "". */
  readonly ended: string;
  /** Whether the host restarts the device when a program does not return. */
  readonly hasWatchdog: boolean;
}

/** The build that a file of byte code names at its beginning; null: it is none. */
export const byteCodeBuild = (bytes: Uint8Array): string | null => {
  const head = toHex(bytes.subarray(0, HEAD_BYTES));
  return bytes.length >= HEAD_BYTES && head.startsWith(MAGIC) ? head.substring(MAGIC.length) : null;
};

/** Throws for the first part of what is not byte code of this build. */
const demandBuild = (part: Uint8Array, build: string): void => {
  const given = byteCodeBuild(part);
  if (given === build) return;
  const what = given === null ? "not byte code" : `byte code of build ${given}`;
  throw new Error(`it is ${what}: this device takes that of build ${build}`);
};

/**
 * Starts the agent with the program that was pushed and kept, one that is on trial, or else
 * `options.program`. `pushKey`: which has to prove every program; null: who may call the device
 * programs it. Throws as `startAgent` does, and for a trial that throws.
 */
export const startWithPushes = (
  ports: RuntimePorts,
  options: StartOptions,
  slots: ProgramSlots,
  pushKey: string | null,
): AgentCore => {
  const { timer, storage, suite, log } = ports;
  const { ended } = slots;
  if (ended !== "") {
    const isTrial = readPush(storage).trial?.started === true;
    if (isTrial) failTrial(storage, ended);
    if (options.keepLog) tellEnd(storage, endReason(ended, isTrial), ended);
  }
  const state = startPush(storage);
  const { trial } = state;
  let onTrial = trial !== null;
  const restart = (failure: string): void => {
    if (options.keepLog) tellEnd(storage, "push", failure);
    slots.restart();
  };
  const giveUp = (reason: string): void => {
    failTrial(storage, reason);
    restart(reason);
  };
  const deadline =
    trial === null
      ? null
      : timer.set(trial.seconds * 1000, () => giveUp(`it was not confirmed in ${trial.seconds} s`));
  const program = (agent: Agent): void => {
    try {
      slots.load(slotOf(state))(agent);
    } catch (thrown) {
      if (trial !== null) {
        giveUp(reasonOf(thrown));
        throw thrown;
      }
      // The agent continues without it, and accepts another.
      log("error", "the program that was pushed and kept cannot be started", {
        reason: reasonOf(thrown),
      });
    }
  };
  const isOwn = trial === null && state.id === "";
  const pushed = { program, firmwareVersion: (trial ?? state).version };
  const core = startAgent(ports, { ...options, ...(isOwn ? {} : pushed) });
  const transfer = newTransfer();
  const port = (): PushPort => ({
    key: pushKey,
    agentId: core.agent.id,
    suite,
    storage,
    maxPlaintext: core.maxPlaintext,
    room: () => slots.room,
    erase: (slot) => slots.erase(slot),
    write: (slot, at, _size, part) => {
      if (at === 0) demandBuild(part, slots.build);
      slots.write(slot, at, part);
    },
    sha256: (slot) => slots.sha256(slot, transfer.stored),
    restart: () => timer.set(RESTART_MS, () => restart("")),
    onTrial,
    hasWatchdog: slots.hasWatchdog,
    confirmed: () => {
      onTrial = false;
      timer.clear(deadline);
    },
  });
  core.dispatcher.add(PUSH_METHOD, (params) => {
    const answer = answerPush(port(), transfer, params);
    return "room" in answer ? { ...answer, build: slots.build } : answer;
  });
  return core;
};
