import { readFileSync } from "node:fs";
import { crc32 } from "node:zlib";
import { toHex } from "@blindrelay/protocol/crypto";
import { nodeSuite } from "@blindrelay/protocol/suites/node";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { CuttableStorage, MEDIA, type Medium, MemoryStorage, PowerCut } from "../memory/index.ts";
import type { StoragePort } from "../ports.ts";
import {
  type BootCountResult,
  bootCountMarker,
  provisionBootCount,
  raiseBootCount,
} from "./bootcount.ts";

const suite = nodeSuite();
const vectors = new URL("../../../protocol/vectors/forward-secrecy.json", import.meta.url);
const RATCHET = (JSON.parse(readFileSync(vectors, "utf8")) as { seed_ratchet: { seed: string }[] })
  .seed_ratchet;
const TOKEN = "e2e_one";
const OTHER = "e2e_two";

const problemOf = (result: BootCountResult): string => (result.ok ? "none" : result.problem);

/** The count of a start, or null if the power failed or the agent refused to start. */
const start = (storage: StoragePort, token = TOKEN): number | null => {
  const result = raiseBootCount(storage, suite, token);
  return result.ok ? result.count : null;
};

/** Copies files for this token onto a storage, as a person does. */
const copyMarker = (storage: StoragePort, token = TOKEN): void => {
  const { name, content } = bootCountMarker(suite, token);
  storage.write(name, content);
};

const provisioned = (medium: Medium = "truncate"): CuttableStorage => {
  const storage = new CuttableStorage(medium);
  provisionBootCount(storage, suite, TOKEN);
  return storage;
};

