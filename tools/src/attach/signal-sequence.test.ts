import { ManualTimer } from "@blindrelay/agent-sdk/memory";
import { expect, it } from "vitest";
import { type SequenceStep, SignalSequence } from "./signal-sequence.ts";

const world = () => {
  const timer = new ManualTimer();
  const ran: (readonly SequenceStep[])[] = [];
  return { timer, ran, sequence: new SignalSequence(timer, (steps) => ran.push(steps)) };
};

it("makes one command of a tool's reset, with its gaps, and both lines at once where it has none", () => {
  const { timer, ran, sequence } = world();
  // esptool's classic reset; each change waits a millisecond for its answer.
  for (const [lines, waitMs] of [
    [{ dtr: false }, 1],
    [{ rts: true }, 100],
    [{ dtr: true }, 1],
    [{ rts: false }, 50],
    [{ dtr: false }, 0],
  ] as const) {
    sequence.add(lines);
    timer.advance(waitMs);
  }
  expect(ran).toEqual([]);
  timer.advance(250);
  expect(ran).toEqual([
    [
      { dtr: false, rts: true, after_ms: 0 },
      { dtr: true, rts: false, after_ms: 101 },
      { dtr: false, after_ms: 51 },
    ],
  ]);
});

it("changes both lines at once for a tool that waits 50 ms for each answer, as pyserial does", () => {
  const { timer, ran, sequence } = world();
  const answerMs = 51;
  // esptool's classic reset, which sets DTR again after RTS (for a driver on Windows).
  for (const [lines, waitMs] of [
    [{ dtr: false }, 0],
    [{ rts: true }, 0],
    [{ dtr: false }, 100],
    [{ dtr: true }, 0],
    [{ rts: false }, 0],
    [{ dtr: true }, 50],
    [{ dtr: false }, 0],
  ] as const) {
    sequence.add(lines);
    timer.advance(answerMs + waitMs);
  }
  timer.advance(250);
  expect(ran).toEqual([
    [
      { dtr: false, rts: true, after_ms: 0 },
      { dtr: false, after_ms: 102 },
      { dtr: true, rts: false, after_ms: 151 },
      { dtr: true, after_ms: 102 },
      { dtr: false, after_ms: 101 },
    ],
  ]);
});

it("runs before what follows, begins anew after a pause, and stays within the bridge's limits", () => {
  const { timer, ran, sequence } = world();
  sequence.add({ dtr: true });
  sequence.flush();
  sequence.flush();
  expect(ran).toEqual([[{ dtr: true, after_ms: 0 }]]);
  for (let n = 0; n < 40; n++) {
    sequence.add({ rts: n % 2 === 0 });
    timer.advance(10);
  }
  timer.advance(250);
  expect(ran.map((steps) => steps.length)).toEqual([1, 32, 8]);
});
