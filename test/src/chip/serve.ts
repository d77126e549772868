/** Calls of many clients to the chip. */
import { deepStrictEqual } from "node:assert";
import type { ChipFigures } from "@blindrelay/agent-sdk/testing/chip/chip";
import { type Caller, type ChipHouse, readFigures } from "./house.ts";

/** Below what clients take for a device that hangs, on a machine that is busy. */
const AT_ONCE = 4;

export interface Served {
  /** Before the new clients; with them; after all calls. */
  readonly before: ChipFigures;
  readonly all: ChipFigures;
  readonly after: ChipFigures;
}

/** Bytes that stay in use for each call. */
export const leakOf = (before: ChipFigures, after: ChipFigures, calls: number): number =>
  (after.live - before.live) / calls;

/**
 * Adds clients to `callers` until there are so many, then makes the calls. Throws for one that
 * fails or is answered with something else.
 */
export const serve = async (
  house: ChipHouse,
  callers: Caller[],
  clients: number,
  calls: number,
): Promise<Served> => {
  const call = async (caller: Caller, n: number): Promise<void> => {
    const params = { n };
    deepStrictEqual(await caller("echo", params), params);
  };
  const open = async (): Promise<void> => {
    const caller = await house.caller();
    callers.push(caller);
    await call(caller, callers.length);
  };
  if (callers.length === 0) await open();
  const first = callers[0] as Caller;
  const before = await readFigures(first);
  while (callers.length < clients) await open();
  const all = await readFigures(first);
  for (let n = 0; n < calls; n += AT_ONCE) {
    const round = Array.from({ length: AT_ONCE }, (_, i) => n + i);
    await Promise.all(round.map((i) => call(callers[i % clients] as Caller, i)));
  }
  const after = await readFigures(first);
  return { before, all, after };
};