describe("boot count", () => {
  it("is 1 after provisioning and higher at every start", () => {
    const storage = provisioned();
    expect([start(storage), start(storage), start(storage)]).toEqual([2, 3, 4]);
  });

  it("is stored in two readable slots on the medium", () => {
    const storage = provisioned();
    start(storage);
    expect(storage.read("boot.0")).toMatch(/^blindrelay-boot 1 1 [0-9a-f]{64} [0-9a-f]{8}\n$/);
    expect(storage.read("boot.1")).toMatch(/^blindrelay-boot 1 2 [0-9a-f]{64} [0-9a-f]{8}\n$/);
  });

  it("is refused if it was never written", () => {
    expect(problemOf(raiseBootCount(new MemoryStorage(), suite, TOKEN))).toBe("missing");
  });

  it.each([
    ["garbage", "garbage"],
    ["nothing", ""],
    ["a count of 0", "blindrelay-boot 1 0 "],
  ])("is refused if both slots hold %s", (_what, text) => {
    const storage = new MemoryStorage();
    storage.write("boot.0", text);
    storage.write("boot.1", text);
    expect(problemOf(raiseBootCount(storage, suite, TOKEN))).toBe("unreadable");
  });

  it("is refused if one slot is garbage and the other gone", () => {
    const storage = new MemoryStorage();
    storage.write("boot.1", "garbage");
    expect(problemOf(raiseBootCount(storage, suite, TOKEN))).toBe("unreadable");
  });

  it("detects every flipped bit of a slot", () => {
    const storage = provisioned();
    start(storage);
    const text = storage.read("boot.1") as string;
    for (let at = 0; at < text.length; at++) {
      for (let bit = 0; bit < 8; bit++) {
        const flipped = String.fromCharCode(text.charCodeAt(at) ^ (1 << bit));
        const damaged = storage.copy();
        damaged.write("boot.1", text.slice(0, at) + flipped + text.slice(at + 1));
        // The slot contained 2; the other says 1, so 2 is skipped.
        expect(start(damaged)).toBe(3);
      }
    }
  });

  it("skips one count if a slot was lost, whichever it was", () => {
    for (const name of ["boot.0", "boot.1"]) {
      const storage = new MemoryStorage();
      provisionBootCount(storage, suite, TOKEN);
      const used = [start(storage), start(storage), start(storage)];
      storage.remove(name);
      const next = start(storage) as number;
      expect(used).not.toContain(next);
      expect(next).toBeGreaterThan(Math.max(...(used as number[])));
    }
  });

  it("stays unused when the repaired slot is lost in turn", () => {
    // If count + 2 was written directly over the lost slot, the second loss would lead to it again.
    const storage = provisioned();
    const used = [start(storage)];
    for (const name of ["boot.1", "boot.1", "boot.0", "boot.0", "boot.1", "boot.0"]) {
      storage.write(name, "lost");
      const next = start(storage);
      expect(used).not.toContain(next);
      used.push(next);
    }
  });

  it("is refused if it belongs to another token, even in only one slot", () => {
    const storage = provisioned();
    expect(problemOf(raiseBootCount(storage, suite, OTHER))).toBe("otherToken");
    for (const name of ["boot.0", "boot.1"]) {
      const mixed = provisioned();
      const foreign = new MemoryStorage();
      provisionBootCount(foreign, suite, OTHER);
      mixed.write(name, foreign.read(name) as string);
      expect(problemOf(raiseBootCount(mixed, suite, TOKEN))).toBe("otherToken");
      expect(problemOf(raiseBootCount(mixed, suite, OTHER))).toBe("otherToken");
    }
  });

  it("can be provisioned again only with another token", () => {
    const storage = provisioned();
    expect(problemOf(provisionBootCount(storage, suite, TOKEN))).toBe("usedToken");
    expect(provisionBootCount(storage, suite, OTHER)).toEqual({ ok: true, count: 2 });
    expect(start(storage, OTHER)).toBe(3);
    expect(start(storage, TOKEN)).toBe(null);
  });

  it("goes on when a token comes back after another one", () => {
    const storage = provisioned();
    expect([start(storage), start(storage)]).toEqual([2, 3]);
    expect(provisionBootCount(storage, suite, OTHER)).toEqual({ ok: true, count: 4 });
    expect(provisionBootCount(storage, suite, TOKEN)).toEqual({ ok: true, count: 5 });
    expect([start(storage), start(storage)]).toEqual([6, 7]);
  });

  it("goes on from the slot that is left when the other one is lost", () => {
    for (const lost of ["boot.0", "boot.1"]) {
      const storage = new MemoryStorage();
      provisionBootCount(storage, suite, TOKEN);
      const used = [start(storage), start(storage)];
      storage.remove(lost);
      provisionBootCount(storage, suite, OTHER);
      provisionBootCount(storage, suite, TOKEN);
      expect(start(storage)).toBeGreaterThan(Math.max(...(used as number[])));
    }
  });

  it("is never used up unsaid: no higher count is neither a start nor 1 again", () => {
    const storage = provisioned();
    const hash = /[0-9a-f]{64}/.exec(storage.read("boot.0") as string)?.[0];
    for (const [name, count] of [
      ["boot.0", 4294967293],
      ["boot.1", 4294967294],
    ] as const) {
      const text = `blindrelay-boot 1 ${count} ${hash}`;
      storage.write(name, `${text} ${crc32(text).toString(16).padStart(8, "0")}\n`);
    }
    expect(problemOf(raiseBootCount(storage, suite, TOKEN))).toBe("usedUp");
    expect(problemOf(provisionBootCount(storage, suite, OTHER))).toBe("usedUp");
    copyMarker(storage, OTHER);
    expect(problemOf(raiseBootCount(storage, suite, OTHER))).toBe("usedUp");
  });

  it.each<[string, (real: MemoryStorage) => StoragePort]>([
    ["forgets what is written", (real) => ({ read: (name) => real.read(name), write: () => {} })],
    [
      "keeps something else",
      (real) => ({
        read: (name) => real.read(name),
        write: (name, text) => real.write(name, text.replace("2", "7")),
      }),
    ],
    [
      "cannot be written",
      (real) => ({
        read: (name) => real.read(name),
        write: () => {
          throw new Error("read-only");
        },
      }),
    ],
    [
      "cannot be read",
      (real) => ({
        read: () => {
          throw new Error("I/O error");
        },
        write: (name, text) => real.write(name, text),
      }),
    ],
  ])("is refused on a medium that %s", (_what, wrap) => {
    const real = new MemoryStorage();
    provisionBootCount(real, suite, TOKEN);
    expect(problemOf(raiseBootCount(wrap(real), suite, TOKEN))).toBe("medium");
    expect(problemOf(provisionBootCount(wrap(real), suite, OTHER))).toBe("medium");
  });
});

