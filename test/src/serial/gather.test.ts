import { ManualTimer } from "@blindrelay/agent-sdk/memory";
import { Gather } from "@blindrelay/protocol/serial";
import { expect, it } from "vitest";

const world = () => {
  const timer = new ManualTimer();
  const sent: { readonly at: number; readonly bytes: number }[] = [];
  let waiting = 0;
  const began = timer.now();
  const gather = new Gather(timer, () => {
    sent.push({ at: timer.now() - began, bytes: waiting });
    waiting = 0;
  });
  const come = (bytes: number): void => {
    waiting += bytes;
    gather.add(waiting, waiting >= 12_288);
  };
  return { timer, sent, come };
};

it("sends a key at once, and those that follow within 5 ms together", () => {
  const { timer, sent, come } = world();
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
  const { timer, sent, come } = world();
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
