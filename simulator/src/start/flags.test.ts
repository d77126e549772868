import { describe, expect, test } from "vitest";
import { machine, openFileLimit, openFileWarning } from "../report/machine.ts";
import { loadScenario } from "../scenario/load.ts";
import { asAsked, HELP, parseFlags, type StartFlags, USAGE } from "./flags.ts";

describe("flags", () => {
  test("have the promised defaults and their own seed", () => {
    const defaults = { agents: 1000, callsPerAgent: 5, reportDir: "report", json: false };
    expect(parseFlags([])).toMatchObject(defaults);
  });

  test("are read", () => {
    const args = "--agents 5000 --calls=20 --report /tmp/x --seed 0 --json".split(" ");
    expect(parseFlags(args)).toEqual({
      agents: 5000,
      callsPerAgent: 20,
      reportDir: "/tmp/x",
      seed: 0,
      json: true,
      program: null,
      stubs: null,
      calls: [],
    });
  });

  test("name a program and its calls", () => {
    const result = parseFlags([
      "--program",
      import.meta.filename,
      "--call",
      'valve.open:{"percent":40}',
      "--call=valve.state",
    ]);
    expect(result).toMatchObject({
      program: import.meta.filename,
      calls: [{ method: "valve.open", params: { percent: 40 } }, { method: "valve.state" }],
    });
  });

  test.each([
    ["--call", "pump.state"],
    ["--program", import.meta.filename],
    ["--program", import.meta.filename, "--call", "pump.set:{percent"],
    ["--program", import.meta.filename, "--call", "pump.set:5"],
    ["--agents", "0"],
    ["--agents", "1.5"],
    ["--agents", "1e3"],
    ["--agents", "-1"],
    ["--agents", "19001"],
    ["--agents"],
    ["--calls", "0"],
    ["--calls", "many"],
    ["--seed", "4294967296"],
    ["--report", ""],
    ["--agent", "5"],
    ["extra"],
  ])("%s %s is refused with a reason", (...args) => {
    expect(() => parseFlags(args)).toThrow(/./);
  });

  test("help shows the usage and an example", () => {
    expect(parseFlags(["--help"])).toBeNull();
    expect(HELP).toContain(USAGE);
    expect(HELP).toContain("examples: npm start -- ");
  });
});

describe("the demonstration", () => {
  const asked = async (...args: string[]) => {
    const flags = parseFlags(args) as StartFlags;
    const own = flags.program === null ? null : "./valve.js";
    const { scenario } = await loadScenario("demonstration");
    const { devices, clients = [] } = asAsked(scenario, flags, own);
    const counts = devices.map(({ count }) => count);
    return [counts, clients.map(({ call, calls }) => [call, calls])];
  };

  test("has the asked number of agents, of each kind alike, and of calls", async () => {
    expect(await asked("--agents", "20", "--calls", "3")).toEqual([
      [7, 7, 6],
      [
        [undefined, 3],
        [undefined, 3],
        [undefined, 3],
      ],
    ]);
    expect(await asked("--agents", "1")).toEqual([[1], [[undefined, 5]]]);
  });

  test("shares the calls to an own program among its methods", async () => {
    const own = ["--program", import.meta.filename, "--call", "a", "--call", "b", "--call", "c"];
    const two = [
      ["a", 1],
      ["b", 1],
    ];
    expect(await asked(...own, "--calls", "2", "--agents", "9")).toEqual([[9], two]);
  });

  test("has more clients for a larger fleet", async () => {
    const { scenario } = await loadScenario("demonstration");
    const { clients = [] } = asAsked(
      scenario,
      parseFlags(["--agents", "19000"]) as StartFlags,
      null,
    );
    expect(clients.map(({ count }) => count)).toEqual([38, 38, 38]);
  });
});

test("a limit of open files that is too low is named with its fix", () => {
  expect(openFileWarning(1000, 1024)).toContain("ulimit -n 1256");
  expect(openFileWarning(1000, 1256)).toBeNull();
  expect(openFileWarning(1000, null)).toBeNull();
  expect(openFileLimit() ?? 1).toBeGreaterThan(0);
});

test("the machine is described but not identified", () => {
  const described = machine();
  expect(described.cpus).toBeGreaterThan(0);
  expect(described.node).toBe(process.version);
});
