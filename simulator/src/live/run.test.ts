/** Scenarios in the live world: real processes and sockets, real time. */
import { mkdtemp, readdir, rm, writeFile } from "node:fs/promises";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { findEspruino, findXs } from "@blindrelay/agent-sdk/engines";
import { makeToken } from "@blindrelay/protocol";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { Progress } from "../report/progress.ts";
import { runScenario } from "../run/run.ts";
import type { DeviceGroupSpec, Fault, Scenario } from "../scenario/schema.ts";
import { startRelay } from "./relay-process.ts";
import { logIn } from "./rest.ts";
import { type LiveOptions, runLive } from "./run.ts";

/** The title names the engine, or says that it is missing. */
const xs = await findXs(import.meta.dirname);
const whyNoXs = xs.kind === "missing" ? ` (skipped: ${xs.reason})` : "";
const espruino = findEspruino("ESPRUINO_BIN");
const whyNoEspruino = espruino === null ? " (skipped: ESPRUINO_BIN names no Espruino)" : "";

let folder = "";
const never = new AbortController().signal;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "blindrelay-test-"));
  vi.stubEnv("TMPDIR", folder); // other tests, and other users, run fleets too
});
afterEach(async () => {
  vi.unstubAllEnvs(); // the next file in this process starts before Vitest does this itself
  await rm(folder, { recursive: true, force: true });
});

const scenario = (duration: string, faults: Fault[] = []): Scenario => ({
  name: "a live test",
  duration,
  world: "live",
  devices: [
    { group: "lamps", count: 3, kind: "echo", packet_version: "3" },
    { group: "valves", count: 3, kind: "valve", packet_version: "4", network: { latency: "5ms" } },
  ],
  clients: [
    // No call outlasts the wait at the end, after which executions are compared.
    { devices: "lamps", call: "echo", params: { n: 1 }, rate: "20/s", from: "0s", timeout: "4s" },
    { devices: "valves", every: "500ms", from: "0s", timeout: "4s" },
  ],
  faults,
  thresholds: ["call.wrong == 0"],
  allow: faults.length === 0 ? [] : [{ rate: "100%" }],
});

/**
 * The same with calls that use an answer before them, by two clients, and streams. On a busy
 * machine a loop that waits for its answers makes fewer of them than are planned.
 */
const withSequences = ({ devices, clients = [], allow = [], ...rest }: Scenario): Scenario => ({
  ...rest,
  allow: [...allow, { code: "NOT_MADE" }],
  devices: [...devices, { group: "busy", count: 1, kind: "busy" }],
  clients: [
    ...clients,
    {
      ...{ name: "chain", devices: "lamps", count: 2, every: "1s", from: "0s", timeout: "4s" },
      steps: [
        { call: "echo", params: { n: 7 }, as: "one" },
        { client: 2, after: "50ms", call: "echo", params: ["$one.n"], check: "answer[0] == one.n" },
        { call: "nothing", fails: "REMOTE -32601" },
      ],
    },
    {
      ...{ name: "streams", devices: "busy", every: "1s", from: "0s", timeout: "4s" },
      steps: [
        { read: "busy.read", params: { size: 50_000 }, expect: { bytes: 50_000 } },
        { write: "busy.write", bytes: "40KB" },
      ],
    },
  ].map((group) => ({ ...group, until: "3s" })) as Scenario["clients"],
});

/** Discards its output. */
const silent = () => new Progress({ write: () => true } as never);
const run = (what: Scenario, more: Partial<LiveOptions> = {}) =>
  runLive(what, folder, { seed: 1, progress: silent(), signal: never, ...more });

const runs = async () => (await readdir(tmpdir())).filter((name) => /^blindrelay-live-/.test(name));

