/** Calls of many clients to the chip, and what they cost it. */
import { deepStrictEqual } from "node:assert";
import type { ChipFigures } from "@blindrelay/agent-sdk/testing/chip/chip";
import { type Caller, type ChipHouse, readFigures } from "./house.ts";

/** Below what clients take for a device that hangs, on a machine that is busy. */
const AT_ONCE = 4;
const TEXT = "x".repeat(200);

export interface Served {
  readonly first: Caller;
  /** With one client; with all; after all calls. */
  readonly one: ChipFigures;
  readonly all: ChipFigures;
  readonly after: ChipFigures;
  /** Instructions. */
  readonly perOpening: number;
  readonly perCall: number;
}

/** Bytes that stay in use for each call. */
export const leakOf = (before: ChipFigures, after: ChipFigures, calls: number): number =>
  (after.live - before.live) / calls;

/** Throws for a call that fails, or is answered with something else. */
export const serve = async (house: ChipHouse, clients: number, calls: number): Promise<Served> => {
  const first = await house.caller();
  const callers = [first];
  const call = async (caller: Caller, n: number): Promise<void> => {
    const params = { n, text: TEXT };
    deepStrictEqual(await caller("echo", params), params);
  };
  await call(first, 0);
  const one = await readFigures(first);
  while (callers.length < clients) {
    const caller = await house.caller();
    callers.push(caller);
    await call(caller, callers.length);
  }
  const all = await readFigures(first);
  for (let n = 0; n < calls; n += AT_ONCE) {
    const round = Array.from({ length: AT_ONCE }, (_, i) => n + i);
    await Promise.all(round.map((i) => call(callers[i % clients] as Caller, i)));
  }
  const after = await readFigures(first);
  const perCall = (after.instructions - all.instructions) / calls;
  const perOpening = (all.instructions - one.instructions) / (clients - 1) - perCall;
  return {
    first,
    one,
    all,
    after,
    perOpening: Math.round(perOpening),
    perCall: Math.round(perCall),
  };
};