describe("a marker", () => {
  it("becomes a count at the next start, once, however often it is copied", () => {
    const storage = new MemoryStorage();
    copyMarker(storage);
    expect(start(storage)).toBe(2);
    expect(start(storage)).toBe(3);
    copyMarker(storage);
    expect([start(storage), start(storage)]).toEqual([4, 5]);
  });

  it.each(["boot.0", "boot.1"])("is taken although %s cannot be read", (name) => {
    const storage = new MemoryStorage();
    provisionBootCount(storage, suite, OTHER);
    storage.write(name, "x");
    copyMarker(storage);
    expect(start(storage)).toBe(3);
  });

  it("does not start again the counts of a storage that lost them later", () => {
    const storage = new MemoryStorage();
    copyMarker(storage);
    start(storage);
    for (const name of ["boot.0", "boot.1"]) storage.remove(name);
    expect(problemOf(raiseBootCount(storage, suite, TOKEN))).toBe("missing");
  });

  it("does not start again the counts of a storage that cannot read them any more", () => {
    const storage = new MemoryStorage();
    copyMarker(storage);
    for (let i = 0; i < 5; i++) start(storage);
    for (const name of ["boot.0", "boot.1"]) storage.write(name, "");
    copyMarker(storage);
    expect(problemOf(raiseBootCount(storage, suite, TOKEN))).toBe("unreadable");
  });

  it("continues the counts of other tokens, also when its token comes back", () => {
    const storage = provisioned();
    expect([start(storage), start(storage)]).toEqual([2, 3]);
    copyMarker(storage, OTHER);
    expect(start(storage, OTHER)).toBe(5);
    copyMarker(storage, TOKEN);
    expect(start(storage, TOKEN)).toBe(7);
  });

  it("of another token is left for that token", () => {
    const storage = provisioned();
    copyMarker(storage, OTHER);
    expect(start(storage, TOKEN)).toBe(2);
    expect(start(storage, OTHER)).toBe(4);
  });

  it("is one only if every byte of it is right", () => {
    const { name, content } = bootCountMarker(suite, TOKEN);
    for (let at = 0; at < content.length; at++) {
      const storage = new MemoryStorage();
      storage.write(name, content.slice(0, at));
      expect(problemOf(raiseBootCount(storage, suite, TOKEN))).toBe("missing");
      const flipped = String.fromCharCode(content.charCodeAt(at) ^ 1);
      storage.write(name, content.slice(0, at) + flipped + content.slice(at + 1));
      expect(problemOf(raiseBootCount(storage, suite, TOKEN))).toBe("missing");
    }
  });

  it("is no count: a slot that contains one is unreadable", () => {
    const storage = new MemoryStorage();
    const { content } = bootCountMarker(suite, TOKEN);
    for (const name of ["boot.0", "boot.1"]) storage.write(name, content);
    expect(problemOf(raiseBootCount(storage, suite, TOKEN))).toBe("unreadable");
  });
});

