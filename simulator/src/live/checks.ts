/** What must hold at the end of a live run, once its calls have ended. */
import { setTimeout as delay } from "node:timers/promises";
import type { ExecutionOracle } from "../oracle/executions.ts";
import type { LivenessOracle } from "../oracle/liveness.ts";
import type { Plan, PlannedLoad } from "../scenario/plan.ts";
import { durationMs } from "../scenario/units.ts";
import type { LiveAgents } from "./agents.ts";
import type { Called, Clients } from "./clients.ts";
import type { FleetChildren } from "./fleet-children.ts";
import type { LiveOracles } from "./oracles.ts";
import type { LiveRelay } from "./relay.ts";
import { onlineAgents } from "./rest.ts";

/**
 * Time from a device's planned start to its login: a fixed part, one for each device of the fleet,
 * and one for each device in a board's engine.
 */
const WHOLE_LIMIT_MS = { fixed: 30_000, each: 10, board: 3_000 };
/** For devices that are connecting at the end. */
export const SETTLE_MS = 5_000;
/** For calls in flight at the end: as long as each may take, and at most this long. */
const LONGEST_CALL_MS = 60_000;
/** Time for relay and fleet to agree on who is online, once all faults and calls have ended. */
const AGREE_MS = 10_000;
const ASK_AGAIN_MS = 1_000;
/** So many devices of a group are asked for their memory, at most for this long. */
const MAX_ASKED = 20;
const ASK_LIMIT_MS = 5_000;

/** Time for the calls of a plan that are in flight at its end. */
export const callsMs = ({ loads }: Plan): number =>
  loads.reduce((most, load) => Math.max(most, Math.min(turnMs(load), LONGEST_CALL_MS)), 0) +
  SETTLE_MS;

/** The longest that a call or a sequence takes. */
const turnMs = ({ timeoutMs, spec }: PlannedLoad): number =>
  spec.steps?.reduce(
    (sum, { after = "0s", timeout }) =>
      sum + durationMs(after) + (timeout === undefined ? timeoutMs : durationMs(timeout)),
    0,
  ) ?? timeoutMs;

export async function settle(clients: Clients, fleet: FleetChildren, plan: Plan): Promise<void> {
  const now = performance.now();
  const { length: count } = plan.devices;
  const isBusy = (): boolean =>
    (clients.underWay > 0 && performance.now() < now + callsMs(plan)) ||
    (fleet.everConnected() < count && performance.now() < now + SETTLE_MS);
  while (isBusy()) await delay(20);
}

/**
 * A fleet of `count` devices that cannot be completed ends the run, which would otherwise measure a
 * different fleet.
 */
export async function checkWhole(
  fleet: FleetChildren,
  count: number,
  stopping: AbortController,
): Promise<void> {
  const ever = fleet.everConnected();
  if (ever >= count || stopping.signal.aborted) return;
  const report = await fleet.report();
  const codes = new Map<string, number>();
  for (const { code } of report?.missing ?? []) codes.set(code, (codes.get(code) ?? 0) + 1);
  const why = [...codes].map(([code, n]) => `${code} (${n})`).join(", ");
  stopping.abort(new Error(`only ${ever} of ${count} devices came online: ${why}`));
}

/** When every device must have come online, in the plan's time. */
export function wholeLimitMs({ devices }: Plan): number {
  const lastMs = devices.reduce((last, { startUs }) => Math.max(last, startUs), 0) / 1000;
  const boards = devices.filter(({ engine }) => engine !== undefined);
  const ownMs = WHOLE_LIMIT_MS.each * devices.length + WHOLE_LIMIT_MS.board * boards.length;
  return lastMs + WHOLE_LIMIT_MS.fixed + ownMs;
}

/** For devices on Node, once no call is in flight. */
export async function checkExecutions({
  plan,
  agents,
  clients,
  fleet,
  executions,
  oracles,
}: {
  plan: Plan;
  agents: LiveAgents;
  clients: Clients;
  fleet: FleetChildren;
  executions: ExecutionOracle;
  oracles: LiveOracles;
}): Promise<void> {
  if (clients.underWay > 0) return;
  const report = await fleet.report();
  if (report === null) return;
  oracles.markChecked("exactly-once");
  plan.devices.forEach(({ engine }, n) => {
    const { id } = agents.devices[n] as Called;
    if (engine === undefined) executions.compare(id, report.executed[id] ?? 0);
  });
}

/**
 * What boards have free, by group: the least of the first ones, in bytes. Who does not answer or
 * does not know is left out.
 */
export async function leastMemory(
  { devices }: Plan,
  clients: Clients,
): Promise<Map<string, number>> {
  const boards = devices.flatMap(({ engine, group }, n) =>
    engine === undefined ? [] : [{ group, n }],
  );
  const asked = boards.filter(
    ({ group }, i) =>
      boards.slice(0, i).filter((other) => other.group === group).length < MAX_ASKED,
  );
  const least = new Map<string, number>();
  await Promise.all(
    asked.map(async ({ group, n }) => {
      const info = await clients.callOnce(n, "system.info", ASK_LIMIT_MS).catch(() => null);
      const { free_memory: free } = (info ?? {}) as { readonly free_memory?: unknown };
      if (typeof free !== "number") return;
      least.set(group, Math.min(free, least.get(group) ?? free));
    }),
  );
  return least;
}

/** The relay's presence must agree with the fleet, unless a fault has just ended. */
export async function checkPresence({
  agents,
  fleet,
  relay,
  liveness,
  oracles,
  nowUs,
  signal,
}: {
  agents: LiveAgents;
  fleet: FleetChildren;
  relay: LiveRelay;
  liveness: LivenessOracle;
  oracles: LiveOracles;
  /** The time in the plan. */
  nowUs: number;
  /** The end of the run. */
  signal: AbortSignal;
}): Promise<void> {
  if (!liveness.isQuiet(nowUs)) return;
  const endMs = performance.now() + AGREE_MS;
  let wrong: string[];
  do {
    const report = await fleet.report();
    if (report === null) return;
    const missing = new Set(report.missing.map(({ id }) => id));
    const online = await onlineAgents(relay, relay.accountToken, signal);
    wrong = agents.ids.filter((id) => online.has(id) === missing.has(id));
    if (wrong.length > 0) await delay(ASK_AGAIN_MS);
  } while (wrong.length > 0 && performance.now() < endMs);
  oracles.markChecked("presence");
  const [id] = wrong;
  if (id === undefined) return;
  const more = wrong.length > 1 ? ` and ${wrong.length - 1} more` : "";
  oracles.violate("presence", `the relay reports the wrong presence for ${id}${more}`);
}
