/**
 * Frees what was read and forwarded. Each read is a buffer outside of V8's heap, and V8 reacts to
 * many of these with a collection of the whole heap (with packets of 16 KB after every 1,200),
 * although a collection of the young objects finds them as well, for a twentieth of the work.
 */
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { contained } from "../base/contain.ts";

/** Fewer than make V8 collect; with small messages V8 collects earlier by itself. */
const BYTES_BETWEEN = 12 * 1024 * 1024;

type Collect = (options: { type: "minor" }) => void;

/** Created on first use: most relays never read that much at a time. */
let collect: Collect | null = null;

const collectYoung = (): void => {
  collect ??= collector();
  collect({ type: "minor" });
};

/** V8's own `gc`, which is present in a context created with this flag. */
const collector = (): Collect => {
  setFlagsFromString("--expose-gc");
  const gc = runInNewContext("gc") as Collect;
  setFlagsFromString("--no-expose-gc");
  return gc;
};

export class YoungBuffers {
  readonly #collect: () => void;
  #bytes = 0;

  /** `collect`: collects the young objects; tests count its calls. */
  constructor(collect = collectYoung) {
    this.#collect = contained("timer", "young objects were not collected", collect);
  }

  /** This many bytes were read into a new buffer or, if negative, freed. */
  add(bytes: number): void {
    // Bytes that are freed after a collection were counted before it.
    this.#bytes = Math.max(0, this.#bytes + bytes);
    if (this.#bytes < BYTES_BETWEEN) return;
    this.#bytes = 0;
    setImmediate(this.#collect); // once what this turn has read is written
  }
}
