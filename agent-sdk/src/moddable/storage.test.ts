/** The boot count in preferences, with a power cut at every write of every start. */
import { nodeSuite } from "@blindrelay/protocol/suites/node";
import { expect, it } from "vitest";
import { provisionBootCount, raiseBootCount } from "../core/bootcount.ts";
import { MemoryPreference } from "../engines/preference.ts";
import { valuesOf } from "../testing/moddable-sdk.ts";
import { valueStorage } from "./storage.ts";

const suite = nodeSuite();
const TOKEN = "token";
/** More writes than a start has. */
const WRITES = 12;

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

it.each([false, true])(
  "never repeats a count, whichever write the power cut hits (erased: %s)",
  (erasing) => {
    const fresh = new Cut();
    expect(provisionBootCount(valueStorage(valuesOf(fresh)), suite, TOKEN).ok).toBe(true);
    for (let first = 0; first < WRITES; first++) {
      for (let second = 0; second < WRITES; second++) {
        const flash = fresh.copy();
        const used: number[] = [];
        for (const left of [Number.POSITIVE_INFINITY, first, second, Number.POSITIVE_INFINITY]) {
          flash.left = left;
          flash.erasing = erasing;
          const result = raiseBootCount(valueStorage(valuesOf(flash)), suite, TOKEN);
          if (result.ok) used.push(result.count);
        }
        expect(used).toEqual([...new Set(used)].sort((a, b) => a - b));
        expect(used.length).toBeGreaterThan(1);
      }
    }
  },
);

it("keeps a slot within what each platform stores under one key", () => {
  const flash = new MemoryPreference();
  provisionBootCount(valueStorage(valuesOf(flash)), suite, TOKEN);
  expect([...flash.values.keys()].sort()).toEqual([
    ...["0.0", "0.1", "1.0", "1.1"].map((part) => `blindrelay/boot.${part}`),
  ]);
});
