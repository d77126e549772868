/** `/wss` over a store that has never seen a session token, as after a restored backup. */
import { afterAll, beforeAll, expect, it } from "vitest";
import { Lockout } from "../core/limits/lockout.ts";
import type { HubLink } from "../core/link.ts";
import { openStore, type Store } from "../store/open.ts";
import { sqlite } from "../store/testing/engines.ts";
import { runHub } from "../ws/hub-driver.ts";
import { drawToken } from "./secrets.ts";
import { storeLookups } from "./token-check.ts";
import { storeWriteBehind } from "./write-behind.ts";

const engine = sqlite();
let store: Store;
beforeAll(async () => {
  store = await openStore(await engine.prepare(), true);
});
afterAll(async () => {
  await store.close();
  await engine.remove();
});

it("is refused and not counted, spread when there are many, and after a lockout", async () => {
  const nowMs = Date.now();
  const clocks = { wallMs: () => nowMs, steadyMs: () => nowMs };
  const lockout = new Lockout();
  const lookups = storeLookups(store);
  const { hub, stop } = runHub({
    lookups,
    writeBehind: storeWriteBehind(store),
    lockout,
    limits: {},
    clocks,
    log: { error: () => undefined },
  });
  const logIn = () =>
    new Promise<Record<string, unknown>>((resolve) => {
      const link: HubLink = {
        send: (frame) => resolve(JSON.parse(frame.toString())),
        queued: () => 0,
        close: () => undefined,
        pause: () => undefined,
        resume: () => undefined,
      };
      const text = JSON.stringify({
        type: "auth",
        session_token: drawToken("session"),
        client_type: "agent",
        agent_id: "pump-7",
      });
      hub.receive(hub.connect(link, "192.0.2.1", nowMs), text, Buffer.from(text), nowMs);
    });
  try {
    const refused = { error: "Invalid token", code: "SESSION_EXPIRED", retry_after: 0 };
    for (let round = 0; round < 60; round += 1) expect(await logIn()).toMatchObject(refused);
    const spread = await logIn();
    expect(spread).toMatchObject({ code: "RATE_LIMITED" });
    expect(spread.retry_after).toBeGreaterThan(0);
    expect(lockout.failures).toBe(0);
    for (let round = 0; round < 5; round += 1) lockout.fail("192.0.2.1", nowMs);
    expect(await logIn()).toMatchObject({ code: "LOCKED_OUT" });
  } finally {
    stop();
  }
});
