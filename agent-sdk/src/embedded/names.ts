/**
 * XS keeps every property name that it has ever parsed: a peer that invents names could fill a
 * small heap, a relay before it has authenticated anything. So names are counted before a text is
 * parsed, and one that brings more new ones than are left is refused.
 */
import { asciiText } from "@blindrelay/protocol/crypto";

const QUOTE = 34;
const BACKSLASH = 92;
const COLON = 58;
const SPACE = 32;
/** As a text's characters come from bounded.ts, this one stands for all that are not ASCII. */
const ANY_CHARACTER = "\x7f";
/** What a name takes beside its characters, here and in XS. */
const AROUND_NAME = 40;

/** Property names in a JSON text, as they are written. */
const namesIn = (bytes: Uint8Array): string[] => {
  const names: string[] = [];
  let start = bytes.indexOf(QUOTE);
  while (start >= 0) {
    let end = start;
    let slashes: number;
    do {
      end = bytes.indexOf(QUOTE, end + 1);
      slashes = 0;
      while (bytes[end - 1 - slashes] === BACKSLASH) slashes++;
    } while ((slashes & 1) !== 0);
    if (end < 0) return names;
    let next = end + 1;
    while ((bytes[next] as number) <= SPACE) next++;
    if (bytes[next] === COLON) names.push(asciiText(bytes.subarray(start + 1, end)));
    start = bytes.indexOf(QUOTE, next);
  }
  return names;
};

export class KnownNames {
  private readonly known = new Set<string>();
  private left: number;

  /** `bytes`: of all names together, each with 40 more. */
  constructor(bytes: number) {
    this.left = bytes;
  }

  /** Whether all names of this JSON text, as bytes, are known or still fit. */
  admit(text: Uint8Array): boolean {
    for (const name of namesIn(text)) {
      if (this.known.has(name) && name.indexOf(ANY_CHARACTER) < 0) continue;
      const size = name.length + AROUND_NAME;
      if (size > this.left) return false;
      this.left -= size;
      this.known.add(name);
    }
    return true;
  }
}
