import { describe, expect, test } from "vitest";
import { machine, openFileLimit, openFileWarning } from "../report/machine.ts";
import { HELP, parseFlags, USAGE } from "./flags.ts";

describe("flags", () => {
  test("have the promised defaults and their own seed", () => {
    const result = parseFlags([]);
    expect(result).toMatchObject({
      kind: "flags",
      flags: { agents: 1000, callsPerAgent: 5, reportDir: "report", json: false },
    });
  });

  test("are read", () => {
    const args = "--agents 5000 --calls=20 --report /tmp/x --seed 0 --json".split(" ");
    expect(parseFlags(args)).toEqual({
      kind: "flags",
      flags: {
        agents: 5000,
        callsPerAgent: 20,
        reportDir: "/tmp/x",
        seed: 0,
        json: true,
        program: null,
        calls: [],
      },
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
      kind: "flags",
      flags: {
        program: import.meta.filename,
        calls: [{ method: "valve.open", params: { percent: 40 } }, { method: "valve.state" }],
      },
    });
  });

  test.each([
    ["--call", "pump.state"],
    ["--program", import.meta.filename],
    ["--program", "/nowhere.js", "--call", "pump.state"],
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
    const result = parseFlags(args);
    expect(result.kind).toBe("wrong");
    expect(result.kind === "wrong" && result.reason).toBeTruthy();
  });

  test("help shows the usage and an example", () => {
    expect(parseFlags(["--help"])).toEqual({ kind: "help" });
    expect(HELP).toContain(USAGE);
    expect(HELP).toContain("examples: npm start -- ");
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
