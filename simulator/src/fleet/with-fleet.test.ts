/** A fleet without vitest's fixtures, over many seeds, with clients that interleave. */
import { join } from "node:path";
import { expect, it } from "vitest";
import { fleetTest } from "../vitest/index.ts";
import { withFleet } from "./index.ts";

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

it("has several clients, whose calls interleave", () =>
  withFleet({ devices, folder, clients: 2 }, async ({ clients: [one, two], devices: [keeper] }) => {
    const asked = [one, two].map((client) =>
      client?.call<{ count: number }>(keeper as never, "add"),
    );
    const counts = (await Promise.all(asked)).map((answer) => answer?.count);
    expect(counts.sort()).toEqual([1, 2]);
  }));

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
