import { Lockout } from "@blindrelay/relay-server/core";
import { afterEach, expect, test, vi } from "vitest";
import type { Scenario } from "../scenario/schema.ts";
import { loadPrograms } from "./programs.ts";
import { runVirtual } from "./run.ts";

afterEach(() => {
  vi.restoreAllMocks();
});

const play = async (nodes = 1) => {
  const scenario: Scenario = {
    name: "garbage",
    duration: "3m",
    relay: { nodes },
    devices: [{ group: "a", count: 1, kind: "echo" }],
    drivers: [{ kind: "garbage" }],
  };
  const programs = loadPrograms(scenario, ".");
  const { violation } = await runVirtual(scenario, { seed: 1, programs });
  return violation?.detail ?? null;
};

/** The lockout of an address seems to be over after so many milliseconds. */
const lockOutFor = (longestMs: number): void => {
  const { secondsLeft } = Lockout.prototype;
  const since = new Map<string, number>();
  vi.spyOn(Lockout.prototype, "secondsLeft").mockImplementation(function (
    this: Lockout,
    address,
    nowMs,
  ) {
    const left = secondsLeft.call(this, address, nowMs);
    if (left > 0 && !since.has(address)) since.set(address, nowMs);
    return nowMs - (since.get(address) ?? nowMs) < longestMs ? left : 0;
  });
};

test.each([1, 3])("guesses of a token lock their address out of %i nodes", async (nodes) => {
  expect(await play(nodes)).toBeNull();
});

test("the driver finds a lockout that does not come, or ends too soon", async () => {
  lockOutFor(0);
  expect(await play()).toBe("garbage-1: after 5 guesses of a token, a login got in");
  vi.restoreAllMocks();
  lockOutFor(60_000);
  expect(await play()).toBe("garbage-1: after 5 guesses of a token, a login a minute later got in");
});

test("a node that starts after the guesses knows nothing of them", async () => {
  const drained = { kind: "relay.restart", at: "18s", for: "67s" } as const;
  const scenario: Scenario = {
    name: "guesses while a node is down",
    duration: "105s",
    relay: { nodes: 2, session_ttl: "90s" },
    devices: [{ group: "a", count: 9, kind: "echo" }],
    drivers: [{ kind: "garbage", from: "21s", every: "79s" }],
    faults: [drained],
  };
  const programs = loadPrograms(scenario, ".");
  const plays = [2054751809, 1, 2, 3, 4, 5, 6, 7].map((seed) =>
    runVirtual(scenario, { seed, programs }),
  );
  const found = (await Promise.all(plays)).map(({ violation }) => violation?.detail);
  expect(found).toEqual(plays.map(() => undefined));
});
