import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { Gather } from "./gather.ts";

beforeEach(() => void vi.useFakeTimers({ now: 0 }));
afterEach(() => void vi.useRealTimers());

const timer = {
  now: () => Date.now(),
  set: (ms: number, fn: () => void) => setTimeout(fn, ms),
  clear: (handle: unknown) => clearTimeout(handle as number),
  advance: (ms: number) => vi.advanceTimersByTime(ms),
};

const world = () => {
  const sent: { readonly at: number; readonly bytes: number }[] = [];
  let waiting = 0;
  const gather = new Gather(timer, () => {
    sent.push({ at: timer.now(), bytes: waiting });
    waiting = 0;
  });
  const come = (bytes: number): void => {
    waiting += bytes;
    gather.add(waiting, waiting >= 12_288);
  };
  return { gather, sent, come };
};

it("sends a key at once, and those that follow within 5 ms together", () => {
  const { sent, come } = world();
  come(1);
  timer.advance(1);
  come(1);
  come(1);
  timer.advance(100);
  come(1);
  expect(sent).toEqual([
    { at: 0, bytes: 1 },
    { at: 5, bytes: 2 },
    { at: 101, bytes: 1 },
  ]);
});

it("makes a message of each 20 ms of a flow at 1 Mbaud, however small its parts are", () => {
  const { sent, come } = world();
  for (let ms = 0; ms <= 100; ms++) {
    come(100);
    timer.advance(1);
  }
  const flow = sent.slice(1);
  expect(flow.length).toBeLessThanOrEqual(5);
  expect(flow[0]).toEqual({ at: 20, bytes: 1_900 });
});

it("does not wait with a full message", () => {
  const { sent, come } = world();
  come(1);
  come(12_288);
  expect(sent.map(({ at }) => at)).toEqual([0, 0]);
});

it("waits 20 ms from 256 bytes on, and 5 ms below", () => {
  for (const [bytes, at] of [
    [255, 5],
    [256, 20],
  ] as const) {
    const { sent, come } = world();
    const began = timer.now();
    come(1);
    come(bytes);
    timer.advance(100);
    expect(sent.map((each) => each.at - began)).toEqual([0, at]);
  }
});

it("sends what was put off when its time has come, whatever the size of the message before", () => {
  const { gather, sent, come } = world();
  come(12_288);
  timer.advance(1);
  gather.later(10);
  gather.later(1);
  timer.advance(100);
  expect(sent.map(({ at }) => at)).toEqual([0, 11]);
});

it("does not send again what was put off if more comes before, and nothing once it is stopped", () => {
  const { gather, sent, come } = world();
  gather.later(50);
  timer.advance(10);
  come(1);
  timer.advance(100);
  come(1);
  come(1);
  gather.stop();
  timer.advance(100);
  expect(sent.map(({ at }) => at)).toEqual([10, 110]);
});
