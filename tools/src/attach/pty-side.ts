/**
 * A pseudo-terminal as the port, under a path of the user's choice. It stays while the remote port
 * is away, and while no program has it open: what the device says meanwhile waits.
 */

import { closeSync, lstatSync, readlinkSync, rmSync, symlinkSync, write } from "node:fs";
import { ReadStream } from "node:tty";
import { Failure } from "@blindrelay/protocol/command-line";
import { settingsAsJson } from "@blindrelay/protocol/serial";
import { oneLine, printStatus } from "../base/output.ts";
import { openPty, type Pty } from "../serial/termios.ts";
import type { LocalSide, Remote } from "./local-side.ts";

/** How often it is looked at what the program has set; and at each of its bytes. */
const SETTINGS_MS = 50;
/** A full terminal is tried again after this long: it does not tell that there is room. */
const FULL_MS = 2;
const FULL_MAX_MS = 50;
/** Bytes that wait for the terminal are bounded by what the remote port was granted. */
const PTS = /^\/dev\/(pts\/\d+|ttys\d+)$/;

const exists = (path: string): boolean => lstatSync(path, { throwIfNoEntry: false }) !== undefined;

/**
 * Removes what a dead attach left at the path. `isOurs`: whether a link's target was ours.
 * Throws a Failure if something else is there.
 */
const clear = (path: string, isOurs: (target: string) => boolean): void => {
  const found = lstatSync(path, { throwIfNoEntry: false });
  if (found === undefined) return;
  const target = found.isSymbolicLink() ? readlinkSync(path) : null;
  if (target !== null && PTS.test(target) && (isOurs(target) || !exists(target))) {
    rmSync(path);
    return;
  }
  const what = target === null ? "it is no link" : `it is a link to ${target}, none`;
  throw new Failure("usage", `${path} exists, and ${what} that an ended attach has left`);
};

/** The side of a terminal that is open, and linked at `where`. */
const sideOf = (remote: Remote, where: string, pty: Pty): LocalSide => {
  const waiting: Uint8Array[] = [];
  let isWriting = false;
  let fullMs = FULL_MS;
  let isClosed = false;
  /** A program may set something before the port is there. */
  const initial = pty.settings();
  let known = initial;

  /** Passes on what the program has set, before its next bytes. */
  const followSettings = (): void => {
    if (known === null || isClosed) return;
    const now = pty.settings();
    if (now === null || JSON.stringify(now) === JSON.stringify(known)) return;
    const [from, to] = [settingsAsJson(known), settingsAsJson(now)];
    const names = Object.keys(to) as (keyof typeof to)[];
    const changed = Object.fromEntries(
      names.filter((name) => from[name] !== to[name]).map((name) => [name, to[name]]),
    );
    known = now;
    remote.configure(changed).catch((error: Error) => {
      printStatus(`${where}: ${JSON.stringify(changed)} was refused: ${oneLine(error.message)}`);
    });
  };

  const writeNext = (): void => {
    const first = waiting[0];
    if (isWriting || first === undefined || isClosed) return;
    isWriting = true;
    write(pty.master, first, (error, written) => {
      isWriting = false;
      if (isClosed) return;
      if (error !== null) {
        fullMs = Math.min(fullMs * 2, FULL_MAX_MS);
        setTimeout(writeNext, fullMs);
        return;
      }
      fullMs = FULL_MS;
      if (written < first.length) waiting[0] = first.subarray(written);
      else waiting.shift();
      remote.taken(written);
      writeNext();
    });
  };

  const reader = new ReadStream(pty.master);
  reader.on("data", (bytes: Uint8Array) => {
    followSettings();
    remote.write(bytes);
    if (remote.room <= 0) reader.pause();
  });
  reader.on("error", () => undefined);
  const look = setInterval(followSettings, SETTINGS_MS);
  return {
    where,
    deliver: (bytes) => {
      // The stream's bytes are ours to keep.
      waiting.push(bytes);
      writeNext();
    },
    writable: () => {
      if (remote.room > 0 && !isClosed) reader.resume();
    },
    up: () => {
      followSettings();
      if (remote.settings === null || known !== initial) return;
      pty.setRate(remote.settings.baud_rate);
      known = pty.settings();
    },
    close: async () => {
      if (isClosed) return;
      isClosed = true;
      clearInterval(look);
      // Only what is still ours.
      try {
        if (readlinkSync(where) === pty.path) rmSync(where);
      } catch {
        // Somebody removed it.
      }
      closeSync(pty.slave);
      reader.destroy();
    },
  };
};

interface PtyPlace {
  readonly path: string;
  /** Whether a link to this terminal is of an attach that has ended. */
  isOurs(target: string): boolean;
  /** The link leads to this terminal now. */
  made(target: string): void;
}

/** Makes the terminal and its link. Rejects with a Failure. */
export const openPtySide = async (remote: Remote, place: PtyPlace): Promise<LocalSide> => {
  const { platform } = process;
  if (platform !== "linux" && platform !== "darwin") {
    throw new Failure(
      "usage",
      `${platform} has no pseudo-terminals: use --rfc2217 instead of --pty`,
    );
  }
  clear(place.path, place.isOurs);
  let pty: Pty;
  try {
    pty = await openPty();
  } catch (error) {
    const text = `${(error as Error).message}; --rfc2217 does without a terminal`;
    throw new Failure("device", text, error);
  }
  try {
    place.made(pty.path);
    symlinkSync(pty.path, place.path);
  } catch (error) {
    closeSync(pty.slave);
    closeSync(pty.master);
    throw new Failure("usage", `cannot make the link ${place.path}: ${(error as Error).message}`);
  }
  return sideOf(remote, place.path, pty);
};
