/** How much waits for each connection and each user, and in which order it goes on. */
import { describe, expect, it } from "vitest";
import {
  DEFAULT_LIMITS,
  FREE_HELD_BYTES,
  HELD_BYTES,
  HELD_BYTES_PER_USER,
  HELD_OVERHEAD_BYTES,
} from "../limits/limits.ts";
import { UserShare } from "../limits/user-share.ts";
import type { HubLink } from "../link.ts";
import { Connection } from "./connection.ts";
import { drop, hold, release, startHolding } from "./hold-queue.ts";

const FULL = HELD_BYTES - HELD_OVERHEAD_BYTES;

/** A connection that holds, and what its link was asked. */
const holding = () => {
  const asked: string[] = [];
  const link: Partial<HubLink> = {
    pause: () => asked.push("pause"),
    resume: () => asked.push("resume"),
  };
  const connection = new Connection(link as HubLink, "192.0.2.1", DEFAULT_LIMITS, 0);
  startHolding(connection);
  return { connection, asked };
};

const frames = (...lengths: number[]) => lengths.map((length) => new Uint8Array(length));

describe("what a connection holds", () => {
  it("is bounded, and each message costs more than its bytes", () => {
    const share = new UserShare<Connection>();
    const [one, other] = [holding(), holding()];
    const [full, small] = frames(FULL, 0) as [Uint8Array, Uint8Array];
    expect(hold(one.connection, share, "", full, Infinity)).toBe(true);
    expect(hold(one.connection, share, "", small, Infinity)).toBe(false);
    expect(share.heldBytes).toBe(HELD_BYTES);
    let count = 0;
    while (hold(other.connection, share, "", small, Infinity)) count += 1;
    expect(count).toBe(HELD_BYTES / HELD_OVERHEAD_BYTES);
  });

  it("may be one longer message, and nothing beside it", () => {
    const { connection } = holding();
    const [long, small] = frames(FULL + 1, 0) as [Uint8Array, Uint8Array];
    const share = new UserShare<Connection>();
    expect(hold(connection, share, "", long, Infinity)).toBe(true);
    expect(hold(connection, share, "", small, Infinity)).toBe(false);
  });

  it("is little when its user's connections hold much, and never nothing", () => {
    const share = new UserShare<Connection>();
    const [full] = frames(FULL) as [Uint8Array];
    for (let held = 0; held < HELD_BYTES_PER_USER; held += HELD_BYTES) {
      expect(hold(holding().connection, share, "", full, Infinity)).toBe(true);
    }
    const { connection } = holding();
    const [free, small] = frames(FREE_HELD_BYTES - HELD_OVERHEAD_BYTES, 0) as [
      Uint8Array,
      Uint8Array,
    ];
    expect(hold(connection, share, "", free, Infinity)).toBe(true);
    expect(hold(connection, share, "", small, Infinity)).toBe(false);
    expect(hold(holding().connection, new UserShare(), "", full, Infinity)).toBe(true);
  });

  it("pauses its link once, beyond what it may hold without, or while its user holds much", () => {
    const share = new UserShare<Connection>();
    const [small, full] = frames(100, FULL) as [Uint8Array, Uint8Array];
    const one = holding();
    hold(one.connection, share, "", small, 100 + HELD_OVERHEAD_BYTES);
    expect(one.asked).toEqual([]);
    for (let times = 0; times < 2; times++) {
      hold(one.connection, share, "", small, 100 + HELD_OVERHEAD_BYTES);
    }
    expect(one.asked).toEqual(["pause"]);
    const others = [];
    while (share.heldBytes <= HELD_BYTES_PER_USER / 2 - HELD_BYTES) {
      const other = holding();
      others.push(other);
      hold(other.connection, share, "", full, Infinity);
    }
    expect(others.flatMap(({ asked }) => asked)).toEqual([]);
    const late = holding();
    hold(late.connection, share, "", full, Infinity);
    expect(late.asked).toEqual(["pause"]);
  });

  it("goes on in order, and frees its room", () => {
    const share = new UserShare<Connection>();
    const { connection, asked } = holding();
    for (const text of ["a", "b"]) hold(connection, share, text, new Uint8Array(10), 0);
    const handled: unknown[] = [];
    release(connection, (content) => handled.push([content, share.heldBytes]));
    expect(handled).toEqual([
      ["a", 10 + HELD_OVERHEAD_BYTES],
      ["b", 0],
    ]);
    expect(asked).toEqual(["pause", "resume"]);
    expect(connection).toMatchObject({ held: null, heldBytes: 0, heldBy: null, paused: false });
    release(connection, () => expect.unreachable("nothing is held"));
    expect(asked).toHaveLength(2);
  });

  it("waits behind a message that makes it wait again", () => {
    const share = new UserShare<Connection>();
    const { connection, asked } = holding();
    for (const text of ["a", "b", "c"]) hold(connection, share, text, new Uint8Array(10), 0);
    const handled: unknown[] = [];
    release(connection, (content) => {
      handled.push(content);
      startHolding(connection);
    });
    expect([handled, asked]).toEqual([["a"], ["pause"]]);
    expect(share.heldBytes).toBe(2 * (10 + HELD_OVERHEAD_BYTES));
    release(connection, (content) => handled.push(content));
    expect([handled, asked]).toEqual([
      ["a", "b", "c"],
      ["pause", "resume"],
    ]);
  });

  it("is charged to the share that it was held under, and dropped from it", () => {
    const [before, after] = [new UserShare<Connection>(), new UserShare<Connection>()];
    const { connection } = holding();
    hold(connection, before, "", new Uint8Array(10), 0);
    hold(connection, after, "", new Uint8Array(10), 0);
    expect([before.heldBytes, after.heldBytes]).toEqual([2 * (10 + HELD_OVERHEAD_BYTES), 0]);
    drop(connection);
    expect(before.heldBytes).toBe(0);
    expect(connection).toMatchObject({ held: null, heldBytes: 0, heldBy: null });
  });
});
