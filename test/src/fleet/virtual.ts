/**
 * By hand: calls to many in a virtual world, by a caller that is killed again and again and goes
 * on from what it had recorded. Each agent must have executed the call once, or be reported as
 * unknown; the agents' own counts are the proof.
 *
 *     node test/src/fleet/virtual.ts [AGENTS] [KILLS] [SEED]
 */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Fleet, type FleetOutcome } from "@blindrelay/client-sdk";
import { VirtualFleet } from "@blindrelay/simulator/fleet";

const PROGRAM = `export default (agent) => {
  let runs = 0;
  agent.handle("act", () => { runs += 1; return runs; });
  agent.handle("runs", () => runs);
};
`;
/** Killed callers leave their connections behind; another one goes on. */
const CLIENTS = 8;

const [count = 10_000, kills = 20, seed = 1] = process.argv.slice(2).map(Number);
const folder = mkdtempSync(join(tmpdir(), "blindrelay-virtual-"));
writeFileSync(join(folder, "counter.js"), PROGRAM);
let state = seed;
const draw = (below: number): number => {
  state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
  return Math.floor((state / 2 ** 32) * below);
};

const options = {
  seed,
  devices: [{ group: "meters", count, program: "./counter.js", start: { over: "60s" } }],
  clients: CLIENTS,
};
const fleet = new VirtualFleet(options, folder);
const beganMs = performance.now();
await fleet.start();
const devices = new Map(fleet.devices.map((device) => [device.id, device]));

/** What a journal would hold: written before a call goes out, and with its outcome. */
const sent = new Set<string>();
const settled = new Map<string, FleetOutcome>();
/** As `--resume` reads it: what was sent and has no outcome may have run. */
const before = (): FleetOutcome[] => {
  const at = "";
  const lost = [...sent].filter((id) => !settled.has(id));
  for (const agentId of lost) {
    settled.set(agentId, { agentId, outcome: "unknown", result: null, error: "killed", at });
  }
  return [...settled.values()].filter(({ outcome }) =>
    ["ok", "error", "unknown"].includes(outcome),
  );
};

const ids = [...devices.keys()];
let killed = 0;
for (let run = 0; ; run += 1) {
  const client = fleet.clients[run % CLIENTS];
  if (client === undefined) throw new Error("no client");
  const callable = (id: string) => {
    const device = devices.get(id);
    if (device === undefined) return null;
    const agent = client.agent(device);
    return {
      call: (method: string, params: unknown, more: { timeoutMs: number; idempotent: boolean }) =>
        fleet.clock.until(agent.call(method, params, more)),
    };
  };
  const known = before();
  const left = run < kills ? draw((2 * (count - known.length)) / (kills - run + 1)) : count;
  let isKilled = false;
  let printed = 0;
  const outcomes = new Fleet(async () => ids, callable).call("act", undefined, {
    before: known,
    sending: (id) => {
      // A killed process records nothing, and so sends nothing.
      if (isKilled) return new Promise<void>(() => undefined);
      sent.add(id);
      return undefined;
    },
  });
  for await (const outcome of outcomes) {
    settled.set(outcome.agentId, outcome);
    printed += 1;
    if (printed <= left || run >= kills) continue;
    isKilled = true;
    killed += 1;
    break;
  }
  if (run >= kills) break;
}

const counts = new Map<string, number>();
const wrong: string[] = [];
let ran = 0;
for (const device of fleet.devices) {
  const { outcome } = settled.get(device.id) ?? { outcome: "missing" };
  const asked = fleet.clients[0]?.agent(device).call<number>("runs");
  const runs = asked === undefined ? -1 : await fleet.clock.until(asked);
  counts.set(outcome, (counts.get(outcome) ?? 0) + 1);
  ran += runs;
  const isRight = outcome === "ok" ? runs === 1 : outcome === "unknown" ? runs <= 1 : runs === 0;
  if (!isRight) wrong.push(`${device.id}: ${outcome}, and ran ${runs} times`);
}
const seconds = Math.round((performance.now() - beganMs) / 1000);
console.log(
  JSON.stringify({ agents: count, kills: killed, ...Object.fromEntries(counts), ran, seconds }),
);
for (const text of wrong) console.log(text);
fleet.stop();
rmSync(folder, { recursive: true });
process.exit(wrong.length === 0 ? 0 : 1);
