import { MAX_BINDINGS_PER_CONNECTION } from "@blindrelay/protocol";
import { describe, expect, test, vi } from "vitest";
import { makePlan } from "../scenario/plan.ts";
import type { Fault, Scenario } from "../scenario/schema.ts";
import { VirtualNodes } from "./nodes.ts";
import { parseProgram } from "./program.ts";
import { runVirtual } from "./run.ts";
import { World } from "./world.ts";

const PUMP = parseProgram(
  `export default (agent) => {
    let calls = 0;
    agent.handle("pump.state", () => ({ calls: ++calls, at: Date.now(), luck: Math.random() }));
    agent.handle("pump.slow", async () => {
      await new Promise((done) => setTimeout(done, 1500));
      return { calls };
    });
  };`,
  "pump.js",
);

const PROGRAMS = new Map([["./pump.js", PUMP]]);

function scenario(faults: Fault[] = [], more: Partial<Scenario> = {}): Scenario {
  return {
    name: "a test",
    duration: "5m",
    devices: [{ group: "pumps", count: 10, program: "./pump.js", start: { over: "5s" } }],
    clients: [
      { count: 2, devices: "pumps", call: "pump.state", every: "20s", presence: true },
      { devices: "pumps", call: "pump.slow", rate: "12/m" },
    ],
    faults,
    ...more,
  };
}

const play = (seed: number, faults: Fault[] = [], more: Partial<Scenario> = {}) =>
  runVirtual(scenario(faults, more), { seed, programs: PROGRAMS, keptEntries: 100_000 });

const ALL_FAULTS: Fault[] = [
  { at: "30s", kind: "net.cut", share: "30%", for: "10s" },
  { at: "45s", kind: "net.half_open", share: "20%" },
  { at: "60s", kind: "device.reboot", share: "20%" },
  { at: "70s", kind: "device.reboot", share: "10%", storage: "lose" },
  { at: "75s", kind: "clock.skew", by: "10m" },
  { at: "80s", kind: "net.partition", share: "20%", for: "20s" },
  { at: "90s", kind: "relay.restart" },
  { at: "110s", kind: "operator.rotate", share: "20%" },
  { at: "120s", kind: "relay.crash" },
  { at: "130s", kind: "store.away", for: "5s" },
  { at: "135s", kind: "store.slow", latency: "2s", for: "5s" },
  { at: "140s", kind: "net.slow_reader", share: "20%", for: "10s" },
  { at: "150s", kind: "net.corrupt", messages: "10%", for: "10s" },
  { at: "160s", kind: "net.delay", latency: "300ms", jitter: "100ms", for: "10s" },
  { at: "165s", kind: "net.bandwidth", bandwidth: "2KB/s", for: "10s" },
];

