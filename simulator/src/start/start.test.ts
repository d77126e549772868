/**
 * The whole path with real processes and sockets and a small fleet: success, and each kind of
 * failure. Every test has its own folder for temporary files, so that left-over files are found.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { Report } from "../report/report.ts";

const MAIN = fileURLToPath(new URL("./main.ts", import.meta.url));

let folder = "";

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "blindrelay-test-"));
});

afterEach(() => rm(folder, { recursive: true, force: true }));

/** Runs the program; `onLine` gets each line of its standard error. */
async function start(
  args: string[],
  onLine: (line: string, child: ChildProcess) => void = () => {},
) {
  const child = spawn(process.execPath, [MAIN, ...args, "--report", join(folder, "report")], {
    // Node's cache of compiled code does not belong to a run, so it is kept elsewhere.
    env: {
      NODE_COMPILE_CACHE: join(tmpdir(), "node-compile-cache"),
      ...process.env,
      TMPDIR: folder,
    },
    stdio: ["ignore", "pipe", "pipe"],
  });
  let out = "";
  const said: string[] = [];
  child.stdout.setEncoding("utf8").on("data", (text) => {
    out += text;
  });
  createInterface({ input: child.stderr }).on("line", (line) => {
    said.push(line);
    onLine(line, child);
  });
  const code = await new Promise<number | null>((resolve) => child.once("close", resolve));
  return { code, out, said };
}

async function readReport(): Promise<Report> {
  return JSON.parse(await readFile(join(folder, "report", "report.json"), "utf8"));
}

/** The processes that a run reports to have started. */
function pids(said: string[]): number[] {
  return said.flatMap((line) => {
    const pid = / process ([0-9]+)$/.exec(line)?.[1];
    return pid === undefined ? [] : [Number(pid)];
  });
}

function isGone(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return false;
  } catch {
    return true;
  }
}

