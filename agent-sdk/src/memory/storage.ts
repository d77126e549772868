/**
 * Storage in memory: a plain one, and one whose power can be cut at every step of a write, with the
 * behaviour of real media (a file overwritten in place, truncated first, renamed over; flash that
 * is erased; a cache that was not flushed).
 */
import type { StoragePort } from "../ports.ts";

export class MemoryStorage implements StoragePort {
  private readonly texts = new Map<string, string>();

  read(name: string): string | null {
    return this.texts.get(name) ?? null;
  }

  write(name: string, text: string): void {
    this.texts.set(name, text);
  }

  remove(name: string): void {
    this.texts.delete(name);
  }

  names(): string[] {
    return [...this.texts.keys()];
  }
}

/** Thrown by a write during which the power went. */
export class PowerCut extends Error {
  constructor() {
    super("power cut");
    this.name = "PowerCut";
  }
}

/**
 * The medium's content after each byte of a write:
 * `overwrite`: the new bytes replace the old from the front, the old tail stays until the end;
 * `truncate`: the file is emptied, then grows; `erase`: flash turns to 0xff, then is programmed;
 * `unflushed`: a file of the new length full of zeros until the last step; `rename`: the old text
 * until the last step.
 */
export const MEDIA = ["overwrite", "truncate", "erase", "unflushed", "rename"] as const;
export type Medium = (typeof MEDIA)[number];

const halfWritten = (medium: Medium, before: string | null, after: string, bytes: number) => {
  const written = after.slice(0, bytes);
  switch (medium) {
    case "overwrite":
      return written + (before ?? "").slice(bytes);
    case "truncate":
      return written;
    case "erase":
      return written + "\xff".repeat(after.length - bytes);
    case "unflushed":
      return "\0".repeat(after.length);
    case "rename":
      return before;
  }
};

export class CuttableStorage implements StoragePort {
  /**
   * Steps of all writes so far; a write of n bytes has n + 2: before the first, after each, and
   * done.
   */
  steps = 0;
  private readonly medium: Medium;
  private readonly texts: Map<string, string>;
  private cutAt: number | null = null;

  constructor(medium: Medium, texts: Map<string, string> = new Map()) {
    this.medium = medium;
    this.texts = texts;
  }

  /** The power goes in the `step`-th step from now, counted from 1; null: never. */
  cutAfter(step: number | null): void {
    this.cutAt = step === null ? null : this.steps + step;
  }

  read(name: string): string | null {
    return this.texts.get(name) ?? null;
  }

  write(name: string, text: string): void {
    const all = text.length + 2;
    const done = Math.min(
      all,
      Math.max(0, (this.cutAt ?? Number.POSITIVE_INFINITY) - this.steps - 1),
    );
    const left = this.after(done, name, text);
    if (left === null) this.texts.delete(name);
    else this.texts.set(name, left);
    this.steps += Math.min(done + 1, all);
    // The power may also fail after the data is safe and before `write` returns.
    if (done < all) throw new PowerCut();
  }

  /** What a name holds after so many steps of a write. */
  private after(steps: number, name: string, text: string): string | null {
    const before = this.read(name);
    if (steps === 0) return before;
    return steps > text.length ? text : halfWritten(this.medium, before, text, steps);
  }

  /** The texts of all names. */
  contents(): string[] {
    return [...this.texts.values()];
  }

  /** A copy of the medium, as the next start finds it. */
  copy(): CuttableStorage {
    return new CuttableStorage(this.medium, new Map(this.texts));
  }
}
