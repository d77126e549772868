/** What the edges rely on where the generator repeats itself, or the machine sleeps. */
import { randomBytes } from "node:crypto";
import { systemTimer } from "@blindrelay/protocol/elapsed-clock";
import { nobleSuite } from "@blindrelay/protocol/suites/noble";
import { nodeSuite } from "@blindrelay/protocol/suites/node";
import { afterEach, describe, expect, it, vi } from "vitest";
import { hedgedRandom } from "./edge-ports.ts";

const hex = (bytes: Uint8Array): string => Buffer.from(bytes).toString("hex");
const broken = (length: number): Uint8Array => new Uint8Array(length);

describe.each([
  ["Node", nodeSuite()],
  ["browsers", nobleSuite()],
])("randomness for %s", (_, suite) => {
  it("has the length that was asked for", () => {
    const random = hedgedRandom(randomBytes, suite);
    for (const length of [0, 1, 2, 12, 16, 32, 33, 100])
      expect(random(length)).toHaveLength(length);
  });

  it("never repeats, though the generator does and the clocks stand still", () => {
    const random = hedgedRandom(broken, suite, () => "now");
    const drawn = Array.from({ length: 1000 }, () => hex(random(16)));
    expect(new Set([...drawn, ...(hex(random(96)).match(/.{32}/g) ?? [])]).size).toBe(1006);
  });

  it("differs between two runs of one snapshot, which have another time", () => {
    const run = (time: string) => hex(hedgedRandom(broken, suite, () => time)(16));
    expect(run("1|2")).toBe(run("1|2"));
    expect(new Set([run("1|2"), run("1|3"), run("2|2")]).size).toBe(3);
  });

  it("differs with the generator, at the start or later, though both clocks repeat", () => {
    const drawn = [
      [1, 1],
      [1, 2],
      [2, 1],
    ].map((fills) => {
      const generator = (length: number) => new Uint8Array(length).fill(fills.shift() as number);
      return hex(hedgedRandom(generator, suite, () => "now")(16));
    });
    expect(new Set(drawn).size).toBe(3);
  });
});

describe("the system's timer", () => {
  afterEach(() => vi.restoreAllMocks());

  it("counts the time for which the machine slept", () => {
    const timer = systemTimer();
    const before = timer.now();
    const { now } = Date;
    vi.spyOn(Date, "now").mockImplementation(() => now() + 3_600_000);
    expect(timer.now() - before).toBeGreaterThan(3_590_000);
    expect(timer.leapt?.()).toBeGreaterThan(3_590_000);
  });
});
