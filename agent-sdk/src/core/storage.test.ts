/** What a device program stores, when the power goes at any step and when the medium is full. */
import { describe, expect, it } from "vitest";
import { CuttableStorage, MEDIA, MemoryStorage, PowerCut } from "../memory/index.ts";
import { DeviceStorage } from "./storage.ts";

/** Cuts `act` at each step in turn; `found`: what the next start makes of the medium. */
const cutEverywhere = (
  start: CuttableStorage,
  act: (storage: DeviceStorage) => void,
  found: (storage: DeviceStorage, medium: CuttableStorage) => void,
): number => {
  for (let step = 1; ; step++) {
    const medium = start.copy();
    medium.cutAfter(step);
    try {
      act(new DeviceStorage(medium));
      return step;
    } catch (error) {
      expect(error).toBeInstanceOf(PowerCut);
    }
    medium.cutAfter(null);
    found(new DeviceStorage(medium), medium);
  }
};

describe.each(MEDIA)("a power cut on a medium that tears by %s", (kind) => {
  const filled = (...texts: string[]): CuttableStorage => {
    const medium = new CuttableStorage(kind);
    const storage = new DeviceStorage(medium);
    for (const text of texts) storage.set("a", text);
    storage.set("b", "other");
    return medium;
  };

  it("leaves the old text or the new one, and the others", () => {
    const steps = cutEverywhere(
      filled("1", "22", "333"),
      (storage) => storage.set("a", "4444"),
      (storage) => {
        expect(["333", "4444"]).toContain(storage.get("a"));
        expect(storage.get("b")).toBe("other");
      },
    );
    expect(steps).toBeGreaterThan(10);
  });

  it("leaves it so when the next write is cut too", () => {
    cutEverywhere(
      filled("1", "22", "333"),
      (storage) => storage.set("a", "4444"),
      (storage, medium) => {
        const kept = storage.get("a");
        cutEverywhere(
          medium.copy(),
          (again) => again.set("a", "5"),
          (left) => expect([kept, "5"]).toContain(left.get("a")),
        );
      },
    );
  });

  it.each([
    ["second", ["1", "22"]],
    ["third", ["1", "22", "333"]],
  ])("never brings back an older text than the %s one, which was removed", (_which, texts) => {
    cutEverywhere(
      filled(...texts),
      (storage) => storage.remove("a"),
      (storage) => expect([texts.at(-1), null]).toContain(storage.get("a")),
    );
  });
});

it("keeps the old text, and says so, where the medium is full", () => {
  const medium = new MemoryStorage();
  const storage = new DeviceStorage(medium);
  storage.set("a", "old");
  medium.write = () => {
    throw new Error("no space in flash");
  };
  expect(() => storage.set("a", "new")).toThrow("no space in flash");
  expect(storage.get("a")).toBe("old");
});

it("keeps a text that was set before, and writes none that is there already", () => {
  const medium = new MemoryStorage();
  const storage = new DeviceStorage(medium);
  for (const text of ["x", "y", "z", "y"]) storage.set("a", text);
  expect(storage.get("a")).toBe("y");
  medium.write = () => expect.fail("flash wears out");
  storage.set("a", "y");
});

it("forgets a text once, and keeps one without a single plain character", () => {
  const storage = new DeviceStorage(new MemoryStorage());
  storage.set("a", "é€");
  expect(storage.get("a")).toBe("é€");
  storage.remove("a");
  storage.remove("a");
  expect(storage.get("a")).toBeNull();
});

it("throws where the medium does not keep what is written", () => {
  const medium = new MemoryStorage();
  medium.write = () => {};
  expect(() => new DeviceStorage(medium).set("a", "new")).toThrow("does not keep");
});

it("reads nothing into what others left in its files", () => {
  const medium = new MemoryStorage();
  for (const [n, text] of ["", "x", "a 1 b 0", "a 1 b", "é 1 x 5", "\xff\xff"].entries()) {
    medium.write(`text.${n}`, text);
  }
  const storage = new DeviceStorage(medium);
  expect(storage.get("a")).toBe(null);
  for (let n = 0; n < 16; n++) storage.set(`k${n}`, "");
});

it.each([
  ["", "x", /1 to 24/],
  ["UPPER", "x", /1 to 24/],
  ["a b", "x", /1 to 24/],
  ["x".repeat(25), "x", /1 to 24/],
  [undefined, "x", /1 to 24/],
  ["a", 5, /JSON\.stringify/],
  ["a", null, /JSON\.stringify/],
  ["a", "x".repeat(257), /up to 256 bytes, not 257/],
  ["a", "é".repeat(129), /up to 256 bytes, not 258/],
])("refuses %j with %j", (key, text, why) => {
  const storage = new DeviceStorage(new MemoryStorage());
  expect(() => storage.set(key as string, text as string)).toThrow(why);
});

it("refuses what is no key, whatever is done with it", () => {
  const storage = new DeviceStorage(new MemoryStorage());
  expect(() => storage.get("UPPER")).toThrow("1 to 24");
  expect(() => storage.remove("UPPER")).toThrow("1 to 24");
});