describe.each(MEDIA)("power cuts on a medium that does %s", (medium) => {
  it("never use a count twice, whenever the first, the second and the third one occur", () => {
    const origin = provisioned(medium);
    const before = start(origin) as number;
    const whole = origin.copy();
    start(whole);
    // A repair after a cut writes both slots.
    const most = 2 * whole.steps;
    for (let first = 1; first <= whole.steps; first++) {
      const once = origin.copy();
      once.cutAfter(first);
      // Power is only ever cut inside a write, so the agent of that start never sent anything.
      expect(start(once)).toBe(null);
      for (let second = 1; second <= most; second += 7) {
        const twice = once.copy();
        twice.cutAfter(second);
        const spoken = [before, start(twice)];
        const last = twice.copy();
        last.cutAfter(1 + ((first + second) % whole.steps));
        spoken.push(start(last));
        const end = last.copy();
        spoken.push(start(end), start(end));
        const counts = spoken.filter((count) => count !== null);
        expect(counts.length).toBeGreaterThanOrEqual(3);
        expect(counts).toEqual([...new Set(counts)].sort((a, b) => a - b));
      }
    }
  });

  it("in provisioning leave an agent that starts with unused counts or is refused", () => {
    const whole = new CuttableStorage(medium);
    provisionBootCount(whole, suite, TOKEN);
    const old = provisioned(medium);
    const oldCount = start(old) as number;
    for (let step = 1; step <= whole.steps; step++) {
      const fresh = new CuttableStorage(medium);
      fresh.cutAfter(step);
      provisionBootCount(fresh, suite, TOKEN);
      expect(start(fresh.copy()) ?? 2).toBeGreaterThanOrEqual(2);

      const again = old.copy();
      again.cutAfter(step);
      provisionBootCount(again, suite, OTHER);
      const next = again.copy();
      const count = start(next);
      if (count !== null) expect(count).toBeGreaterThan(oldCount);
      const other = again.copy();
      expect(start(other, OTHER) ?? 2).toBeGreaterThanOrEqual(2);
    }
  });

  it.each([
    ["provisioning", provisionBootCount],
    [
      "a start with a marker",
      (storage: StoragePort, _suite: unknown, token: string) => {
        try {
          copyMarker(storage, token);
        } catch {
          return; // The power failed while the file was copied.
        }
        raiseBootCount(storage, suite, token);
      },
    ],
  ])("in %s can be made good by repeating it, and repeat no count of any token", (_what, bind) => {
    // TOKEN has used 2 and 3. OTHER is provisioned, then TOKEN; each is cut once, and repeated.
    const origin = provisioned(medium);
    const used = [start(origin), start(origin)] as number[];
    const whole = origin.copy();
    bind(whole, suite, OTHER);
    const most = whole.steps;
    for (let first = 1; first <= most; first++) {
      const once = origin.copy();
      once.cutAfter(first);
      bind(once, suite, OTHER);
      const again = once.copy();
      bind(again, suite, OTHER);
      const counts = [...used, start(again, OTHER), start(again, OTHER)];
      for (let second = 1 + (first % 61); second <= most; second += 61) {
        const back = again.copy();
        back.cutAfter(second);
        bind(back, suite, TOKEN);
        const end = back.copy();
        bind(end, suite, TOKEN);
        const all = [...counts, start(end), start(end)];
        expect(all).toEqual([...new Set(all)].sort((a, b) => (a as number) - (b as number)));
        expect(all).not.toContain(null);
      }
    }
  });
});

/** The last member of a slot's text before its checksum. */
const seedIn = (storage: StoragePort, name: string): string => {
  const parts = (storage.read(name) ?? "").split(" ");
  return parts.length === 6 ? (parts[4] as string) : "";
};

const SEED = Uint8Array.from({ length: 32 }, () => 0x5e);

