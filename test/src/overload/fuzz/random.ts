/** Random numbers from a seed (splitmix32), so that a run can be reproduced. */
export class Random {
  #state: number;

  constructor(seed: number) {
    this.#state = seed | 0;
  }

  /** 0 or more, below `below`. */
  below(below: number): number {
    this.#state = (this.#state + 0x9e3779b9) | 0;
    let x = this.#state ^ (this.#state >>> 16);
    x = Math.imul(x, 0x21f0aaad);
    x ^= x >>> 15;
    x = Math.imul(x, 0x735a2d97);
    return ((x ^ (x >>> 15)) >>> 0) % below;
  }

  chance(percent: number): boolean {
    return this.below(100) < percent;
  }

  pick<T>(items: readonly T[]): T {
    return items[this.below(items.length)] as T;
  }

  bytes(length: number): Buffer {
    const bytes = Buffer.alloc(length);
    for (let i = 0; i < length; i++) bytes[i] = this.below(256);
    return bytes;
  }

  /** Mostly small, sometimes near a limit of the formats. */
  length(): number {
    return this.chance(80)
      ? this.below(200)
      : this.pick([0, 1, 125, 126, 127, 65_535, 65_536, 65_537, 70_000, 200_000]);
  }

  /** Flips, cuts, doubles or inserts some bytes. */
  mutate(bytes: Buffer): Buffer {
    let out = Buffer.from(bytes);
    for (let times = 1 + this.below(4); times > 0; times--) {
      const at = this.below(out.length + 1);
      const piece = out.subarray(at, at + this.below(16));
      switch (this.below(4)) {
        case 0:
          if (at < out.length) out[at] = this.below(256);
          break;
        case 1:
          out = Buffer.concat([out.subarray(0, at), out.subarray(at + piece.length)]);
          break;
        case 2:
          out = Buffer.concat([out.subarray(0, at), piece, out.subarray(at)]);
          break;
        default:
          out = Buffer.concat([out.subarray(0, at), this.bytes(this.below(8)), out.subarray(at)]);
      }
    }
    return out;
  }
}