describe("a live scenario", () => {
  test("plays its faults on the sockets, and ends with a report", async () => {
    const before = await runs();
    const report = await run(
      scenario("12s", [
        { at: "1s", kind: "net.cut", devices: "lamps", share: "30%", for: "500ms" },
        { at: "2s", kind: "device.reboot", devices: "valves", share: "30%", for: "500ms" },
        { at: "2s", kind: "device.reboot", devices: "lamps", share: "30%", storage: "lose" },
        { at: "3s", kind: "operator.rotate", devices: "valves", share: "30%", for: "500ms" },
        { at: "4s", kind: "relay.crash", for: "500ms" },
      ]),
    );
    expect(report).toMatchObject({ ok: true, stopped: null, world: "live" });
    expect(report.agents.requested).toBe(6);
    expect(report.oracles.filter(({ ok }) => !ok)).toEqual([]);
    // Who is online is compared only if the relay has been back for ten seconds by the end.
    const checked = report.oracles.map(({ name }) => name).filter((name) => name !== "presence");
    const first = ["liveness", "revoked", "exactly-once", "bounds", "blind"];
    expect(checked).toEqual([...first, "uncaught", "answers"]);
    expect(report.calls.ok).toBeGreaterThan(0);
    expect(report.calls.planned).toBe(report.calls.ok + report.calls.failed);
    // Devices hit by the crash reconnect, whatever else happens to them.
    const codes = report.failures.map(({ code }) => code);
    expect(codes.some((code) => /UNREACHABLE|OUTCOME_UNKNOWN|AGENT_OFFLINE/.test(code))).toBe(true);
    expect(report.faults).toHaveLength(5);
    expect(await runs()).toEqual(before);
  });

  test("gives devices the newest token after overlapping rotations", async () => {
    const rotations = scenario("8s", [
      { at: "1s", kind: "operator.rotate", devices: "valves", for: "900ms" },
      { at: "1100ms", kind: "operator.rotate", devices: "valves", for: "300ms" },
    ]);
    expect(await run(rotations)).toMatchObject({ stopped: null, agents: { connected: 6 } });
  });

  test("fails if a device never came online, and names the reason", async () => {
    const cut: Fault = { at: "0s", kind: "net.cut", devices: "lamps", for: "60s" };
    const late = scenario("4s", [cut]);
    // After the fault has begun.
    const devices = late.devices.map((group) => ({ ...group, start: { at: "2s" } }));
    const report = await run({ ...late, devices });
    expect([report.ok, report.stopped]).toEqual([
      false,
      expect.stringMatching(/^only [0-3] of 6 devices came online: /),
    ]);
  });

  test("ends with the first process of a fleet that ends, and leaves none", async () => {
    let pids: number[] = [];
    const write = (text: string): boolean => {
      const [, listed] = /^agents in processes ([0-9, ]+)$/m.exec(text) ?? [];
      if (listed === undefined) return true;
      pids = listed.split(", ").map(Number);
      return process.kill(pids[1] as number, "SIGKILL");
    };
    const progress = new Progress({ write } as never);
    const report = await run(scenario("60s"), { processes: 3, progress });
    expect(report.stopped).toBe(`the fleet's process ${pids[1]} ended (SIGKILL)`);
    expect([report.ok, pids.length]).toEqual([false, 3]);
    for (const pid of pids) expect(() => process.kill(pid, 0)).toThrow();
  });

  const mixed = (engine: "xs" | "espruino", faults: Fault[]): Scenario => ({
    name: "mixed engines",
    duration: "15s",
    world: "live",
    devices: [
      { group: "nodes", count: 5, kind: "echo" },
      { group: "valves", count: 1, kind: "valve", engine },
      { group: "sensors", count: 1, kind: "sensor", engine, packet_version: "2" },
    ],
    clients: [
      { devices: "nodes", every: "500ms", from: "1s", idempotent: true },
      { devices: "valves", every: "500ms", from: "1s", idempotent: true },
      { devices: "sensors", every: "500ms", from: "1s", idempotent: true },
    ],
    faults,
    thresholds: ["agents.online == 7", "call.wrong == 0"],
    allow: [{ rate: "100%" }],
  });
  /** In two processes: one has the valve, the other the sensor. */
  const runMixed = async (what: Scenario) => {
    const report = await runScenario(
      { scenario: what, file: "mixed.yaml", folder },
      { seed: 1, progress: silent(), signal: never, shrinks: false, processes: 2 },
    );
    expect(report).toMatchObject({ ok: true, stopped: null, agents: { connected: 7 } });
    for (const { kind, ok } of report.kinds) expect([kind, ok > 0]).toEqual([kind, true]);
    // The engines' folders too.
    expect((await readdir(folder)).filter((name) => /blindrelay/.test(name))).toEqual([]);
    return report;
  };

  test.skipIf(xs.kind === "missing")(
    `runs devices in XS beside those on Node, and plays its faults on them${whyNoXs}`,
    async () => {
      const xsFaults: Fault[] = [
        { at: "4s", kind: "device.reboot", devices: "valves", for: "200ms" },
        { at: "4s", kind: "device.reboot", devices: "sensors", for: "200ms", storage: "lose" },
        { at: "7s", kind: "net.cut", devices: "valves", for: "200ms" },
      ];
      await runMixed(mixed("xs", xsFaults));
    },
  );

  test.skipIf(espruino === null)(
    `runs devices in real Espruino processes${whyNoEspruino}`,
    async () => {
      const { kinds } = await runMixed(
        mixed("espruino", [
          { at: "6s", kind: "device.reboot", devices: "valves", for: "200ms" },
          { at: "6s", kind: "operator.rotate", devices: "sensors", for: "200ms" },
        ]),
      );
      expect(kinds[1]?.free_memory_bytes).toBeGreaterThan(0);
    },
  );

  test("reports a missing engine, and what an engine does not run", async () => {
    vi.stubEnv("ESPRUINO_BIN", undefined);
    await expect(runMixed(mixed("espruino", []))).rejects.toMatchObject({
      exitCode: 2,
      message: expect.stringMatching(/^valves: set ESPRUINO_BIN to /),
    });
    await writeFile(join(folder, "pump.js"), `import "./x.js";\nexport default async () => {};\n`);
    const [nodes] = mixed("xs", []).devices;
    const group = { group: "pumps", count: 1, program: "./pump.js" };
    for (const [engine, message] of [
      ["xs", /pump\.js:1:1: a device program for XS is one file/],
      ["espruino", /pump\.js:1:1: a device program is one file: it imports nothing/],
    ] as const) {
      const devices = [nodes as DeviceGroupSpec, { ...group, engine }];
      const what = { name: engine, duration: "1s", world: "live" as const, devices };
      await expect(runMixed(what)).rejects.toThrow(message);
    }
  });

  test("runs against an external relay, and removes its agents afterwards", async () => {
    const relay = await startRelay(join(folder, "relay"), never);
    try {
      const { accountToken } = await logIn(relay, never);
      vi.stubEnv("BLINDRELAY_ACCOUNT_TOKEN", accountToken);
      const report = await run(withSequences(scenario("8s")), { url: relay.url });
      expect(report).toMatchObject({ ok: true, stopped: null, agents: { connected: 7 } });
      const headers = { authorization: `Bearer ${accountToken}` };
      const agents = async () => {
        const answer = await fetch(`${relay.url}/api/v1/agents`, { headers });
        return ((await answer.json()) as { items: unknown[] }).items;
      };
      expect(await agents()).toEqual([]);

      const interrupt = new AbortController();
      const devices = [{ group: "lamps", count: 2_000, kind: "echo" as const }];
      const many: Scenario = { name: "many", duration: "3s", world: "live", devices };
      const interrupted = run(many, { url: relay.url, signal: interrupt.signal });
      await vi.waitUntil(async () => (await agents()).length > 0, 60_000);
      interrupt.abort(new Error("Ctrl-C"));
      expect(await interrupted).toMatchObject({ ok: false, stopped: "Ctrl-C" });
      expect(await agents()).toEqual([]);

      // Of another relay: it is presented once, and the address is not locked out.
      vi.stubEnv("BLINDRELAY_ACCOUNT_TOKEN", makeToken("account", new Uint8Array(32)));
      await expect(run(scenario("3s"), { url: relay.url })).rejects.toMatchObject({ exitCode: 5 });
      const next = await fetch(`${relay.url}/api/v1/agents`, {
        headers: { authorization: `Bearer ${makeToken("account", new Uint8Array(32).fill(1))}` },
      });
      expect(((await next.json()) as { detail: string }).detail).toContain("3 more failures");
      expect(await agents()).toEqual([]);
      // Mistyped: it is not presented at all.
      vi.stubEnv("BLINDRELAY_ACCOUNT_TOKEN", `${accountToken}x`);
      await expect(run(scenario("3s"), { url: relay.url })).rejects.toMatchObject({
        exitCode: 5,
        message: expect.stringContaining("BLINDRELAY_ACCOUNT_TOKEN"),
      });
      vi.stubEnv("BLINDRELAY_ACCOUNT_TOKEN", "");
      await expect(run(scenario("3s"), { url: relay.url })).rejects.toMatchObject({ exitCode: 2 });
    } finally {
      await relay.stop();
    }
  });

  test("reports that a relay cannot be reached", async () => {
    const server = createServer();
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    const { port } = server.address() as { port: number };
    await new Promise((resolve) => server.close(resolve));
    vi.stubEnv("BLINDRELAY_ACCOUNT_TOKEN", makeToken("account", new Uint8Array(32)));
    await expect(run(scenario("3s"), { url: `http://127.0.0.1:${port}` })).rejects.toMatchObject({
      exitCode: 4,
      message: expect.stringMatching(/cannot be reached/),
    });
  });
});
