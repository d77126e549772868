import { makeToken } from "@blindrelay/protocol";
import { describe, expect, it } from "vitest";
import { MemoryStorage } from "../memory/index.ts";
import { Client, World } from "../testing/world.ts";
import { keepSession, watchWake } from "./wake.ts";

const SESSION = makeToken("session", new Uint8Array(32).fill(5));
const NEXT = makeToken("session", new Uint8Array(32).fill(6));
const TIMING = { idleMs: 2000, awakeMs: 30_000 };
const DAY_S = 86_400;

/** A storage that counts its writes. */
class CountedStorage extends MemoryStorage {
  writes = 0;
  override write(name: string, text: string): void {
    this.writes++;
    super.write(name, text);
  }
}

describe("the session token of a wake", () => {
  it("is that of the previous wake, and is written once", () => {
    const storage = new CountedStorage();
    for (const wake of [0, 1, 2]) {
      const world = new World({ bootCount: 2 + wake });
      keepSession(world.core, storage);
      world.core.start();
      world.settle();
      const [auth] = world.link().messages;
      expect(auth.session_token).toBe(wake === 0 ? undefined : SESSION);
      expect(auth.api_token === undefined).toBe(wake > 0);
      world.accept(DAY_S, SESSION);
      expect([world.core.link.status.state, storage.writes]).toEqual(["online", 1]);
      world.core.stop();
    }
  });

  it.each(["SESSION_EXPIRED", "LIMIT_EXCEEDED", "INVALID_TOKEN"])(
    "is replaced on the same link if the relay says %s",
    (code) => {
      const storage = new CountedStorage();
      storage.write("session", SESSION);
      const world = new World();
      keepSession(world.core, storage);
      world.core.start();
      world.settle();
      world.fail(code);
      expect(world.links).toHaveLength(1);
      expect(world.link().last().api_token).toMatch(/^agt_/);
      world.accept(DAY_S, NEXT);
      expect([storage.read("session"), storage.writes]).toEqual([NEXT, 2]);
    },
  );

  it.each(["LOCKED_OUT", "RATE_LIMITED"])(
    "is removed if the relay says %s, so that the next wake uses the relay token",
    (code) => {
      const storage = new CountedStorage();
      storage.write("session", SESSION);
      const wakes = [new World({ bootCount: 2 }), new World({ bootCount: 3 })] as const;
      for (const world of wakes) {
        keepSession(world.core, storage);
        world.core.start();
        world.settle();
        world.fail(code, 60);
        world.core.stop();
      }
      expect(wakes[0].link().messages).toEqual([
        expect.objectContaining({ session_token: SESSION }),
      ]);
      expect(wakes[1].link().messages[0].api_token).toMatch(/^agt_/);
      expect(storage.writes).toBe(2);
    },
  );

  it("is kept if the relay's store is away", () => {
    const storage = new CountedStorage();
    storage.write("session", SESSION);
    const world = new World();
    keepSession(world.core, storage);
    world.core.start();
    world.settle();
    world.fail("UNAVAILABLE");
    expect([storage.read("session"), storage.writes]).toEqual([SESSION, 1]);
  });

  it.each(["sess_torn", "x".repeat(54)])("is neither stored nor used if it is %s", (torn) => {
    const storage = new CountedStorage();
    storage.write("session", torn);
    const world = new World();
    keepSession(world.core, storage);
    world.core.start();
    world.settle();
    expect(world.link().last().session_token).toBe(undefined);
    world.accept(DAY_S, `sess_${"x".repeat(4000)}`);
    expect([world.core.link.status.state, storage.writes]).toEqual(["online", 1]);
  });
});

/** When the wake ended; null: it has not. */
const watched = (world: World, held = () => false) => {
  const seen = { overAt: null as number | null };
  watchWake(world.core, TIMING, held, () => {
    seen.overAt = world.timer.now();
    world.core.stop();
  });
  return seen;
};

describe("a wake", () => {
  it("ends when no message has arrived for a while", () => {
    const world = new World();
    const seen = watched(world);
    world.online();
    world.timer.advance(1500);
    const client = new Client(world).open();
    expect(client.call("system.ping").result).toEqual({});
    const from = world.timer.now();
    world.timer.advance(TIMING.idleMs - 1);
    expect(seen.overAt).toBe(null);
    world.timer.advance(1);
    expect(seen.overAt).toBe(from + TIMING.idleMs);
    world.settle();
    expect(world.link().closedWith).toBe(1000);
  });

  it("waits for handlers, but not for ever", () => {
    const world = new World();
    const seen = watched(world);
    let done: (value: unknown) => void = () => undefined;
    world.core.agent.handle("slow", () => new Promise((resolve) => (done = resolve)));
    world.online();
    new Client(world).open().call("slow");
    world.timer.advance(TIMING.awakeMs - 1);
    expect([seen.overAt, world.core.dispatcher.inFlight()]).toEqual([null, 1]);
    world.timer.advance(1);
    expect(seen.overAt).not.toBe(null);
    done(1);
  });

  it.each([
    ["the relay is not there", (world: World) => (world.relayIsUp = false)],
    ["the relay never answers the login", () => undefined],
  ])("ends in time if %s", (_what, prepare) => {
    const world = new World();
    const seen = watched(world);
    prepare(world);
    world.core.start();
    world.timer.advance(TIMING.awakeMs + TIMING.idleMs);
    expect(seen.overAt).toBeLessThanOrEqual(TIMING.awakeMs);
    expect(seen.overAt).toBeGreaterThan(TIMING.awakeMs / 2);
  });

  it("ends soon if the relay asks the agent to wait longer", () => {
    const world = new World();
    const seen = watched(world);
    world.core.start();
    world.settle();
    world.fail("LOCKED_OUT", 600);
    world.timer.advance(TIMING.idleMs);
    expect(seen.overAt).toBe(TIMING.idleMs);
  });

  it("ends at its next check if the relay refuses the agent for good", () => {
    const world = new World();
    const seen = watched(world);
    world.core.start();
    world.settle();
    world.fail("WRONG_TOKEN_KIND");
    world.timer.advance(TIMING.idleMs);
    expect(seen.overAt).toBe(TIMING.idleMs);
  });

  it("lasts as long wherever the clock stands at its start", () => {
    const world = new World();
    world.timer.advance(TIMING.awakeMs);
    const seen = watched(world);
    world.relayIsUp = false;
    world.core.start();
    world.timer.advance(TIMING.awakeMs / 2);
    expect(seen.overAt).toBeNull();
  });

  it("continues while it is held, and ends with the agent", () => {
    const world = new World();
    let held = true;
    const seen = watched(world, () => held);
    world.online();
    world.timer.advance(3 * TIMING.awakeMs);
    expect(seen.overAt).toBe(null);
    held = false;
    world.timer.advance(TIMING.idleMs);
    expect(seen.overAt).not.toBe(null);

    const stopped = new World();
    const unseen = watched(stopped);
    stopped.online();
    stopped.core.stop();
    stopped.timer.advance(2 * TIMING.awakeMs);
    expect(unseen.overAt).toBe(null);
  });
});