describe("the virtual world", () => {
  test("lets each link have its bindings, as a client has two while its token is renewed", async () => {
    const bound = async (factor: number): Promise<string | undefined> => {
      const { stats } = VirtualNodes.prototype;
      const spy = vi.spyOn(VirtualNodes.prototype, "stats").mockImplementation(function (
        this: VirtualNodes,
      ) {
        const now = stats.call(this);
        if (now === null) return null;
        const links = 2 * now.connections.client + 1;
        return {
          ...now,
          connections: { ...now.connections, client: links },
          bindings: factor * links,
        };
      });
      const { violation } = await play(1);
      spy.mockRestore();
      return violation?.detail;
    };
    expect(await bound(MAX_BINDINGS_PER_CONNECTION)).toBeUndefined();
    expect(await bound(MAX_BINDINGS_PER_CONNECTION + 1)).toMatch(/^\d+ bindings of \d+ links$/);
  });

  test("counts a reconnection beside a device that never comes online", async () => {
    const { report } = await runVirtual(
      {
        name: "one is back",
        duration: "1m",
        devices: [
          { group: "away", count: 1, program: "./pump.js" },
          { group: "back", count: 1, program: "./pump.js" },
        ],
        faults: [
          { at: "0s", kind: "net.cut", devices: "away", for: "1m" },
          { at: "20s", kind: "device.reboot", devices: "back" },
        ],
        thresholds: ["agents.reconnects == 1"],
      },
      { seed: 1, programs: PROGRAMS },
    );
    expect(report.thresholds).toMatchObject([{ ok: true, value: 1 }]);
  });

  test("ends a run whose time stands still, and names who holds it", async () => {
    const quick = scenario([], { clients: [], duration: "1m" });
    const world = new World({ scenario: quick, plan: makePlan(quick, 1), programs: PROGRAMS });
    const again = (who: unknown): void => {
      world.clock.at(0, again, who, null);
    };
    world.clock.at(30_000_000, again, world.devices[1], null);
    await world.run();
    expect(world.stuck).toBe(
      "time stands still at 30s: pumps-00002 sets one timer after another for the same moment",
    );
  });

  test("goes on while a program waits in turns", async () => {
    const waiting = `export default (agent) => {
      const turn = (ask) => ask(() => turn(ask));
      turn((fn) => setImmediate(fn));
      turn((fn) => setTimeout(fn, 0));
      turn((fn) => agent.after(0, fn));
      agent.handle("pump.state", () => 1);
    };`;
    const { report, stuck } = await runVirtual(
      scenario([], {
        duration: "10s",
        devices: [{ group: "pumps", count: 1, program: "./pump.js" }],
        clients: [{ devices: "pumps", call: "pump.state", calls: 1 }],
      }),
      { seed: 1, programs: new Map([["./pump.js", parseProgram(waiting, "pump.js")]]) },
    );
    expect(stuck).toBeNull();
    expect(report.calls).toMatchObject({ ok: 1 });
  });

  test("lets a client that rests for hours get its next session token when it calls again", async () => {
    const { report } = await play(1, [], {
      duration: "30h",
      devices: [{ group: "pumps", count: 1, program: "./pump.js" }],
      clients: [{ devices: "pumps", call: "pump.state", every: "6h", presence: true }],
    });
    expect(report.oracles.filter(({ ok }) => !ok)).toEqual([]);
    expect(report.calls).toMatchObject({ planned: 5, ok: 5 });
  });

  test("serves every call if nothing goes wrong", async () => {
    const { report } = await play(1);
    expect(report.stopped).toBeNull();
    expect(report.agents).toEqual({ requested: 10, connected: 10 });
    const { planned, sent, ok, failed } = report.calls;
    expect([sent, ok, failed]).toEqual([planned, planned, 0]);
    expect(planned).toBeGreaterThan(180);
    expect(report.oracles.every((oracle) => oracle.ok)).toBe(true);
  });

  test("is broken by a device that its program has ended, and tells why", async () => {
    const program = parseProgram(
      `export default (agent) => {
        if (agent.storage.get("seen") !== null) throw new Error("no second start");
        agent.storage.set("seen", "yes");
      };`,
      "once.js",
    );
    const ended = async (duration: string, faults: Fault[]) => {
      const devices = [{ group: "g", count: 1, program: "./once.js" }];
      const programs = new Map([["./once.js", program]]);
      const made = { name: "ended", duration, devices, faults };
      return (await runVirtual(made, { seed: 1, programs })).report.stopped;
    };
    const reboot: Fault = { at: "10s", kind: "device.reboot" };
    expect(await ended("1m", [])).toBeNull();
    expect(await ended("5m", [reboot])).toMatch(
      /"liveness": .* g-00001 \(the program failed: Error: no second start \(once.js:2:\d+\)\) are not online/,
    );
    // Too soon after the fault.
    expect(await ended("1m", [reboot])).toBeNull();
    const broken = new Map([["./b.js", parseProgram("export default () => { boom(); };", "b.js")]]);
    const devices = [{ group: "g", count: 1, program: "./b.js" }];
    const made = { name: "broken", duration: "5s", devices };
    const { report } = await runVirtual(made, { seed: 1, programs: broken });
    expect(report.stopped).toMatch(/"liveness": .*ReferenceError: boom is not defined/);
  });

  test("played in other ways ends without a word on its course if there is no time for them", async () => {
    let reads = 0;
    // Enough for the run itself, and nothing for the others.
    const options = {
      seed: 1,
      programs: PROGRAMS,
      crypto: "model" as const,
      get hardStopMs() {
        return reads++ === 0 ? 600_000 : 0;
      },
    };
    const { report } = await runVirtual(scenario(ALL_FAULTS, { same: true }), options);
    expect(report.oracles.find(({ name }) => name === "same")).toBeUndefined();
    expect([report.ok, report.stopped]).toEqual([
      false,
      "the run took longer than 0 s of real time",
    ]);
  });

  test("does the same again for the same seed, and something else for another", async () => {
    const [one, again, other] = [
      await play(3, ALL_FAULTS),
      await play(3, ALL_FAULTS),
      await play(4, ALL_FAULTS),
    ];
    expect(again.world.traceLog.tail()).toEqual(one.world.traceLog.tail());
    expect(again.report.trace).toBe(one.report.trace);
    expect(other.report.trace).not.toBe(one.report.trace);
  });

  test("recovers from every fault, and no oracle objects", async () => {
    for (const seed of [1, 2]) {
      const { report } = await play(seed, ALL_FAULTS);
      expect(report.stopped).toBeNull();
      expect(report.agents.connected).toBe(10);
      expect(report.calls.failed).toBeGreaterThan(0);
      expect(report.calls.ok).toBeGreaterThan(100);
    }
  });

  test.each(["drop", "duplicate", "reorder", "replay", "forge"] as const)(
    "survives a hostile relay that plays %s",
    async (attack) => {
      const faults: Fault[] = [
        { at: "20s", kind: "relay.hostile", attack, messages: "20%", for: "2m" },
      ];
      const { report } = await play(5, faults);
      expect(report.stopped).toBeNull();
    },
  );

  test("plays the same for a device whether others are there or not", async () => {
    const of = (first: number, count: number): Promise<string[]> =>
      play(9, [{ at: "60s", kind: "relay.hostile", attack: "forge", messages: "20%", for: "1m" }], {
        duration: "2m",
        devices: [{ group: "pumps", first, count, program: "./pump.js" }],
        clients: [{ name: "c", devices: "pumps", call: "pump.state", every: "20s", from: "20s" }],
      }).then(({ world }) =>
        world.traceLog
          .tail()
          .filter(({ what, who }) => what === "outcome" && who.includes("pumps-00003"))
          .map(({ text }) => text.replace(/^[0-9]+ /, "")),
      );
    const [alone, among] = [await of(3, 1), await of(1, 5)];
    expect(alone.length).toBeGreaterThan(3);
    expect(alone).toEqual(among);
  });

  test("gives a device program the world's time and randomness", async () => {
    const { world } = await play(6, [], { duration: "60s" });
    const answers = world.measured.tally;
    expect(answers.ok).toBeGreaterThan(20);
    // A slow call takes 1.5 s, plus 20 to 25 ms in each direction.
    expect(answers.latency.trend()?.max).toBeGreaterThan(1500);
  });

  test("stops at the sample at which an aborting threshold is missed", async () => {
    const faults: Fault[] = [
      { at: "10s", kind: "net.cut", for: "5s" },
      { at: "30s", kind: "net.cut", for: "4m" },
    ];
    const thresholds = [{ expression: "agents.online >= 5", abort: true, after: "20s" }];
    const { report, world } = await play(1, faults, { thresholds, duration: "10m" });
    expect(report.ok).toBe(false);
    expect(report.stopped).toBe("the threshold agents.online >= 5 was broken");
    expect(report.thresholds[0]?.ok).toBe(false);
    expect(world.clock.nowUs).toBe(31_000_000);
    expect(report.series.at(-2)?.at_s).toBe(30); // and not sampled twice
  });

  test("is not stopped by a figure that nothing is measured of yet", async () => {
    const thresholds = [{ expression: "rate(call.failed) < 1%", abort: true }];
    const { report } = await play(1, [], { thresholds, duration: "1m" });
    expect({ stopped: report.stopped, ok: report.ok }).toEqual({ stopped: null, ok: true });
  });

  test("reports a call that fails without a cause", async () => {
    const hung = parseProgram(
      "export default (agent) => { agent.handle('pump.state', () => { throw 1; }); };",
      "pump.js",
    );
    const programs = new Map([["./pump.js", hung]]);
    const { report } = await runVirtual(
      scenario([], { clients: [{ devices: "pumps", call: "pump.state", every: "20s" }] }),
      { seed: 1, programs },
    );
    expect(report.calls.ok).toBe(0);
    // An answer that is an error is the program's, not the relay's fault.
    expect(report.failures[0]?.code).toBe("REMOTE -32000");
    expect(report.oracles.filter((oracle) => !oracle.ok).map(({ name }) => name)).toEqual([
      "answers",
    ]);
  });
});
