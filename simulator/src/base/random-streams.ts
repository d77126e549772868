/**
 * Randomness from a seed, with one stream for each purpose: what one device draws never depends on
 * another, so removing a device does not change the others. Integers only; the same on every
 * machine. Not for secrets.
 */

/** Bob Jenkins' small generator (public domain), seeded with a text such as "7/pump-00001/net". */
export class Stream {
  private a = 0xf1ea5eed;
  private b: number;
  private c: number;
  private d: number;

  constructor(text: string) {
    this.b = text.length;
    this.c = text.length;
    this.d = text.length;
    for (let i = 0; i < text.length; i++) {
      this.b = (this.b + text.charCodeAt(i)) | 0;
      this.next();
    }
    for (let i = 0; i < 20; i++) this.next();
  }

  /** From 0 to 2^32 - 1. */
  next(): number {
    const e = (this.a - ((this.b << 27) | (this.b >>> 5))) | 0;
    this.a = this.b ^ ((this.c << 17) | (this.c >>> 15));
    this.b = (this.c + this.d) | 0;
    this.c = (this.d + e) | 0;
    this.d = (e + this.a) | 0;
    return this.d >>> 0;
  }

  /** From 0 to below `limit`; in steps of `limit / 2^32` if that is above 1. */
  below(limit: number): number {
    return Math.floor((this.next() / 2 ** 32) * limit);
  }

  /** From 0 to below 1, with 32 random bits. */
  fraction(): number {
    return this.next() / 2 ** 32;
  }

  bytes(length: number): Uint8Array {
    const bytes = new Uint8Array(length);
    for (let i = 0; i < length; i += 4) {
      const word = this.next();
      for (let j = i; j < i + 4 && j < length; j++) bytes[j] = (word >>> (8 * (j - i))) & 255;
    }
    return bytes;
  }
}
