/**
 * Numbers from a seed: the same on every machine, so that a seed reproduces a run. Not for
 * secrets.
 */

/** Draws integers from 0 to below `limit` (at most 2^32). */
export type Draw = (limit: number) => number;

/**
 * A stream of numbers for a string such as `"42/valve-7"`; other strings give unrelated streams.
 * Bob Jenkins' small generator.
 */
export function seeded(text: string): Draw {
  let a = 0xf1ea5eed;
  let b = text.length;
  let c = b;
  let d = b;
  function next(): number {
    const e = (a - ((b << 27) | (b >>> 5))) | 0;
    a = b ^ ((c << 17) | (c >>> 15));
    b = (c + d) | 0;
    c = (d + e) | 0;
    d = (e + a) | 0;
    return d >>> 0;
  }
  for (let i = 0; i < text.length; i++) {
    b = (b + text.charCodeAt(i)) | 0;
    next();
  }
  for (let i = 0; i < 20; i++) next();
  return (limit) => Math.floor((next() / 2 ** 32) * limit);
}