describe("npm start", () => {
  test("connects and calls all agents, reports, and leaves nothing behind", async () => {
    const { code, out, said } = await start(["--agents", "20", "--calls", "3", "--seed", "7"]);
    expect({ code, said, out }).toMatchObject({ code: 0 });
    const report = await readReport();
    expect(report).toMatchObject({
      ok: true,
      stopped: null,
      seed: 7,
      agents: { requested: 20, connected: 20 },
      calls: { planned: 60, sent: 60, ok: 60, failed: 0 },
      failures: [],
    });
    expect(report.thresholds.map(({ expression, ok }) => [expression, ok])).toEqual([
      ["agents.online == 20", true],
    ]);
    expect(report.oracles).toContainEqual(expect.objectContaining({ name: "answers", ok: true }));
    const figures = [
      ...Object.values(report.latency_ms ?? {}),
      report.calls_per_second,
      report.duration_s,
      report.relay.cpu_us_per_message,
    ];
    expect(figures).toHaveLength(7);
    for (const figure of figures) expect(figure).toBeGreaterThan(0);
    // A process may give pages back meanwhile.
    expect(report.relay.rss_bytes_per_agent).toBeGreaterThanOrEqual(0);
    expect(report.simulator.rss_bytes_per_agent).toBeGreaterThanOrEqual(0);
    // Opening, answer, ping, pong; two for each call; notices of disconnecting come at the very
    // end. Openings and pings that are not answered within a second are sent again.
    expect(report.relay.messages).toBeGreaterThanOrEqual(20 * (4 + 3 * 2));
    expect(report.relay.messages).toBeLessThanOrEqual(20 * (3 * 4 + 3 * 2 + 1));
    expect(out).toContain("20 of 20 connected");
    expect(await readFile(join(folder, "report", "report.html"), "utf8")).toContain("All right");
    expect(await readdir(folder)).toEqual(["report"]);
    expect(pids(said)).toHaveLength(2);
    expect(pids(said).every(isGone)).toBe(true);
  });

  test("runs a custom device program", async () => {
    const file = join(folder, "pump.js");
    await writeFile(
      file,
      `export default (agent) => {
        agent.handle("pump.set", ({ percent }) => ({ percent }));
        agent.handle("pump.fail", () => { throw new Error("no water"); });
      };`,
    );
    const own = ["--program", file, "--agents", "3", "--calls", "4"];
    const good = await start([...own, "--call", 'pump.set:{"percent":40}']);
    expect({ code: good.code, said: good.said }).toMatchObject({ code: 0 });
    expect(await readReport()).toMatchObject({
      calls: { planned: 12, ok: 12 },
      kinds: [{ kind: "agent", agents: 3 }],
    });
    const bad = await start([...own, "--call", "pump.fail"]);
    expect(bad.code).toBe(1);
    const report = await readReport();
    expect(report.calls).toMatchObject({ ok: 0, failed: 12 });
    expect(report.failures[0]).toMatchObject({ code: "REMOTE -32000", count: 12 });
    expect(report.failures[0]?.example).toContain("no water");
  });

  test("reports a program's mistakes before anything is started, and warns about what boards do not run", async () => {
    const file = join(folder, "pump.js");
    const own = ["--program", file, "--agents", "1", "--calls", "1", "--call", "pump.state"];
    await writeFile(file, "export default (agent) => {\n  agent.handle(\n};\n");
    const broken = await start(own);
    expect([broken.code, broken.said]).toEqual([2, [`${file}:3:1: Unexpected token`]]);
    await writeFile(file, "export const program = () => {};\n");
    const nothing = await start(own);
    expect([nothing.code, nothing.said]).toEqual([
      2,
      [`${file}:1:1: a device program exports a function: export default (agent) => { … }`],
    ]);
    await writeFile(
      file,
      'export default (agent) => agent.handle("pump.state", (p) => p?.x ?? {});',
    );
    const modern = await start(own);
    expect(modern.code).toBe(0);
    expect(modern.said[0]).toBe(
      `warn: boards do not run ${file} as written: 1 place; see blindrelay check ${file}`,
    );
  });

  test("writes only the report to standard output with --json", async () => {
    const { code, out } = await start(["--agents", "1", "--calls", "1", "--json"]);
    expect(code).toBe(0);
    expect(JSON.parse(out)).toEqual(await readReport());
  });

  test.each(["relay at", "agents in"])(
    "fails when the process in the line '%s' is killed",
    async (line) => {
      const { code, out, said } = await start(["--agents", "20", "--calls", "1000"], (text) => {
        const [pid] = text.startsWith(line) ? pids([text]) : [];
        if (pid !== undefined) process.kill(pid, "SIGKILL");
      });
      expect(code).toBe(1);
      const report = await readReport();
      expect(report.ok).toBe(false);
      expect(report.stopped).toMatch(/ended \(SIGKILL\)$/);
      // The line may be read late.
      expect(report.calls.failed).toBe(20_000 - report.calls.ok);
      const counted = report.failures.filter(({ code }) => !code.startsWith("agent "));
      expect(counted.reduce((sum, { count }) => sum + count, 0)).toBe(report.calls.failed);
      expect(counted.map(({ code }) => code)).toContain("NOT_MADE");
      expect(out).toContain("FAILED: the ");
      expect(await readdir(folder)).toEqual(["report"]);
      expect(pids(said).every(isGone)).toBe(true);
    },
  );

  test.each([
    ["once", [0]],
    ["twice at once, as by Ctrl-C through npm", [0, 100]],
  ])("stops everything when it is interrupted %s, and writes no report", async (_how, delaysMs) => {
    const { code, said } = await start(["--agents", "50", "--calls", "1000"], (line, child) => {
      if (!line.startsWith("agents in")) return;
      for (const ms of delaysMs) setTimeout(() => child.kill("SIGINT"), ms);
    });
    expect(code).toBe(130);
    expect(said.at(-1)).toBe("blindrelay-sim: interrupted");
    expect(await readdir(folder)).toEqual([]);
    expect(pids(said).every(isGone)).toBe(true);
  });

  test("refuses an unwritable report folder before it starts anything", async () => {
    await writeFile(join(folder, "report"), "");
    const { code, out, said } = await start(["--agents", "5"]);
    expect([code, out]).toEqual([2, ""]);
    expect(said).toEqual([expect.stringMatching(/^blindrelay-sim: --report .*EEXIST/)]);
  });

  test("refuses an unknown flag and prints its usage", async () => {
    const { code, out, said } = await start(["--agent", "5"]);
    expect([code, out]).toEqual([2, ""]);
    expect(said.join("\n")).toMatch(/^usage: npm start/m);
  });
});
