/** A call that came after its `expires` does not run (section 2, "Nothing old"). */
import { jsonBytes } from "@blindrelay/protocol/crypto";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { Client, World } from "../testing/world.ts";
import { Dispatcher } from "./dispatch.ts";

const HOUR_MS = 3_600_000;
const CALL = { jsonrpc: "2.0", method: "door.open" };

/** What a session of this age does with a message: its answer's code ("result": none), and runs. */
const judge = (message: object, ageMs: number): { answer: unknown; runs: number } => {
  let runs = 0;
  let answer: unknown = null;
  const dispatcher = new Dispatcher(47_000, () => {});
  dispatcher.handle("door.open", () => {
    runs++;
  });
  dispatcher.receive(jsonBytes(message), "s", ageMs, (plaintext) => {
    const said = JSON.parse(new TextDecoder().decode(plaintext));
    answer = said.error === undefined ? "result" : [said.error.code, said.error.message];
  });
  return { answer, runs };
};

const TOO_LATE = [-32003, "too late"];
const INVALID = [-32600, "invalid request"];

describe("a request", () => {
  it.each([
    [0, 0],
    [1_000, 1_000],
    // 1 % of the session's age ...
    [9_900, 10_000],
    [99_000, 100_000],
    // ... but at most 5 s.
    [495_000, 500_000],
    [20 * HOUR_MS, 20 * HOUR_MS + 5_000],
    [2 ** 53 - 1, 24 * HOUR_MS],
  ])("that expires at %i ms runs at %i ms", (expires, ageMs) => {
    expect(judge({ ...CALL, id: 2, expires }, ageMs)).toEqual({ answer: "result", runs: 1 });
    expect(judge({ ...CALL, expires }, ageMs)).toEqual({ answer: null, runs: 1 });
  });

  it.each([
    [0, 1],
    [1_000, 1_011],
    [9_899, 10_000],
    [494_999, 500_000],
    [20 * HOUR_MS, 20 * HOUR_MS + 5_001],
  ])("that expires at %i ms does not run at %i ms", (expires, ageMs) => {
    expect(judge({ ...CALL, id: 2, expires }, ageMs)).toEqual({ answer: TOO_LATE, runs: 0 });
    expect(judge({ ...CALL, expires }, ageMs)).toEqual({ answer: null, runs: 0 });
  });

  it.each([-1, 0.5, 2 ** 53, 1e300, "1000", null, true, [1000], {}].map((expires) => [expires]))(
    "whose `expires` is %j is invalid and does not run",
    (expires) => {
      expect(judge({ ...CALL, id: 2, expires }, 0)).toEqual({ answer: INVALID, runs: 0 });
      expect(judge({ ...CALL, expires }, 0)).toEqual({ answer: null, runs: 0 });
    },
  );

  it("without `expires` runs at any age, and other unknown members are ignored", () => {
    const message = { ...CALL, id: 2, expired: 1, Expires: 1, params: { expires: 1 } };
    expect(judge(message, 24 * HOUR_MS)).toEqual({ answer: "result", runs: 1 });
  });

  it("for an unknown method is told so, whenever it expires", () => {
    const answer = [-32601, 'unknown method "x"'];
    expect(judge({ jsonrpc: "2.0", id: 2, method: "x", expires: 0 }, 1000).answer).toEqual(answer);
  });

  it("runs at most 5 s and never more than 1 % of the session's age late", () => {
    const ms = fc.integer({ min: 0, max: 24 * HOUR_MS });
    fc.assert(
      fc.property(ms, fc.integer({ min: -7_000, max: 7_000 }), (ageMs, earlier) => {
        const expires = Math.max(0, ageMs - earlier);
        const late = ageMs - expires;
        const runs = judge({ ...CALL, id: 2, expires }, ageMs).runs === 1;
        expect(runs).toBe(late <= 5_000 && late <= ageMs / 100);
      }),
    );
  });
});

/** Each has keys of its own. */
let worlds = 0;

/**
 * A client seals calls with a deadline of 30 s, in a session of this age; the relay releases them
 * at the given times after that. Returns how late each one was that ran; below 0: in time.
 */
const held = (ageMs: number, releasesMs: readonly number[]): number[] => {
  worlds++;
  const world = new World({ seed: worlds }).online();
  const lateMs: number[] = [];
  world.core.agent.handle("door.open", ({ deadline }) => {
    lateMs.push(world.timer.now() - deadline);
  });
  const client = new Client(world).open();
  const openedAt = world.timer.now();
  const wait = (ms: number): void => {
    for (let left = ms; left > 0; left -= 60_000) {
      world.timer.advance(Math.min(60_000, left));
      world.say({ type: "ping" });
    }
  };
  for (let left = ageMs; left > 0; left -= 60_000) {
    wait(Math.min(60_000, left));
    client.call("system.ping");
  }
  const sealedAt = world.timer.now();
  const deadline = sealedAt + 30_000;
  const texts = releasesMs.map((_, i) => {
    const call = { ...CALL, id: 1_000_000 + i, params: { deadline }, expires: deadline - openedAt };
    return client.session.seal(jsonBytes(call)) as string;
  });
  for (const [i, text] of texts.entries()) {
    wait(sealedAt + (releasesMs[i] as number) - world.timer.now());
    world.say(client.wrap(text));
  }
  return lateMs;
};

describe("a relay that holds calls back", () => {
  it.each([
    ["a minute", 60_000],
    ["20 hours", 20 * HOUR_MS],
  ])("has none of 33 executed over an hour, in a session of %s", (_what, ageMs) => {
    expect(held(ageMs, [29_000])).toEqual([-1_000]);
    const releases = Array.from({ length: 33 }, (_, i) => (i + 1) * 119_000);
    expect(held(ageMs, releases)).toEqual([]);
  });

  it("has none executed more than 5 s after its deadline, whenever it releases them", () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 0, max: 3_000_000 }),
        fc.array(fc.integer({ min: 0, max: 20_000 }), { minLength: 1, maxLength: 20 }),
        (ageMs, steps) => {
          let at = 0;
          const releases = steps.map((step) => {
            at += step;
            return at;
          });
          const late = held(ageMs, releases);
          expect(Math.max(0, ...late)).toBeLessThanOrEqual(5_000);
          expect(late.length).toBeGreaterThanOrEqual(releases.filter((ms) => ms <= 30_000).length);
        },
      ),
      { numRuns: 30 },
    );
  });
});
