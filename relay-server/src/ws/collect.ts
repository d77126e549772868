/**
 * Frees what was read and sent on. Each read is a buffer outside of V8's heap, and V8 answers many
 * of these with a collection of the whole heap (with packets of 16 KB after every 1,200), although
 * one of the young objects finds them as well, for a twentieth of the work.
 */
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";

/** Fewer than what makes V8 collect; with small messages it does so of its own accord before. */
const BYTES_BETWEEN = 12 * 1024 * 1024;

type Collect = (options: { type: "minor" }) => void;

/** Made when it is wanted first: most relays never read so much at a time. */
let collect: Collect | null = null;

export class YoungBuffers {
  #bytes = 0;

  /** So many bytes were read into a new buffer, or, below 0, freed. */
  add(bytes: number): void {
    // What is freed after a collection was counted before it.
    this.#bytes = Math.max(0, this.#bytes + bytes);
    if (this.#bytes < BYTES_BETWEEN) return;
    this.#bytes = 0;
    setImmediate(collectYoung); // once what this turn has read is written
  }
}

const collectYoung = (): void => {
  collect ??= collector();
  collect({ type: "minor" });
};

/** V8's own `gc`, which a context has when it was made with this flag. */
const collector = (): Collect => {
  setFlagsFromString("--expose-gc");
  const gc = runInNewContext("gc") as Collect;
  setFlagsFromString("--no-expose-gc");
  return gc;
};
