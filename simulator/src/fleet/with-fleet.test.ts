/** A fleet without vitest's fixtures, over many seeds, with clients that interleave. */
import { join } from "node:path";
import { expect, it } from "vitest";
import { fleetTest } from "../vitest/index.ts";
import { type VirtualFleet, withFleet } from "./index.ts";

const folder = join(import.meta.dirname, "..", "testing");
const devices = [{ group: "keepers", count: 1, program: "./keeper.js" }];

it("plays a test with each seed, and names the one that fails", async () => {
  const seen: number[] = [];
  const playing = withFleet({ devices, folder, seeds: "3..6" }, async ({ seed }) => {
    seen.push(seed);
    if (seed === 5) throw new Error("planted");
  });
  await expect(playing).rejects.toThrow("seed 5: planted");
  expect(seen).toEqual([3, 4, 5]);
});

it("leaves nothing behind of a test that fails", async () => {
  let left: VirtualFleet | undefined;
  const playing = withFleet({ devices, folder }, async (fleet) => {
    left = fleet;
    const waits = fleet.clock.advance("1d");
    waits.catch((error: Error) => {
      waited = error.message;
    });
    throw new Error("planted");
  });
  let waited = "";
  await expect(playing).rejects.toThrow("planted");
  await Promise.resolve();
  expect(waited).toBe("the test is over");
  await expect(left?.clock.advance(1)).rejects.toThrow("the test is over");
});

it("has several clients, whose calls interleave", () =>
  withFleet({ devices, folder, clients: 2 }, async ({ clients: [one, two], devices: [keeper] }) => {
    const asked = [one, two].map((client) =>
      client?.call<{ count: number }>(keeper as never, "add"),
    );
    const counts = (await Promise.all(asked)).map((answer) => answer?.count);
    expect(counts.sort()).toEqual([1, 2]);
  }));

it("calls its devices by loads meanwhile, and fails with the first call that does", async () => {
  const load = { devices: "keepers", every: "10s" };
  const steps = [
    { call: "add", as: "before" },
    { call: "count", check: "answer.count >= before.count" },
  ];
  const play = (last: object) =>
    withFleet(
      {
        devices,
        folder,
        loads: [
          { ...load, steps: [...steps, last] },
          { devices: "keepers", call: "count", rate: "1/s" },
        ],
        seed: last === FAILING ? 9 : 8,
      },
      async ({ client, clock, devices: [keeper] }) => {
        await clock.advance("1m");
        const { count } = await client.call<{ count: number }>(keeper as never, "count");
        expect(count).toBeGreaterThan(3);
      },
    );
  await play({ call: "count" });
  await expect(play(FAILING)).rejects.toThrow(
    'a call of the fleet\'s loads: count of clients-2/1 at keepers-00001: it answered {"count":1}',
  );
});
const FAILING = { call: "count", expect: { count: -1 } };

fleetTest.extend({
  fleet: { devices: [{ group: "keepers", count: 1, program: "../testing/keeper.js" }] },
})("is a fixture of vitest's tests", async ({ overSeeds }) => {
  const seen: number[] = [];
  await overSeeds("1..2", async ({ seed, client, devices: [keeper] }) => {
    seen.push(seed);
    expect(await client.call(keeper as never, "add")).toEqual({ count: 1 });
  });
  expect(seen).toEqual([1, 2]);
});

it("fails by what a program throws and does not catch, unless that is allowed", async () => {
  const fleet = { devices: [{ group: "boxes", count: 1, program: "./dry.js" }], folder };
  const wait = ({ clock }: VirtualFleet) => clock.advance("10s");
  await expect(withFleet(fleet, wait)).rejects.toThrow(
    /^the oracle "uncaught": boxes-00001: a timer of the program failed: Error: dry \(dry.js:/,
  );
  await withFleet({ ...fleet, allow: [{ code: "PROGRAM" }] }, wait);
});
