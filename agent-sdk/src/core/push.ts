/**
 * A device program that is pushed over the relay, in sealed calls of `system.push`
 * (protocol/README.md). It is written to the slot that is not running, verified as a whole, run as
 * a trial, and kept once confirmed.
 *
 * There are two slots for programs, and a record of which one is good:
 *
 *   state     event      next      the device runs
 *   steady    stored     stored    the good program, and restarts
 *   stored    start      trying    the trial; the record says so before it is run
 *   trying    confirm    steady    the trial, which is the good program from now on
 *   trying    fail       steady    the good program, after a restart
 *   trying    start      steady    the good program: what restarts unconfirmed has failed
 *
 * The record is written alternately to two files, with a checksum: a torn write leaves the older
 * one, as if the event had not happened. The good program is never overwritten.
 *
 * A device with a push key takes only programs that were proven with it, each under a serial above
 * the last one. The last serial is stored in the same way, before anything else is changed, and
 * stays when programs are discarded: otherwise an older program could come again.
 *
 * [portable]
 */
import {
  encodeJson,
  fromBase64url,
  isObject,
  own,
  pushProof,
  type Suite,
} from "@blindrelay/protocol/crypto";
import type { StoragePort } from "../ports.ts";
import { demandNewSerial, keepSerial, lastSerial, provenSerial } from "./push-serial.ts";
import { readNewer, writeNext } from "./record.ts";

export const PUSH_METHOD = "system.push";

/** Two files. */
const RECORD = "push";

/** Digits of a program's hash that identify it. */
const ID_LENGTH = 16;
const MAX_SECONDS = 3600;
const MAX_VERSION = 32;
const MAX_REASON = 80;
/** Limits of each as JSON, with escapes, so that the answer fits into the shortest plaintext. */
const MAX_VERSION_JSON = 66;
const MAX_REASON_JSON = 122;
/** The part of a request around its data, with an `expires` of ten digits. */
const REQUEST_BYTES = 128;

export interface Trial {
  readonly id: string;
  readonly version: string;
  /** Time from the start until the trial has failed, unless it is confirmed. */
  readonly seconds: number;
  /** Whether it was started. */
  readonly started: boolean;
}

export interface PushState {
  /** Number of the record; the higher one is valid. */
  readonly n: number;
  /** 0 or 1: the slot of the good program. */
  readonly slot: number;
  /** The first 16 hexadecimal digits of its SHA-256; "" for one that was not pushed. */
  readonly id: string;
  readonly version: string;
  /** The program in the other slot. */
  readonly trial: Trial | null;
  /** The last one that failed, if nothing was kept since. */
  readonly failed: { readonly id: string; readonly reason: string } | null;
}

/** The received part of a program; only in memory, so a restart ends the transfer. */
export interface Transfer {
  sha256: string;
  version: string;
  seconds: number;
  /** Bytes; 0 if nothing is being pushed. */
  size: number;
  /** Bytes stored. */
  stored: number;
}

/** What a device must provide to accept pushes. */
export interface PushPort {
  /** The push key; null: it takes programs from everybody who may call it. */
  readonly key: string | null;
  readonly agentId: string;
  readonly suite: Suite;
  readonly storage: StoragePort;
  /** Bytes of the longest call. */
  readonly maxPlaintext: number;
  /** Maximum size of a program in this slot, once its current content is erased. */
  room(slot: number): number;
  erase(slot: number): void;
  /** Stores a part of a program of `size` bytes; parts come in order. Throws if it cannot. */
  write(slot: number, at: number, size: number, part: Uint8Array): void;
  /** In lower-case hexadecimal, computed from the stored bytes. */
  sha256(slot: number): string;
  /** Restarts soon, after the answer has been sent. */
  restart(): void;
  /** Whether this start runs the trial, also one that has failed and ends in a moment. */
  readonly onTrial: boolean;
  /** Whether a program that hangs is ended. */
  readonly hasWatchdog: boolean;
  /** Confirms the running trial. */
  confirmed(): void;
}

const NONE: PushState = { n: 0, slot: 0, id: "", version: "", trial: null, failed: null };

export const newTransfer = (): Transfer => ({
  sha256: "",
  version: "",
  seconds: 0,
  size: 0,
  stored: 0,
});

export const readPush = (storage: StoragePort): PushState => readNewer(storage, RECORD, NONE);

const writePush = (storage: StoragePort, before: PushState, change: object): PushState =>
  writeNext(storage, RECORD, before, change);

const isShort = (text: string, max: number, maxJson: number): boolean =>
  text.length <= max && (encodeJson(text) as string).length <= maxJson;

/** The trial has failed: the good program runs from the next start on. */
export const failTrial = (storage: StoragePort, reason: string): PushState => {
  const state = readPush(storage);
  if (state.trial === null) return state;
  let short = reason.substring(0, MAX_REASON);
  while (!isShort(short, MAX_REASON, MAX_REASON_JSON)) short = short.substring(0, short.length - 8);
  const failed = { id: state.trial.id, reason: short };
  try {
    return writePush(storage, state, { trial: null, failed: failed });
  } catch {
    // The next start comes to the same result.
    return Object.assign({}, state, { trial: null, failed: failed }) as PushState;
  }
};

