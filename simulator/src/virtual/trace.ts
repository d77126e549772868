/**
 * What happened, as one number and as a readable tail. It includes every message, connection, fault
 * and outcome, but not the relay's pings and their answers. Two runs with one hash did the same
 * thing at the same microsecond.
 */
import { hash } from "node:crypto";

export interface Entry {
  atUs: number;
  what: string;
  who: string;
  text: string;
}

/** From this length on, a digest is faster than reading each character. */
const LONG = 1024;

const PING = '{"type":"ping"}';
const PONG = '{"type":"pong"}';

export class Trace {
  entries = 0;
  private h1 = 0x9e3779b9;
  private h2 = 0x85ebca6b;
  private readonly ring: Entry[] = [];
  private readonly kept: number;
  private readonly isTimeline: boolean;

  /**
   * `kept`: how many of the latest entries can be read. `isTimeline`: the hash has only the lengths
   * of messages, so it is the same whatever seals them.
   */
  constructor(kept: number, isTimeline = false) {
    this.kept = kept;
    this.isTimeline = isTimeline;
  }

  add(atUs: number, what: string, who: string, text: string): void {
    if (text === PING || text === PONG) return;
    this.mix(atUs % 2 ** 32);
    this.mix(Math.floor(atUs / 2 ** 32));
    this.mixText(what);
    this.mixText(who);
    if (this.isTimeline && (what === "up" || what === "down")) this.mix(text.length);
    else this.mixText(text);
    if (this.kept > 0) {
      const entry = { atUs, what, who, text };
      if (this.ring.length < this.kept) this.ring.push(entry);
      else this.ring[this.entries % this.kept] = entry;
    }
    this.entries += 1;
  }

  /** Whether entries can be read. */
  get isKept(): boolean {
    return this.kept > 0;
  }

  /** Sixteen hexadecimal digits. */
  hash(): string {
    return hex(this.h1) + hex(this.h2);
  }

  /** The latest entries, oldest first. */
  tail(): Entry[] {
    if (this.entries <= this.kept) return [...this.ring];
    const next = this.entries % this.kept;
    return [...this.ring.slice(next), ...this.ring.slice(0, next)];
  }

  private mixText(text: string): void {
    const { length } = text;
    if (length >= LONG) {
      this.mixText(hash("sha256", text));
      this.mix(length);
      return;
    }
    let { h1, h2 } = this;
    for (let i = 0; i < length; i++) {
      const code = text.charCodeAt(i);
      h1 = Math.imul(h1 ^ code, 0x01000193);
      h2 = Math.imul(h2 ^ code, 0x5bd1e995) ^ (h2 >>> 15);
    }
    this.h1 = h1;
    this.h2 = h2;
    this.mix(length);
  }

  private mix(value: number): void {
    this.h1 = Math.imul(this.h1 ^ value, 0xcc9e2d51);
    this.h1 ^= this.h1 >>> 15;
    this.h2 = Math.imul(this.h2 ^ (value + 0x9e3779b9), 0x1b873593);
    this.h2 ^= this.h2 >>> 13;
  }
}

const hex = (value: number): string => (value >>> 0).toString(16).padStart(8, "0");
