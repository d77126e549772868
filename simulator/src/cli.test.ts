import { spawnSync } from "node:child_process";
import { mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { exitCodeOf, runCli } from "./cli.ts";
import type { Report } from "./report/report.ts";

/** The example of docs/commands.md, with fewer devices and a shorter time. */
const EXAMPLE = `name: two rooms on a bad afternoon
seed: 7
duration: 5m                     # ms, s, m, h, d
world: virtual
devices:
  - { group: pumps, count: 50, program: ./pump.js, start: { over: 30s } }
  - { group: lamps, count: 10, kind: echo }      # sensor, valve, echo: the bundled programs
clients:
  - { count: 2, devices: pumps, call: pump.state, every: 60s }        # each device, closed loop
  - { count: 1, devices: lamps, call: echo, params: { n: 1 }, rate: 2/s }   # open loop
faults:
  - { at: 1m, kind: relay.restart }
  - { at: 2m, kind: net.cut, devices: pumps, share: 10%, for: 30s }
  - { at: 150s, kind: device.reboot, devices: lamps, share: 5% }
thresholds:
  - p(99, call.latency_ms) < 6000
  - rate(call.failed) < 0.05
  - agents.online == 60
allow:
  - { rate: 5% }
`;

const PUMP = `export default (agent) => {
  let reads = 0;
  agent.handle("pump.state", () => ({ reads: ++reads, at: Date.now(), luck: Math.random() }));
};
`;

let folder = "";

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "blindrelay-test-"));
  await writeFile(join(folder, "rooms.yaml"), EXAMPLE);
  await writeFile(join(folder, "pump.js"), PUMP);
  const fails = "duration: 5s, thresholds: [agents.online == 9]";
  const devices = "devices: [{ group: a, count: 1, kind: echo }]";
  await writeFile(join(folder, "fails.yaml"), `{ name: x, ${fails}, ${devices} }`);
});

afterAll(() => rm(folder, { recursive: true, force: true }));

interface Ended {
  code: number | null;
  out: string;
  err: string;
}

/** The command in this process: starting one takes half of the time of most of these tests. */
async function sim(...args: string[]): Promise<Ended> {
  const ended: Ended = { code: null, out: "", err: "" };
  const out = vi.spyOn(process.stdout, "write").mockImplementation((text) => {
    ended.out += text;
    return true;
  });
  const err = vi.spyOn(process.stderr, "write").mockImplementation((text) => {
    ended.err += text;
    return true;
  });
  const before = process.cwd();
  process.chdir(folder);
  try {
    ended.code = await runCli(["node", "blindrelay-sim", ...args]).catch(exitCodeOf);
  } finally {
    process.chdir(before);
    out.mockRestore();
    err.mockRestore();
  }
  return ended;
}

test("a command exits with its own code if its reader left, and with 70 if its answer cannot be written", async () => {
  const main = `'${process.execPath}' '${join(import.meta.dirname, "main.ts")}'`;
  const shell = (line: string) =>
    spawnSync("bash", ["-c", line], { encoding: "utf8", cwd: folder });
  const piped = (args: string) => shell(`${main} ${args} | true; echo "\${PIPESTATUS[0]}"`).stdout;
  expect(piped("list")).toBe("0\n");
  expect(piped("run fails.yaml --seeds 1..2")).toBe("1\n");
  expect(piped("run missing.yaml 2>&1")).toBe("2\n");
  const { status, stderr } = shell(`${main} list > /dev/full`);
  expect([status, stderr]).toEqual([70, expect.stringContaining("ENOSPC")]);
});

test("the help loads neither a relay nor a world", () => {
  // Modules, because times vary. The whole simulator is more than 800.
  const count = `
    import { registerHooks } from "node:module";
    let modules = 0;
    registerHooks({
      load(url, context, next) {
        if (!url.startsWith("node:")) modules += 1;
        return next(url, context);
      },
    });
    process.on("exit", () => process.stderr.write("modules: " + modules));
  `;
  const hooks = `data:text/javascript,${encodeURIComponent(count)}`;
  const main = join(import.meta.dirname, "main.ts");
  const args = ["--import", hooks, main, "--help"];
  const { stdout, stderr } = spawnSync(process.execPath, args, { encoding: "utf8" });
  expect(stdout).toContain("blindrelay-sim replay report/report.json");
  const modules = Number(/^modules: ([0-9]+)$/m.exec(stderr)?.[1]);
  expect(modules).toBeGreaterThan(2);
  expect(modules).toBeLessThan(40);
});