/** Decides which program runs. Call it once at every start, before a program runs. */
export const startPush = (storage: StoragePort): PushState => {
  const state = readPush(storage);
  const trial = state.trial;
  if (trial === null) return state;
  if (trial.started) return failTrial(storage, "it restarted before it was confirmed");
  try {
    return writePush(storage, state, { trial: Object.assign({}, trial, { started: true }) });
  } catch {
    return failTrial(storage, "no space for its record");
  }
};

/** The slot of the program that this start runs. */
export const slotOf = (state: PushState): number =>
  state.trial === null ? state.slot : 1 - state.slot;

const isCountTo = (value: unknown, max: number): value is number =>
  typeof value === "number" && value >= 1 && value <= max && value % 1 === 0;

const begin = (port: PushPort, transfer: Transfer, params: object, slot: number): void => {
  const digest = own(params, "sha256");
  const version = own(params, "version");
  const size = own(params, "size");
  const seconds = own(params, "seconds");
  if (
    typeof digest !== "string" ||
    digest.length !== 64 ||
    typeof version !== "string" ||
    !isShort(version, MAX_VERSION, MAX_VERSION_JSON) ||
    !isCountTo(seconds, MAX_SECONDS)
  ) {
    throw new Error("not a push");
  }
  const key = port.key;
  let serial = 0;
  if (key !== null) {
    const proofOf = (n: number): string =>
      pushProof(port.suite, key, port.agentId, n, size as number, digest);
    serial = provenSerial(params, proofOf, "push");
    const last = lastSerial(port.storage);
    // That of the push in progress, whose answer was lost; another one may be proven, too.
    if (serial === last && transfer.size > 0 && transfer.sha256 === digest) return;
    demandNewSerial(serial, last);
  }
  if (!isCountTo(size, port.room(slot))) throw new Error("no room for it");
  if (key !== null) keepSerial(port.storage, serial);
  transfer.size = 0;
  port.erase(slot);
  transfer.sha256 = digest;
  transfer.version = version;
  transfer.seconds = seconds;
  transfer.size = size;
  transfer.stored = 0;
};

const store = (port: PushPort, transfer: Transfer, at: number, data: unknown, slot: number) => {
  const part = typeof data === "string" ? fromBase64url(data) : null;
  if (part === null || part.length === 0) throw new Error("not a part");
  // A repeated part is confirmed again.
  if (at >= 0 && at + part.length <= transfer.stored) return;
  if (at !== transfer.stored || at + part.length > transfer.size)
    throw new Error("not the next part");
  try {
    port.write(slot, at, transfer.size, part);
  } catch (thrown) {
    transfer.size = 0;
    throw thrown;
  }
  transfer.stored = at + part.length;
};

const finish = (port: PushPort, transfer: Transfer, state: PushState, slot: number): void => {
  if (transfer.size === 0 || transfer.stored !== transfer.size) throw new Error("it is not whole");
  transfer.size = 0;
  const digest = port.sha256(slot);
  if (digest !== transfer.sha256.toLowerCase()) throw new Error("it was not stored as sent");
  const trial = {
    id: digest.substring(0, ID_LENGTH),
    version: transfer.version,
    seconds: transfer.seconds,
    started: false,
  };
  writePush(port.storage, state, { trial: trial, failed: null });
  port.restart();
};

const confirm = (port: PushPort, state: PushState, id: unknown): void => {
  const trial = state.trial;
  if (trial === null && state.id !== "" && state.id === id) return;
  if (trial === null || !port.onTrial || trial.id !== id) throw new Error("it is not on trial");
  const change = {
    slot: 1 - state.slot,
    id: trial.id,
    version: trial.version,
    trial: null,
    failed: null,
  };
  writePush(port.storage, state, change);
  port.confirmed();
};

/**
 * Answers `system.push`. Throws an Error if it refuses; then nothing has changed, except that a
 * transfer may have to restart.
 */
export const answerPush = (port: PushPort, transfer: Transfer, params: unknown): object => {
  const asked = isObject(params) ? params : {};
  const state = readPush(port.storage);
  const slot = 1 - state.slot;
  const at = own(asked, "at");
  const id = own(asked, "confirm");
  if (id !== undefined) confirm(port, state, id);
  else if (state.trial === null && !port.onTrial) {
    if (own(asked, "size") !== undefined) begin(port, transfer, asked, slot);
    else if (typeof at === "number") store(port, transfer, at, own(asked, "data"), slot);
    else if (own(asked, "start") === true) finish(port, transfer, state, slot);
    if (Object.keys(asked).length > 0) return { stored: transfer.stored };
  } else if (Object.keys(asked).length > 0) throw new Error("a program is on trial");
  const now = readPush(port.storage);
  // A trial that has failed is reported once the good program is running.
  const running = !port.onTrial ? null : now.trial === null ? now.failed : now.trial;
  return {
    id: now.id,
    version: now.version,
    trial: running === null ? null : running.id,
    failed: port.onTrial ? null : now.failed,
    room: port.room(1 - now.slot),
    // Whole words of flash, and whole groups of base64.
    part: Math.floor((port.maxPlaintext - REQUEST_BYTES) / 32) * 24,
    watchdog: port.hasWatchdog,
    serial: lastSerial(port.storage),
  };
};
