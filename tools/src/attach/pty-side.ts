/**
 * A pseudo-terminal as the port, under a path of the user's choice. It stays while the remote port
 * is away, and while no program has it open: what the device says meanwhile waits.
 */

import { closeSync, lstatSync, readlinkSync, rmSync, symlinkSync, write } from "node:fs";
import { ReadStream } from "node:tty";
import { Failure } from "@blindrelay/protocol/command-line";
import { type LineSettings, settingsAsJson } from "@blindrelay/protocol/serial";
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
  const what = target === null ? "it is no link" : `it is a link to ${target}`;
  throw new Failure("usage", `${path} exists, and ${what} that an ended attach has left`);
};

class PtySide implements LocalSide {
  readonly where: string;
  private readonly remote: Remote;
  private readonly pty: Pty;
  private readonly reader: ReadStream;
  private readonly waiting: Uint8Array[] = [];
  private isWriting = false;
  private fullMs = FULL_MS;
  private isClosed = false;
  private known: LineSettings | null = null;
  private readonly look: NodeJS.Timeout;

  constructor(remote: Remote, path: string, pty: Pty) {
    this.where = path;
    this.remote = remote;
    this.pty = pty;
    this.reader = new ReadStream(pty.master);
    this.reader.on("data", (bytes: Uint8Array) => {
      this.followSettings();
      remote.write(bytes);
      if (remote.room <= 0) this.reader.pause();
    });
    this.reader.on("error", () => undefined);
    this.look = setInterval(() => this.followSettings(), SETTINGS_MS);
  }

  deliver(bytes: Uint8Array): void {
    // The stream's bytes are ours to keep.
    this.waiting.push(bytes);
    this.writeNext();
  }

  writable(): void {
    if (this.remote.room > 0 && !this.isClosed) this.reader.resume();
  }

  up(): void {
    const { settings } = this.remote;
    if (settings === null || this.known !== null) return;
    this.pty.setRate(settings.baud_rate);
    this.known = this.pty.settings();
  }

  down(): void {}

  changed(): void {}

  async close(): Promise<void> {
    if (this.isClosed) return;
    this.isClosed = true;
    clearInterval(this.look);
    // Only what is still ours.
    try {
      if (readlinkSync(this.where) === this.pty.path) rmSync(this.where);
    } catch {
      // Somebody removed it.
    }
    closeSync(this.pty.slave);
    this.reader.destroy();
  }

  /** Passes on what the program has set, before its next bytes. */
  private followSettings(): void {
    if (this.known === null || this.isClosed) return;
    const now = this.pty.settings();
    if (now === null || JSON.stringify(now) === JSON.stringify(this.known)) return;
    const [from, to] = [settingsAsJson(this.known), settingsAsJson(now)];
    const names = Object.keys(to) as (keyof typeof to)[];
    const changed = Object.fromEntries(
      names.filter((name) => from[name] !== to[name]).map((name) => [name, to[name]]),
    );
    this.known = now;
    this.remote.configure(changed).catch((error: Error) => {
      printStatus(
        `${this.where}: ${JSON.stringify(changed)} was refused: ${oneLine(error.message)}`,
      );
    });
  }

  private writeNext(): void {
    const first = this.waiting[0];
    if (this.isWriting || first === undefined || this.isClosed) return;
    this.isWriting = true;
    write(this.pty.master, first, (error, written) => {
      this.isWriting = false;
      if (this.isClosed) return;
      if (error !== null) {
        this.fullMs = Math.min(this.fullMs * 2, FULL_MAX_MS);
        setTimeout(() => this.writeNext(), this.fullMs);
        return;
      }
      this.fullMs = FULL_MS;
      if (written < first.length) this.waiting[0] = first.subarray(written);
      else this.waiting.shift();
      this.remote.taken(written);
      this.writeNext();
    });
  }
}

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
  return new PtySide(remote, place.path, pty);
};