describe("blindrelay-sim", () => {
  test("runs a scenario, keeps its report, and replays it from the report alone", async () => {
    const ran = await sim(
      "run",
      "rooms.yaml",
      "--report",
      "report",
      "--junit",
      "ci/junit.xml",
      "--json",
    );
    expect([ran.code, ran.err]).toEqual([0, ""]);
    const report = JSON.parse(ran.out) as Report;
    expect(report).toMatchObject({
      ok: true,
      world: "virtual",
      seed: 7,
      agents: { requested: 60, connected: 60 },
      scenario: { name: "two rooms on a bad afternoon" },
      trace: expect.stringMatching(/^[0-9a-f]{16}$/),
      latency_ms: { p50: expect.any(Number), p99: expect.any(Number) },
      faults: [{ kind: "relay.restart", at_s: 60 }, {}, {}],
    });
    expect(report.calls.sent).toBe(report.calls.ok + report.calls.failed);
    expect(report.thresholds.map(({ ok }) => ok)).toEqual([true, true, true]);
    expect(report.oracles.map(({ ok }) => ok)).not.toContain(false);
    expect(JSON.parse(await readFile(join(folder, "report/report.json"), "utf8"))).toEqual(report);
    const page = await readFile(join(folder, "report/report.html"), "utf8");
    expect(page.includes("two rooms on a bad afternoon")).toBe(true);
    const junit = await readFile(join(folder, "ci/junit.xml"), "utf8");
    expect(junit).toContain('tests="19" failures="0"');

    // In a different folder, without the scenario and the program.
    await mkdir(join(folder, "elsewhere"), { recursive: true });
    await writeFile(join(folder, "elsewhere/report.json"), JSON.stringify(report));
    const again = await sim("replay", "elsewhere/report.json");
    expect([again.code, again.out]).toEqual([0, `trace ${report.trace}, the same; all right\n`]);

    const other = { ...report, trace: "0123456789abcdef" };
    await writeFile(join(folder, "elsewhere/report.json"), JSON.stringify(other));
    expect((await sim("replay", "elsewhere/report.json")).code).toBe(1);
  });

  test.each(["3", "30"])("runs a scenario of the library with %s agents", async (agents) => {
    const args = ["--agents", agents, "--crypto", "model", "--no-shrink", "--json"];
    const { code, out } = await sim("run", "steady-fleet", ...args);
    expect([code, JSON.parse(out).agents.connected]).toEqual([0, Number(agents)]);
  });

  test("runs a device program without a scenario", async () => {
    const ran = await sim(
      "run",
      "--program",
      "./pump.js",
      "--agents",
      "5",
      "--call",
      "pump.state",
      "--json",
    );
    expect(ran.code).toBe(0);
    const report = JSON.parse(ran.out) as Report;
    expect(report).toMatchObject({ world: "virtual", agents: { requested: 5, connected: 5 } });
    expect(report.calls.ok).toBeGreaterThan(20);
  });

  test("reports where a program fails, and replays that from a different folder", async () => {
    const rejects = "agent.handle('x', () => 1); Promise.reject(new Error('adrift'));";
    for (const [body, said] of [
      ["throw new Error('no water');", "the program failed: Error: no water (dry.js:2:9)"],
      [rejects, "the program left a promise rejected: Error: adrift (dry.js:2:46)"],
    ] as const) {
      await mkdir(join(folder, "programs"), { recursive: true });
      await writeFile(
        join(folder, "programs/dry.js"),
        `export default (agent) => {\n  ${body}\n};\n`,
      );
      const program = ["--program", "programs/dry.js", "--agents", "2", "--call", "x"];
      const ran = await sim("run", ...program, "--no-shrink", "--report", "dry");
      expect(ran.out).toContain(said);
      expect((await sim("replay", "dry")).code).toBe(0);
    }
  });

  test("fails if a threshold is broken, or a method does not exist", async () => {
    const wrong = ["--program", "./pump.js", "--agents", "2", "--call", "pump.stat"];
    const none = await sim("run", ...wrong, "--no-shrink", "--report", "wrong");
    expect([none.code, none.out]).toEqual([1, expect.stringMatching(/unknown method "pump.stat"/)]);
    expect(none.out).toMatch(/BROKEN {2}answers: of 10 calls, more failed .*: REMOTE -32601 10 /);
    expect((await sim("replay", "wrong")).out).toMatch(/the same; broken: answers$/m);
  });

  test.each([
    ["true", 1],
    ["", 0],
  ])("with GITHUB_ACTIONS=%j, writes %i annotation of what is broken", async (value, count) => {
    vi.stubEnv("GITHUB_ACTIONS", value);
    const { code, out, err } = await sim("run", "fails.yaml", "--no-shrink", "--json");
    vi.unstubAllEnvs();
    const annotations = err.match(/^::error title=x%2C seed 1::agents.online == 9 came to 1$/gm);
    expect([code, annotations?.length ?? 0]).toEqual([1, count]);
    expect(out).not.toContain("::error");
  });

  test("accepts a different seed, or several", async () => {
    const few = ["run", "rooms.yaml", "--agents", "4", "--json", "--no-shrink"];
    const several = await sim(...few, "--seeds", "1..2");
    const traces = several.out
      .trim()
      .split("\n")
      .map((line) => (JSON.parse(line) as Report).trace);
    expect(new Set(traces).size).toBe(2);
    const second = await sim(...few, "--seed", "2");
    expect((JSON.parse(second.out) as Report).trace).toBe(traces[1]);
  });

  test("shares seeds among processes and machines, and merges their reports into one", async () => {
    const clients = "clients: [{ devices: a, every: 5s }]";
    const devices = "devices: [{ group: a, count: 3, kind: echo }]";
    await writeFile(
      join(folder, "few.yaml"),
      `{ name: few, duration: 30s, ${devices}, ${clients} }`,
    );
    const few = ["run", "few.yaml", "--seeds", "1..3"];
    const traces = ({ out }: Ended): string[] =>
      out
        .trim()
        .split("\n")
        .map((line) => (JSON.parse(line) as Report).trace);
    const alone = await sim(...few, "--jobs", "1", "--json");
    expect(traces(await sim(...few, "--jobs", "3", "--json"))).toEqual(traces(alone));
    await sim(...few, "--jobs", "1", "--shard", "1/2", "--report", "shard-1");
    await sim(...few, "--jobs", "1", "--shard", "2/2", "--report", "shard-2");
    const one = ["--report", "whole", "--junit", "whole/junit.xml", "--json"];
    const merged = await sim("merge", "shard-2", "shard-1", ...one);
    expect([merged.code, traces(merged)]).toEqual([0, traces(alone)]);
    expect(await readFile(join(folder, "whole/junit.xml"), "utf8")).toContain("seed 3");
    const page = await readFile(join(folder, "whole/seed-2/report.html"), "utf8");
    expect(page).toContain("All right");
    const part = await sim("merge", "shard-1", "--junit", "part.xml");
    expect([part.code, part.err]).toEqual([
      1,
      expect.stringContaining("no report of seed 2: a sh"),
    ]);
    expect(await readFile(join(folder, "part.xml"), "utf8")).toContain('failures="1"');
    expect((await sim("merge", "shard-1", "shard-1")).err).toContain("seed 1 is in several");
    const own = JSON.parse(await readFile(join(folder, "shard-2/seed-2/report.json"), "utf8"));
    await mkdir(join(folder, "forged"), { recursive: true });
    for (const [forged, why] of [
      [{ seeds: [0, 4e9] }, "its seeds are not those of a run"],
      [{ seeds: [2, 1] }, "its seeds are not those of a run"],
      [{ seed: "/../../elsewhere" }, "its seeds are not those of a run"],
      [{ oracles: undefined }, "it is not a report of blindrelay-sim run"],
      [{ agents: null }, "it is not a report of blindrelay-sim run"],
    ] as const) {
      await writeFile(join(folder, "forged/report.json"), JSON.stringify({ ...own, ...forged }));
      const { code, err } = await sim("merge", "forged", "--report", "merged/forged");
      expect([code, err]).toEqual([2, expect.stringContaining(why)]);
    }
    expect((await sim(...few, "--shard", "4/5")).err).toContain("there are only 3 seeds");
  });

  test("live, shares the agents among processes, and compares what all of them executed", async () => {
    const groups = ["a", "b"].map((group) => ({ group, count: 10, kind: "echo" }));
    const clients = groups.map(({ group }) => ({ devices: group, calls: 3 }));
    const live = { name: "live", duration: "60s", world: "live", devices: groups, clients };
    await writeFile(join(folder, "live.yaml"), JSON.stringify(live));
    const ran = await sim("run", "live.yaml", "--jobs", "2", "--json");
    expect([ran.code, ran.err]).toEqual([
      0,
      expect.stringMatching(/^agents in processes \d+, \d+$/m),
    ]);
    const report = JSON.parse(ran.out) as Report;
    expect(report).toMatchObject({ agents: { connected: 20 }, calls: { planned: 60, ok: 60 } });
    expect(report.oracles.map(({ name }) => name)).toContain("exactly-once");
  });

  test.each([
    [["run"], "give a scenario"],
    [["run", "nothing-of-that-name"], 'the library has no scenario "nothing-of-that-name"'],
    [["run", "missing.yaml"], "missing.yaml:1:1: file not found"],
    [["run", "bad.yaml"], "bad.yaml:2:11: duration must be a duration"],
    [["run", "--program", "reaches.js", "--call", "x"], "reaches.js:2:9: process reaches"],
    [["run", "--program", "nofile"], "--program nofile: file not found"],
    [["run", "--program", "broken.js", "--call", "x"], "broken.js:3:1: Unexpected token"],
    [
      ["run", "--program", "broken.js", "--call", "x", "--world", "live"],
      "broken.js:3:1: Unexpected token",
    ],
    [["run", "--program", "pump.js", "--world", "live"], "needs a call to make"],
    [["run", "away.yaml", "--world", "live"], "away.yaml:4:26: store.away needs world: virtual"],
    [
      ["run", "rooms.yaml", "--live", "http://127.0.0.1:1"],
      "rooms.yaml:12:21: relay.restart needs a relay of",
    ],
    [
      ["run", "--program", "pump.js", "--call", "pump.set:{x"],
      "--call pump.set: invalid JSON (line 1, column 2)",
    ],
    [["run", "rooms.yaml", "--call", "pump.state"], "--call needs --program"],
    [["run", "rooms.yaml", "--seeds", "8..1"], "--seeds"],
    [["run", "rooms.yaml", "--world", "moon"], "Allowed choices are virtual, live."],
    [["run", "rooms.yaml", "--wrold", "live"], "unknown option"],
    [["run", "rooms.yaml", "--live", "relay.example"], "an address such as https://"],
    [["run", "rooms.yaml", "--live", "http://[::1]:1", "--world", "virtual"], "either --live or"],
    [["run", "rooms.yaml", "--metrics-port", "0"], "--metrics-port needs the live world"],
    [["run", "rooms.yaml", "--metrics-port", "65536"], "a whole number from 0 to 65535"],
    [["replay", "pump.js"], "report.json"],
    [["validate", "bad.yaml"], "bad.yaml:2:11: "],
    [["validate", "sockets.yaml"], "broken.js:3:1: Unexpected token"],
    [
      ["search", "rare.yaml", "--for", "1s"],
      "rare.yaml:1:1: no case of a few minutes can be drawn",
    ],
    [["search", "--for", "1s", "--corpus", "pump.js"], "--corpus pump.js: EEXIST"],
  ])("refuses %j with exit code 2 and the reason", async (args, reason) => {
    await writeFile(
      join(folder, "bad.yaml"),
      "name: x\nduration: 5\ndevices: [{ group: a, count: 1, kind: echo }]\n",
    );
    await writeFile(
      join(folder, "away.yaml"),
      "name: x\nduration: 5m\ndevices: [{ group: a, count: 1, kind: echo }]\nfaults: [{ at: 1m, kind: store.away, for: 1m }]\n",
    );
    await writeFile(
      join(folder, "rare.yaml"),
      "name: x\nduration: 5h\ndevices: [{ group: a, count: 1, kind: echo }]\nclients: [{ devices: a, rate: 1/h }]\n",
    );
    await writeFile(
      join(folder, "sockets.yaml"),
      "name: x\nduration: 5m\nworld: live\ndevices: [{ group: a, count: 1, program: ./broken.js }]\n",
    );
    await writeFile(
      join(folder, "broken.js"),
      "export default (agent) => {\n  agent.handle(\n};\n",
    );
    await writeFile(
      join(folder, "reaches.js"),
      "export default (agent) => {\n  x = () => process.exit();\n};".replace(
        "  x = () => ",
        "        ",
      ),
    );
    const { code, out, err } = await sim(...args);
    expect([code, out, err]).toEqual([2, "", expect.stringContaining(reason)]);
  });

  test("prints the plan, the schema, the library and help with examples", async () => {
    const plan = await sim("validate", "rooms.yaml", "--plan");
    expect([plan.code, plan.out]).toEqual([
      0,
      expect.stringMatching(/2m {2}net.cut: 5 devices \(pumps-.*\), until 2m 30s/),
    ]);
    const schema = JSON.parse((await sim("schema")).out);
    expect(schema).toMatchObject({ type: "object", required: ["name", "duration", "devices"] });
    const list = JSON.parse((await sim("list", "--json")).out) as { name: string }[];
    expect(list).toHaveLength(18);
    for (const command of [[], ["run"], ["replay"], ["validate"], ["schema"], ["list"]]) {
      const help = await sim(...command, "--help");
      expect([help.code, help.out]).toEqual([0, expect.stringContaining("Example")]);
    }
  });
});

