import { describe, expect, it } from "vitest";
import { VirtualClock } from "../testing/clock.ts";
import { MAX_EARLY_BYTES, RENEWED_LINK_MS } from "./defaults.ts";
import { EarlyPackets } from "./early-packets.ts";

const SID = `${"A".repeat(22)}.${"B".repeat(22)}`;
const OTHER = `${"A".repeat(22)}.${"C".repeat(22)}`;

const packet = (seq: number, sid = SID, length = 22): string =>
  `{"v":"1","sid":"${sid}","seq":${seq},"p":"${"A".repeat(length)}"}`;

const waiting = () => {
  const clock = new VirtualClock();
  const due: number[] = [];
  return { clock, due, early: new EarlyPackets(clock, () => due.push(clock.now())) };
};

describe("a packet on the next link", () => {
  it("waits unless it is the next one of the session", () => {
    const { early } = waiting();
    expect(early.hold(packet(4), SID, 4)).toBe(false);
    expect(early.hold(packet(5), SID, 4)).toBe(false);
    expect(early.hold(packet(6), SID, 4)).toBe(true);
    expect(early.takeAll()).toEqual([packet(6)]);
  });

  it("does not wait if it is another session's, is none, or waits already", () => {
    const { early } = waiting();
    expect(early.hold(packet(6, OTHER), SID, 4)).toBe(false);
    expect(early.hold(packet(6), null, 4)).toBe(false);
    expect(early.hold("nonsense", SID, 4)).toBe(false);
    expect(early.hold(packet(6), SID, 4)).toBe(true);
    expect(early.hold(packet(6, SID, 32), SID, 4)).toBe(false);
    expect(early.takeAll()).toEqual([packet(6)]);
  });

  it("is taken by its seq, once", () => {
    const { early } = waiting();
    for (const seq of [7, 6]) early.hold(packet(seq), SID, 4);
    expect(early.take(5)).toBe(null);
    expect(early.take(6)).toBe(packet(6));
    expect(early.take(6)).toBe(null);
    expect(early.takeAll()).toEqual([packet(7)]);
  });

  it("is one of those taken at last, in the order of their seq", () => {
    const { early } = waiting();
    for (const seq of [10, 9, 100, 7]) early.hold(packet(seq), SID, 4);
    expect(early.takeAll()).toEqual([7, 9, 10, 100].map((seq) => packet(seq)));
    expect(early.takeAll()).toEqual([]);
  });
});

describe("early packets", () => {
  it("wait for a second after the first of them", async () => {
    const { clock, due, early } = waiting();
    early.hold(packet(6), SID, 4);
    await clock.run(600);
    early.hold(packet(7), SID, 4);
    await clock.run(5_000);
    expect(due).toEqual([RENEWED_LINK_MS]);
  });

  it("are waited for no more once all were taken or forgotten", async () => {
    const { clock, due, early } = waiting();
    early.hold(packet(6), SID, 4);
    early.hold(packet(7), SID, 4);
    early.take(6);
    expect(clock.pending).toBe(1);
    early.take(7);
    expect(clock.pending).toBe(0);
    early.hold(packet(8), SID, 4);
    early.clear();
    await clock.run(5_000);
    expect([due, early.takeAll()]).toEqual([[], []]);
  });

  it("take a bounded number of bytes, which those that were taken leave", () => {
    const { early } = waiting();
    const around = packet(10, SID, 0).length;
    // 17 of one size, and one that fills the rest.
    const each = 60_000;
    const rest = MAX_EARLY_BYTES - 17 * (each + around) - around;
    for (let seq = 10; seq < 27; seq++) early.hold(packet(seq, SID, each), SID, 4);
    expect(early.hold(packet(27, SID, rest + 1), SID, 4)).toBe(false);
    expect(early.hold(packet(27, SID, rest), SID, 4)).toBe(true);
    expect(early.hold(packet(28), SID, 4)).toBe(false);
    early.take(10);
    expect(early.hold(packet(28, SID, each), SID, 4)).toBe(true);
    expect(early.hold(packet(29), SID, 4)).toBe(false);
    early.clear();
    expect(early.hold(packet(29), SID, 4)).toBe(true);
  });
});
