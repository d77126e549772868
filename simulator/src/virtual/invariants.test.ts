/** What programs promise about what they expose, checked after each event. */
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { VirtualFleet } from "../fleet/fleet.ts";
import { checkScenario } from "../scenario/load.ts";
import type { Scenario } from "../scenario/schema.ts";
import { loadPrograms } from "./programs.ts";
import { runVirtual } from "./run.ts";

const FOLDER = join(import.meta.dirname, "..", "testing");
const PROMISE = "state.open + state.closed == 1";

const runWith = async (
  percent: number,
  always: Scenario["invariants"],
  method = "door.set",
  program = "./door.js",
) => {
  const { scenario } = checkScenario(
    {
      name: "doors",
      duration: "40s",
      devices: [{ group: "doors", count: 2, program }],
      clients: [{ devices: "doors", call: method, params: { percent }, every: "20s", from: "5s" }],
      invariants: always,
    },
    FOLDER,
  );
  const programs = loadPrograms(scenario, FOLDER);
  return (await runVirtual(scenario, { seed: 1, programs })).report;
};

describe("an invariant", () => {
  it("that holds is one of the report's oracles", async () => {
    const report = await runWith(40, [{ devices: "doors", always: PROMISE }]);
    expect(report.ok).toBe(true);
    expect(report.oracles).toContainEqual(
      expect.objectContaining({ name: "invariants", ok: true }),
    );
  });

  it("that is broken names device, promise, values, event and time", async () => {
    const report = await runWith(100, [{ devices: "doors", always: PROMISE }]);
    expect(report.ok).toBe(false);
    expect(report.stopped).toMatch(
      /"invariants": doors-0000\d: "state.open \+ state.closed == 1" does not hold: state = \{"open":0,"closed":0\}, after the call door.set \{"percent":100\} at \d+(\.\d+)?s/,
    );
  });

  it("is checked after timers too", async () => {
    const report = await runWith(100, [{ devices: "doors", always: PROMISE }], "door.later");
    expect(report.stopped).toMatch(/after a timer at 16.474s/);
  });

  it("may be a function of all that a device exposes", async () => {
    const always = (
      exposed: { state: { open: number; closed: number } },
      device: { id: string },
    ): boolean => device.id !== "doors-00002" || exposed.state.open + exposed.state.closed === 1;
    const report = await runWith(100, [{ devices: "doors", always }]);
    expect(report.stopped).toMatch(/doors-00002: .* state = \{"open":0,"closed":0\}/);
  });

  it("may take what a device exposes apart", async () => {
    const always = "[state].every(({ open, closed: shut }) => open + shut == 1)";
    expect((await runWith(40, [{ devices: "doors", always }])).ok).toBe(true);
  });

  it.each([
    ["state.n == 1", /"state.n == 1" does not hold: state = something that JSON cannot say/],
    ["!later.broken", /"!later.broken" is about a promise: expose what it came to, after/],
    ["(exposed) => exposed.ask()", /"\(exposed\) => exposed.ask\(\)" is about a promise/],
  ])("that says %s of what JSON or the moment cannot say is broken", async (always, why) => {
    const invariants = [{ devices: "doors", always }];
    const report = await runWith(2, invariants, "odd.set", "./odd.js");
    expect(report.stopped).toMatch(why);
  });

  it("over something that no program exposes is broken", async () => {
    const report = await runWith(40, [{ devices: "doors", always: "stat.open < 2" }]);
    expect(report.stopped).toMatch(/names stat, and the program exposes state/);
  });

  it.each([
    ["state.open = 1", /only compares; "state.open = 1"/],
    ["state.open; 1", /more than one expression/],
    ["state.open +", /not an expression/],
    ["1 < 2", /nothing that a device exposes/],
    ["async (exposed) => exposed.state.open < 0", /at once whether it holds/],
    ["[state].every(async (one) => one.open < 0)", /at once whether it holds/],
    ["function* (exposed) { yield exposed.state.open < 0; }", /at once whether it holds/],
  ])("written as %s is refused", async (always, why) => {
    await expect(runWith(40, [{ devices: "doors", always }])).rejects.toThrow(why);
  });

  it("of an unknown group is refused", async () => {
    const wrong = runWith(40, [{ devices: "door", always: PROMISE }]);
    await expect(wrong).rejects.toThrow(/unknown group \(did you mean "doors"/);
  });

  it("is checked in a test's fleet", async () => {
    const fleet = new VirtualFleet(
      {
        devices: [{ group: "doors", count: 1, program: "./door.js" }],
        invariants: [{ devices: "doors", always: PROMISE }],
      },
      FOLDER,
    );
    await fleet.start();
    const [door] = fleet.devices;
    await fleet.client.call(door as never, "door.set", { percent: 40 });
    await expect(fleet.client.call(door as never, "door.set", { percent: 100 })).rejects.toThrow(
      /"invariants": doors-00001: .*seed 1/,
    );
    expect(() => fleet.stop()).toThrow(/"invariants"/);
  });
});
