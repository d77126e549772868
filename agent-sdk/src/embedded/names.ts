/**
 * XS keeps every property name that it has ever parsed: a peer that invents names could fill a
 * small heap, a relay before it has authenticated anything. So names are counted before a text is
 * parsed, and one that brings more new ones than are left is refused.
 */
import { asciiText } from "@blindrelay/protocol/crypto";

const QUOTE = 34;
const BACKSLASH = 92;
const COMMA = 44;
const OBJECT = 123;
const OBJECT_END = 125;
const ARRAY = 91;
const ARRAY_END = 93;
const SPACE = 32;
/** As a text's characters come from bounded.ts, this one stands for all that are not ASCII. */
const ANY_CHARACTER = "\x7f";
/** What a name takes beside its characters, here and in XS. */
const AROUND_NAME = 40;

/**
 * Property names in a JSON text, as they are written. In one that is not JSON, all that a parser
 * keeps before it says so: XS keeps a name before it looks for the colon.
 */
const namesIn = (bytes: Uint8Array): string[] => {
  const names: string[] = [];
  /** Of each array or object that is open, whether it is an object. */
  const open: boolean[] = [];
  let last = 0;
  let next = 0;
  for (;;) {
    const start = bytes.indexOf(QUOTE, next);
    for (let i = next; i < start; i++) {
      const byte = bytes[i] as number;
      if (byte > SPACE) last = byte;
      if (byte === OBJECT || byte === ARRAY) open.push(byte === OBJECT);
      else if (byte === OBJECT_END || byte === ARRAY_END) open.pop();
    }
    let end = start;
    let slashes: number;
    do {
      end = end < 0 ? end : bytes.indexOf(QUOTE, end + 1);
      slashes = 0;
      while (bytes[end - 1 - slashes] === BACKSLASH) slashes++;
    } while ((slashes & 1) !== 0);
    if (end < 0) return names;
    if (open[open.length - 1] && (last === OBJECT || last === COMMA))
      names.push(asciiText(bytes.subarray(start + 1, end)));
    last = QUOTE;
    next = end + 1;
  }
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
