/**
 * How a user is affected while another does the worst that the limits permit and strangers guess
 * passwords as fast as they can: round trips, and correct logins from an address that the name has
 * used and from new ones. Round trips while the relay is idle and under attack alternate every few
 * seconds, so that other load on the machine affects both.
 *
 * Attackers, relay and the user share one machine, but in production are on three. So the thread
 * that forwards messages has a core to itself. The relay's other threads (hashes, flushes,
 * collections) may use both cores, as on a machine of its own; the user has the second, where it
 * runs before them, and the attackers get what is left (attack.ts). The measurement is void if
 * password guesses do not keep the relay busy, and a failure is void if round trips through a
 * process that only forwards them (control.ts), on the user's core, become slower too.
 */
import { execFileSync, spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { availableParallelism } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { setTimeout as wait } from "node:timers/promises";
import { PASSWORD, type RelayProcess, startRelayProcess } from "../relay-process.ts";
import { percentile, RoundTrips } from "../round-trips.ts";
import {
  AGENTS_NEEDED,
  type AttackKind,
  type AttackReport,
  attackFromAside,
  type OwnAgent,
} from "./attack.ts";
import { Control } from "./control.ts";
import { logInFrom } from "./log-in-from.ts";

/** As many agents, and nearly as much metadata, as a user may have. */
const AGENTS = 10_000;
const METADATA = JSON.stringify({ x: "x".repeat(3200) });
/** Read before this process gives one of them away. */
const CORES = availableParallelism();
const TRIP_PAUSE_MS = 3;
const IDLE_MS = 5000;
const ATTACK_MS = 10_000;
/** By then, the attackers' links and queues exist, or are gone again. */
const RAMP_MS = 3000;
const LOGIN_PAUSE_MS = 1000;
const MAX_RATIO = 5;
const MAX_CONTROL_RATIO = 2;
const MIN_CPU = 0.8;
const MAX_LOGIN_MS = 2000;

/** Correct logins, one after another. */
interface Logins {
  readonly count: number;
  readonly slowestMs: number;
  /** Answered with anything but 200. */
  readonly refused: number;
}

export interface NeighbourReport {
  readonly kinds: readonly AttackKind[];
  readonly rounds: number;
  /** Whether the user and the control ran before everything else on their core. */
  readonly runsFirst: boolean;
  readonly idleP50Ms: number;
  readonly idleP99Ms: number;
  readonly busyP50Ms: number;
  readonly busyP99Ms: number;
  /** Of the two p99. */
  readonly ratio: number;
  /** The same through the control. */
  readonly controlIdleP99Ms: number;
  readonly controlBusyP99Ms: number;
  readonly trips: number;
  readonly logins: Logins;
  /** From addresses that the name has not used. */
  readonly newLogins: Logins;
  /** Under attack: 1 is a whole core. */
  readonly relayCpu: number;
  readonly relayPeakMB: number;
  /** What the host took of the machine's cores: 1 is all of them. */
  readonly stolen: { readonly idle: number; readonly busy: number };
  readonly attack: AttackReport;
  readonly faults: readonly string[];
}

/** Each round is five seconds without, and ten with, attackers of these kinds. */
export const neighbours = async (
  rounds: number,
  kinds: readonly AttackKind[],
): Promise<NeighbourReport> => {
  const relay = await startRelayProcess();
  pin("-acp", process.pid, `1-${CORES - 1}`);
  const runsFirst = runFirst(process.pid); // and what it starts from here on, such as the control
  const control = await Control.start();
  try {
    const greedy = await makeUser(relay, "greedy");
    const account = await makeUser(relay, "neighbour");
    fill(relay, greedy.id);
    const agents: OwnAgent[] = [];
    for (let i = 0; i < AGENTS_NEEDED; i++) {
      agents.push((await relay.api("POST", "/agents", { name: "own" }, greedy.account)).body);
    }
    const trips = await RoundTrips.open(relay, account.account);
    const measure = async (ms: number): Promise<Times> => {
      trips.takeTimes();
      control.takeTimes();
      const stolenBefore = stolenTicks();
      for (const end = performance.now() + ms; performance.now() < end; ) {
        await trips.once();
        await wait(TRIP_PAUSE_MS);
        await control.once();
        await wait(TRIP_PAUSE_MS);
      }
      return {
        relay: trips.takeTimes(),
        control: control.takeTimes(),
        stolenTicks: stolenTicks() - stolenBefore,
      };
    };
    pin("-cp", relay.child.pid as number, "0"); // those for hashes and collections have started
    await measure(RAMP_MS); // code that runs for the first time is slow
    const idle: Times = { relay: [], control: [], stolenTicks: 0 };
    const busy: Times = { relay: [], control: [], stolenTicks: 0 };
    const [logins, newLogins] = [new RightLogins(), new RightLogins()];
    const attack: Record<string, number> = {};
    let relayCpuMs = 0;
    for (let round = 0; round < rounds; round++) {
      add(idle, await measure(IDLE_MS));
      const seconds = (ATTACK_MS + RAMP_MS) / 1000;
      const attacking = attackFromAside({ url: relay.url, ...greedy, agents, seconds, kinds });
      await wait(RAMP_MS);
      const cpuMs = relay.cpuMs();
      const [times] = await Promise.all([
        measure(ATTACK_MS),
        logins.make(() => logInFrom(relay.url, "127.0.0.1", RIGHT)),
        newLogins.make((i) => logInFrom(relay.url, `127.200.0.${1 + (i % 250)}`, RIGHT)),
      ]);
      relayCpuMs += relay.cpuMs() - cpuMs;
      add(busy, times);
      for (const [what, count] of Object.entries(await attacking)) {
        attack[what] = (attack[what] ?? 0) + count;
      }
      await wait(RAMP_MS);
    }
    trips.close();
    const idleP99Ms = percentile(idle.relay, 99);
    const busyP99Ms = percentile(busy.relay, 99);
    const ratio = busyP99Ms / idleP99Ms;
    const controlIdleP99Ms = percentile(idle.control, 99);
    const controlBusyP99Ms = percentile(busy.control, 99);
    const relayCpu = relayCpuMs / (rounds * ATTACK_MS);
    const faults: string[] = [];
    if (relayCpu < MIN_CPU && kinds.includes("guesses")) {
      faults.push(`nothing was measured: the relay used only ${round(relayCpu)} of a core`);
    }
    if (ratio > MAX_RATIO) {
      faults.push(`p99 is ${ratio.toFixed(1)} times that of the idle relay`);
      if (controlBusyP99Ms > MAX_CONTROL_RATIO * controlIdleP99Ms) {
        faults.push("the user did not have a core either: see controlBusyP99Ms");
      }
    }
    for (const [from, { slowestMs, refused }] of [
      ["a known address", logins],
      ["a new address", newLogins],
    ] as const) {
      if (slowestMs > MAX_LOGIN_MS) faults.push(`a right login from ${from} took ${slowestMs} ms`);
      if (refused > 0) faults.push(`${refused} right logins from ${from} were refused`);
    }
    if (trips.lost + trips.wrong > 0) faults.push(`${trips.lost} lost, ${trips.wrong} wrong`);
    return {
      kinds,
      rounds,
      runsFirst,
      idleP50Ms: round(percentile(idle.relay, 50)),
      idleP99Ms: round(idleP99Ms),
      busyP50Ms: round(percentile(busy.relay, 50)),
      busyP99Ms: round(busyP99Ms),
      ratio: round(ratio),
      controlIdleP99Ms: round(controlIdleP99Ms),
      controlBusyP99Ms: round(controlBusyP99Ms),
      trips: busy.relay.length,
      logins,
      newLogins,
      relayCpu: round(relayCpu),
      relayPeakMB: Math.round(relay.peakRssBytes() / 2 ** 20),
      stolen: {
        idle: round((10 * idle.stolenTicks) / (CORES * rounds * IDLE_MS)),
        busy: round((10 * busy.stolenTicks) / (CORES * rounds * ATTACK_MS)),
      },
      attack,
      faults,
    };
  } finally {
    await control.stop();
    await relay.stop();
  }
};

interface Times {
  readonly relay: number[];
  readonly control: number[];
  /** In ticks of all cores, as in /proc/stat. */
  stolenTicks: number;
}

const add = (all: Times, more: Times): void => {
  all.relay.push(...more.relay);
  all.control.push(...more.control);
  all.stolenTicks += more.stolenTicks;
};

const RIGHT = { username: "neighbour", password: PASSWORD };

const round = (value: number): number => Math.round(value * 100) / 100;

/** Ticks of 10 ms in which the host let others use this machine's cores. */
const stolenTicks = (): number =>
  Number(/^cpu +(?:\d+ +){7}(\d+)/.exec(readFileSync("/proc/stat", "utf8"))?.[1]);

/** Pins a process's main thread (`-cp`), or all of its threads (`-acp`), to some cores. */
const pin = (which: "-cp" | "-acp", pid: number, cores: string): void => {
  execFileSync("taskset", [which, cores, String(pid)], { stdio: "ignore" });
};

/** Lets a process run before all others on its cores; false: this one is not permitted to. */
const runFirst = (pid: number): boolean =>
  spawnSync("chrt", ["--all-tasks", "--rr", "--pid", "1", String(pid)]).status === 0;

const makeUser = async (
  relay: RelayProcess,
  username: string,
): Promise<{ id: string; account: string }> => {
  const password = PASSWORD;
  const body = { username, password, role: "user" };
  await relay.api("POST", "/admin/users", body, relay.account);
  const { user } = (await relay.api("POST", "/auth/login", { username, password })).body;
  return { id: user.id, account: user.api_token };
};

/** Not by requests, because a user's limit is too low for that. */
const fill = (relay: RelayProcess, userId: string): void => {
  const db = new DatabaseSync(join(relay.data, "store/relay.sqlite"));
  const add = db.prepare(
    "insert into agents (agent_id, user_id, name, metadata, created_at) values (?, ?, 'full', ?, ?)",
  );
  db.exec("pragma busy_timeout = 5000; begin immediate");
  for (let i = 0; i < AGENTS - AGENTS_NEEDED; i++) add.run(`full-${i}`, userId, METADATA, i);
  db.exec("commit");
  db.close();
};

class RightLogins implements Logins {
  count = 0;
  slowestMs = 0;
  refused = 0;

  /** Runs one after another during an attack. */
  async make(logIn: (i: number) => Promise<number>): Promise<void> {
    for (const end = performance.now() + ATTACK_MS; performance.now() < end; ) {
      const startedMs = performance.now();
      if ((await logIn(this.count)) !== 200) this.refused += 1;
      this.count += 1;
      this.slowestMs = Math.max(this.slowestMs, Math.round(performance.now() - startedMs));
      await wait(LOGIN_PAUSE_MS);
    }
  }
}