describe("a seed", () => {
  it("is replaced in both slots before a start has it, as vectors/forward-secrecy.json says", () => {
    const storage = new MemoryStorage();
    provisionBootCount(storage, suite, TOKEN, SEED);
    for (const { seed } of RATCHET.slice(0, -1)) {
      const next = RATCHET[RATCHET.findIndex((one) => one.seed === seed) + 1]?.seed;
      const result = raiseBootCount(storage, suite, TOKEN);
      expect(result.ok && toHex(result.seed ?? new Uint8Array())).toBe(seed);
      expect([seedIn(storage, "boot.0"), seedIn(storage, "boot.1")]).toEqual([next, next]);
    }
  });

  it.each([
    ["boot.0", 2],
    ["boot.1", 2],
    ["boot.0", 3],
    ["boot.1", 3],
  ])("has no count again from the slot that is left when %s is lost after %i starts", (name, n) => {
    const storage = new MemoryStorage();
    provisionBootCount(storage, suite, TOKEN, SEED);
    const used = Array.from({ length: n }, () => start(storage));
    storage.remove(name);
    used.push(start(storage), start(storage));
    expect(new Set(used).size).toBe(n + 2);
  });

  it("is drawn with each provisioning, and none is left of another packet version", () => {
    const storage = new MemoryStorage();
    provisionBootCount(storage, suite, TOKEN, SEED);
    expect(provisionBootCount(storage, suite, OTHER)).toEqual({ ok: true, count: 2 });
    expect(raiseBootCount(storage, suite, OTHER)).toEqual({ ok: true, count: 3 });
    expect(provisionBootCount(storage, suite, TOKEN, SEED)).toEqual({ ok: true, count: 4 });
    expect(raiseBootCount(storage, suite, TOKEN)).toEqual({ ok: true, count: 5, seed: SEED });
  });

  it("comes with a marker once, and is not left in its file", () => {
    const storage = new MemoryStorage();
    const { name, content } = bootCountMarker(suite, TOKEN, SEED);
    storage.write(name, content);
    expect(raiseBootCount(storage, suite, TOKEN)).toEqual({ ok: true, count: 2, seed: SEED });
    storage.write(name, content);
    const again = raiseBootCount(storage, suite, TOKEN);
    expect(again.ok && toHex(again.seed ?? SEED)).toBe(RATCHET[1]?.seed);
    expect(storage.read(name)).not.toContain(toHex(SEED));
  });

  it.each(MEDIA)("is used for one count, and gone, whenever the power fails: %s", (medium) => {
    fc.assert(
      fc.property(
        fc.array(fc.option(fc.integer({ min: 1, max: 700 })), { minLength: 1, maxLength: 12 }),
        (cuts) => {
          let storage = new CuttableStorage(medium);
          provisionBootCount(storage, suite, TOKEN, SEED);
          const used: string[] = [];
          let last = 1;
          for (const cut of [...cuts, null]) {
            storage = storage.copy();
            storage.cutAfter(cut);
            const result = raiseBootCount(storage, suite, TOKEN);
            if (!result.ok) continue;
            expect(result.count).toBeGreaterThan(last);
            last = result.count;
            used.push(toHex(result.seed ?? new Uint8Array()));
            // Whoever reads the medium now finds no seed of this start, nor of an earlier one.
            for (const name of ["boot.0", "boot.1"])
              for (const seed of used) expect(storage.read(name)).not.toContain(seed);
          }
          expect(used.length).toBeGreaterThan(0);
          expect(new Set(used).size).toBe(used.length);
        },
      ),
      { numRuns: 150 },
    );
  });
});

describe("a series of power cuts", () => {
  it("never uses a count twice", () => {
    fc.assert(
      fc.property(
        fc.constantFrom(...MEDIA),
        fc.array(fc.option(fc.integer({ min: 1, max: 260 })), { maxLength: 40 }),
        (medium, cuts) => {
          let storage = provisioned(medium);
          let last = 1;
          for (const cut of cuts) {
            storage = storage.copy();
            storage.cutAfter(cut);
            const count = start(storage);
            if (count === null) continue;
            expect(count).toBeGreaterThan(last);
            last = count;
          }
        },
      ),
      { numRuns: 300 },
    );
  });
});

it("a cut storage throws an error that tests can distinguish from a fault", () => {
  const storage = new CuttableStorage("truncate");
  storage.cutAfter(3);
  expect(() => storage.write("a", "text")).toThrow(PowerCut);
  expect(storage.copy().read("a")).toBe("te");
});
