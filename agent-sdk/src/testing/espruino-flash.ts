/**
 * Espruino's Storage over a Map, with the steps in which the real one writes (its jsflash.c), each
 * of which a power cut can follow: the old file is gone; the new one exists, at its full length and
 * full of 0xff; then it is programmed byte by byte.
 */
import type { EspruinoStorage } from "../espruino/board.ts";

const HEADER_BYTES = 32;

export class EspruinoFlash implements EspruinoStorage {
  readonly files: Map<string, string>;
  /** Bytes of all files. */
  bytes = 262144;
  /** Of all writes so far. */
  steps = 0;
  /** Steps until the power cut; null: never. */
  private left: number | null = null;

  constructor(files: Map<string, string> = new Map()) {
    this.files = files;
  }

  /** Schedules a power cut in the `step`-th step from now, counted from 1; null: never. */
  cutAfter(step: number | null): void {
    this.left = step;
  }

  /** Whether the power is off: nothing is written any more. */
  get isCut(): boolean {
    return this.left !== null && this.left <= 0;
  }

  read(name: string): string | undefined {
    return this.files.get(name);
  }

  /** As on a board: parts may be written where nothing was; the first one creates the file. */
  write(name: string, data: string | Uint8Array, offset = 0, size = 0): boolean {
    const text = typeof data === "string" ? data : Buffer.from(data).toString("latin1");
    const length = size === 0 ? text.length : size;
    if (offset === 0) {
      if (this.files.get(name) === text && length === text.length) return true;
      this.erase(name);
      if (length + HEADER_BYTES > this.getFree()) return false;
      this.step();
      this.files.set(name, "\xff".repeat(length));
    }
    const old = this.files.get(name);
    if (old === undefined || offset + text.length > old.length) throw new Error("no such place");
    for (let i = offset; i < offset + text.length; i++) {
      if (old[i] !== "\xff") throw new Error("File already written with different data");
    }
    for (let bytes = 0; bytes < text.length; bytes++) {
      this.step();
      const at = offset + bytes + 1;
      this.files.set(name, old.slice(0, offset) + text.slice(0, bytes + 1) + old.slice(at));
    }
    // The power may also be cut after the data is written and before the caller learns of it.
    this.step();
    return true;
  }

  erase(name: string): void {
    if (!this.files.has(name)) return;
    this.step();
    this.files.delete(name);
  }

  getFree(): number {
    let used = 0;
    for (const text of this.files.values()) used += text.length + HEADER_BYTES;
    return this.bytes - used;
  }

  private step(): void {
    this.steps++;
    if (this.left === null) return;
    this.left--;
    if (this.left <= 0) throw new Error("power cut");
  }
}
