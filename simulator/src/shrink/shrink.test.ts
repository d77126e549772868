import { expect, it } from "vitest";
import type { Scenario } from "../scenario/schema.ts";
import { startGuard } from "../virtual/guard.ts";
import { type LoadedProgram, parseProgram } from "../virtual/program.ts";
import { loadPrograms } from "../virtual/programs.ts";
import { playWorld } from "../virtual/run.ts";
import { brokenBy } from "./broken.ts";
import { shrink } from "./shrink.ts";

/** Plays a scenario that breaks, and shrinks it. */
async function shrunkFrom(scenario: Scenario, programs: Map<string, LoadedProgram>) {
  const options = { seed: 1, programs, crypto: "model" } as const;
  const guard = await startGuard([]);
  const broken = brokenBy(await playWorld(scenario, options, guard));
  guard.stop();
  if (broken === null) throw new Error("nothing broke");
  return shrink(scenario, broken, { ...options, budgetMs: 60_000 });
}

it("drops the promises of groups that are gone, and those that nobody needs", async () => {
  const scenario: Scenario = {
    name: "two groups",
    duration: "1m",
    devices: [
      { group: "pumps", count: 3, kind: "echo" },
      { group: "lamps", count: 3, kind: "echo" },
    ],
    // Echo exposes nothing, so that the first check of either breaks.
    invariants: [
      { devices: "pumps", always: "pressure > 0" },
      { devices: "lamps", always: "state == 1" },
      { devices: "lamps", always: "other == 1" },
    ],
  };
  const shrunk = await shrunkFrom(scenario, loadPrograms(scenario, "."));
  expect(shrunk?.scenario.devices).toMatchObject([{ count: 1 }]);
  expect(shrunk?.scenario.invariants).toHaveLength(1);
  const [device] = shrunk?.scenario.devices ?? [];
  expect(shrunk?.scenario.invariants?.[0]?.devices).toBe(device?.group);
});

const SEE = { call: "see" };

it("shows no failure that the scenario allows", async () => {
  const program = parseProgram(
    `export default (agent) => {
      if (agent.storage.get("seen") !== null) throw new Error("no second start");
      agent.handle("see", () => agent.storage.set("seen", "yes") ?? null);
    };`,
    "once.js",
  );
  const scenario: Scenario = {
    name: "allowed",
    duration: "4m",
    devices: [{ group: "g", count: 1, program: "./once.js" }],
    // No answer comes within 5 ms.
    clients: [
      { devices: "g", every: "5s", until: "40s", steps: [SEE, { ...SEE, timeout: "5ms" }] },
    ],
    faults: [{ at: "50s", kind: "device.reboot" }],
    allow: [{ code: "TIMED_OUT" }],
  };
  const shrunk = await shrunkFrom(scenario, new Map([["./once.js", program]]));
  expect(shrunk?.detail).toContain("no second start");
});

it("goes on with the error that broke the run, of several that a program throws", async () => {
  const program = parseProgram(
    `export default (agent) => {
      for (const name of ["one", "two"]) {
        agent.handle(name, () => {
          setTimeout(() => {
            throw new Error(name);
          });
          return 1;
        });
      }
    };`,
    "throws.js",
  );
  const scenario: Scenario = {
    name: "several",
    duration: "1m",
    devices: [{ group: "g", count: 2, program: "./throws.js" }],
    clients: [
      { devices: "g", call: "one", every: "7s", from: "7s" },
      { devices: "g", call: "two", every: "7s", from: "7100ms" },
    ],
  };
  const shrunk = await shrunkFrom(scenario, new Map([["./throws.js", program]]));
  expect(shrunk?.detail).toMatch(/: a timer of the program failed: Error: one /);
  expect(shrunk?.scenario.clients).toMatchObject([{ call: "one" }]);
});