test("a TypeScript scenario in a folder that npm made CommonJS is told the fix", async () => {
  await mkdir(join(folder, "commonjs"));
  await writeFile(join(folder, "commonjs/package.json"), '{"type": "commonjs"}');
  const path = join(folder, "commonjs/scenario.ts");
  await writeFile(path, 'import { join } from "node:path";\nexport default { name: join("a") };\n');
  const program = join(import.meta.dirname, "main.ts");
  const { status, stderr } = spawnSync(process.execPath, [program, "validate", path], {
    encoding: "utf8",
  });
  expect([status, stderr]).toEqual([
    2,
    expect.stringContaining('Name the file .mts or .mjs, or write "type": "module" there'),
  ]);
});

test.skipIf(spawnSync("unshare", ["-m", "true"]).status !== 0)(
  "a report that is mounted by itself, as in a container, is written (needs root and unshare)",
  async () => {
    const file = join(folder, "mounted.xml");
    await writeFile(file, "earlier");
    const main = join(import.meta.dirname, "main.ts");
    const run = ["run", "fails.yaml", "--junit", file];
    const mount = 'mount --bind "$0" "$0" && exec "$@"';
    const words = ["-m", "sh", "-c", mount, file, process.execPath, main, ...run];
    const { status, stderr } = spawnSync("unshare", words, { cwd: folder, encoding: "utf8" });
    expect([status, stderr]).toEqual([1, expect.not.stringContaining("could not be written")]);
    expect(await readFile(file, "utf8")).toContain("<testsuites");
  },
);

test.skipIf(spawnSync("unshare", ["-m", "true"]).status !== 0)(
  "a search whose corpus does not fit the disk ends, and says so (needs root and unshare)",
  async () => {
    const disk = join(folder, "disk");
    await mkdir(disk);
    const main = join(import.meta.dirname, "main.ts");
    const search = ["search", "--for", "1m", "--jobs", "1", "--corpus", disk];
    const fill = 'mount -t tmpfs -o size=4k none "$0" && head -c 4096 /dev/zero > "$0/full"';
    const words = ["-m", "sh", "-c", `${fill} && exec "$@"`, disk, process.execPath, main];
    const { status, stderr } = spawnSync("unshare", [...words, ...search], {
      cwd: folder,
      encoding: "utf8",
    });
    expect([status, stderr]).toEqual([70, expect.stringMatching(/^blindrelay-sim: .*ENOSPC/m)]);
    expect(stderr).toContain("could not be written");
  },
);
