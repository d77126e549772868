/** Runs on the chip: what it offers, as the Moddable build's edge wants it. */
import type { Program } from "../../src/core/agent.ts";
import type { ProgramSlots } from "../../src/embedded/push.ts";
import { toHex } from "../../src/moddable/core.ts";
import type { ModdableCrypt, ModdableValues } from "../../src/moddable/sdk.ts";
import type { Random } from "../../src/ports.ts";
import { moddableTimer, valueStorage } from "./edge.ts";
import Timer from "./timer.ts";

const ticks = (): number => chip.now();
const time = {
  get ticks(): number {
    return ticks();
  },
  delta: (start: number, end: number): number => (end - start) | 0,
};
export const timer = moddableTimer(Timer, time);

const values: ModdableValues = {
  read: (key) => chip.get(key),
  write: (key, value) => chip.put(key, value),
};
export const storage = valueStorage(values);

class Digest {}
class HMAC {
  private readonly key: Uint8Array;
  constructor(_digest: object, key: Uint8Array) {
    this.key = key.slice();
  }
  process(data: Uint8Array): ArrayBuffer {
    return chip.hmac(this.key, data);
  }
}
class BlockCipher {
  readonly key: ArrayBuffer;
  constructor(_cipher: "AES", key: ArrayBuffer) {
    this.key = key;
  }
}
const BLOCK_BYTES = 16;
class Mode {
  private readonly key: ArrayBuffer;
  private last: Uint8Array | undefined;
  constructor(_mode: "CBC" | "ECB", cipher: object, iv?: ArrayBuffer) {
    this.key = (cipher as BlockCipher).key;
    this.last = iv === undefined ? undefined : new Uint8Array(iv);
  }
  encrypt(data: Uint8Array): ArrayBuffer {
    if (this.last === undefined) return chip.aes(this.key, data);
    const out = new Uint8Array(data.length);
    for (let at = 0; at < data.length; at += BLOCK_BYTES) {
      const block = data.slice(at, at + BLOCK_BYTES);
      for (let i = 0; i < BLOCK_BYTES; i++)
        block[i] = (block[i] as number) ^ (this.last[i] as number);
      this.last = new Uint8Array(chip.aes(this.key, block));
      out.set(this.last, at);
    }
    return out.buffer;
  }
}
export const crypt: ModdableCrypt = { Digest, HMAC, BlockCipher, Mode };

/** Of a slot: host/chip.h. */
const SLOT_BYTES = 16 * 1024;
/** `ended`: of `chip.why`, which is told once. */
export const slotsOf = (ended: string): ProgramSlots => ({
  build: chip.build(),
  room: SLOT_BYTES,
  erase: (slot) => chip.erase(slot),
  write: (slot, at, part) => chip.store(slot, at, part),
  sha256: (slot, size) => toHex(new Uint8Array(chip.digest(slot, size))),
  load: (slot) => chip.program(slot) as Program,
  restart: () => chip.restart(),
  ended,
  hasWatchdog: true,
});

export const random: Random = (length) => new Uint8Array(chip.random(length));
