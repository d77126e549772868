/**
 * Espruino's Storage over a Map, with the steps in which the real one writes (its jsflash.c), at
 * each of which the power can go: the old file is gone; the new one is there, of its length and
 * full of 0xff; then it is programmed byte for byte.
 */
import type { EspruinoStorage } from "../espruino/board.ts";

export class EspruinoFlash implements EspruinoStorage {
  readonly files: Map<string, string>;
  /** Steps until the power goes; null: never. */
  private left: number | null = null;

  constructor(files: Map<string, string> = new Map()) {
    this.files = files;
  }

  /** The power goes in the `step`-th step from now, counted from 1; null: never. */
  cutAfter(step: number | null): void {
    this.left = step;
  }

  read(name: string): string | undefined {
    return this.files.get(name);
  }

  write(name: string, text: string): boolean {
    if (this.files.get(name) === text) return true;
    this.step();
    this.files.delete(name);
    this.step();
    for (let bytes = 0; bytes < text.length; bytes++) {
      this.files.set(name, text.slice(0, bytes) + "\xff".repeat(text.length - bytes));
      this.step();
    }
    this.files.set(name, text);
    // The power may also go after the data is safe and before anybody learns of it.
    this.step();
    return true;
  }

  private step(): void {
    if (this.left === null) return;
    this.left--;
    if (this.left <= 0) throw new Error("power cut");
  }
}
