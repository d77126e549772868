/**
 * Randomness that repeats with its seed: for tests and virtual time, never for keys. A counter
 * through a mixing function, so that neighbouring seeds have nothing in common.
 */
import type { Random } from "../ports.ts";

/** MurmurHash3's finalizer (public domain): every input bit changes half of the output. */
const mix = (value: number): number => {
  let h = value;
  h = Math.imul(h ^ (h >>> 16), 0x85ebca6b);
  h = Math.imul(h ^ (h >>> 13), 0xc2b2ae35);
  return (h ^ (h >>> 16)) >>> 0;
};

export const seededRandom = (seed: number): Random => {
  const start = mix(seed);
  let counter = 0;
  return (length) => {
    const bytes = new Uint8Array(length);
    for (let i = 0; i < length; i++) {
      counter = (counter + 0x9e3779b9) >>> 0;
      bytes[i] = mix(start ^ mix(counter)) >>> 24;
    }
    return bytes;
  };
};
