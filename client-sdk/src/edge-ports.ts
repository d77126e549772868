/** What the edges on Node and in browsers have in common: randomness. */

import { asciiBytes, type Suite } from "@blindrelay/protocol/crypto";
import type { Random } from "./ports.ts";

const KEY_BYTES = 32;

/**
 * Randomness for the case that the generator repeats itself, as it may in a virtual machine whose
 * snapshot is started twice: a `C` that repeats repeats a session's keys. Each block is an HMAC of
 * fresh bytes, both clocks and a count, so it differs if any of them does; and it is as good as the
 * generator if that is good.
 */
export const hedgedRandom = (
  random: Random,
  suite: Suite,
  clocks: () => string = () => `${Date.now()}|${performance.now()}`,
): Random => {
  const key = suite.hmacKey(random(KEY_BYTES));
  let count = 0;
  const block = (): Uint8Array => {
    count += 1;
    const fresh = random(KEY_BYTES);
    const text = asciiBytes(`|${clocks()}|${count}`);
    const input = new Uint8Array(fresh.length + text.length);
    input.set(fresh);
    input.set(text, fresh.length);
    return suite.hmac(key, input);
  };
  return (length) => {
    const bytes = new Uint8Array(length);
    for (let at = 0; at < length; ) {
      const some = block().subarray(0, length - at);
      bytes.set(some, at);
      at += some.length;
    }
    return bytes;
  };
};
