/**
 * More agents than one connection has bindings: the relay and the client evict sessions all the
 * time, without affecting any call.
 */
import { MAX_BINDINGS_PER_CONNECTION } from "@blindrelay/protocol";
import { expect, test } from "vitest";
import { ManyAgents } from "./world.ts";

const AGENTS = 1_500;
const MINUTES = 15;
const MINUTE_MS = 60_000;
/** Long enough for other sessions to be bound while a call is in flight. */
const WORK_MS = 1_000;

test("every call of one client to 1,500 agents is answered, a call a minute each for 15 minutes", () => {
  expect(AGENTS).toBeGreaterThan(MAX_BINDINGS_PER_CONNECTION);
  const world = new ManyAgents();
  for (let n = 1; n <= AGENTS; n++) {
    const peer = world.agent(n, () => world.draw(WORK_MS));
    // Once per minute, but in varying order.
    for (let minute = 0; minute < MINUTES; minute++) {
      world.timer.set((minute + world.draw(1)) * MINUTE_MS, () => world.call(peer));
    }
  }
  world.timer.advance((MINUTES + 1) * MINUTE_MS);
  expect(world.endings).toEqual({ ok: AGENTS * MINUTES });
});
