/** The boot count in preferences, with a power cut at every write of every start. */
import { toHex } from "@blindrelay/protocol/crypto";
import { nodeSuite } from "@blindrelay/protocol/suites/node";
import { expect, it } from "vitest";
import { provisionBootCount, raiseBootCount } from "../core/bootcount.ts";
import { MemoryPreference } from "../engines/preference.ts";
import { valuesOf } from "../testing/moddable-sdk.ts";
import { valueStorage } from "./storage.ts";

const suite = nodeSuite();
const TOKEN = "token";
const SEED = new Uint8Array(32).fill(7);
/** More writes than a start has. */
const WRITES = 18;

/** ESP32 erases a value before it writes the new one: the power may fail between the two. */
class Cut extends MemoryPreference {
  left = Number.POSITIVE_INFINITY;
  erasing = false;

  override set(domain: string, key: string, value: ArrayBuffer): void {
    if (this.left === 0) {
      if (this.erasing) this.values.delete(`${domain}/${key}`);
      this.erasing = false;
      throw new Error("no power");
    }
    this.left--;
    super.set(domain, key, value);
  }

  copy(): Cut {
    const other = new Cut();
    for (const [key, value] of this.values) other.values.set(key, value.slice());
    return other;
  }
}

it.each([
  ["", false, null],
  [" that erases", true, null],
  [", with a seed", false, SEED],
  [" that erases, with a seed", true, SEED],
])(
  "never repeats a count or a seed, whichever write the power cut hits%s",
  (_how, erasing, seed) => {
    const fresh = new Cut();
    expect(provisionBootCount(valueStorage(valuesOf(fresh)), suite, TOKEN, seed).ok).toBe(true);
    for (let first = 0; first < WRITES; first++) {
      for (let second = 0; second < WRITES; second++) {
        const flash = fresh.copy();
        const used: number[] = [];
        const seeds: string[] = [];
        for (const left of [Number.POSITIVE_INFINITY, first, second, Number.POSITIVE_INFINITY]) {
          flash.left = left;
          flash.erasing = erasing;
          const result = raiseBootCount(valueStorage(valuesOf(flash)), suite, TOKEN);
          if (!result.ok) continue;
          used.push(result.count);
          if (result.seed !== undefined) seeds.push(toHex(result.seed));
        }
        expect(used).toEqual([...new Set(used)].sort((a, b) => a - b));
        expect(used.length).toBeGreaterThan(1);
        expect(new Set(seeds).size).toBe(seed === null ? 0 : used.length);
      }
    }
  },
);

it.each([
  ["", null, 2],
  [", with a seed", SEED, 4],
])("keeps a slot within what each platform stores under one key%s", (_how, seed, parts) => {
  const flash = new MemoryPreference();
  provisionBootCount(valueStorage(valuesOf(flash)), suite, TOKEN, seed);
  const keys = [0, 1].flatMap((slot) =>
    Array.from({ length: parts }, (_, part) => `blindrelay/boot.${slot}.${part}`),
  );
  expect([...flash.values.keys()].sort()).toEqual(keys);
  for (const value of flash.values.values()) expect(value.byteLength).toBeLessThan(64);
});
