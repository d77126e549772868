/**
 * What a user feels while another does the worst that the limits allow and strangers guess
 * passwords as fast as they can: round trips and a right login, from an address that the name has
 * used, against round trips of the same run while the relay was idle. Times depend on the machine,
 * their ratio less.
 */
import { setTimeout as wait } from "node:timers/promises";
import { PASSWORD, type RelayProcess, startRelayProcess } from "../relay-process.ts";
import { percentile, RoundTrips } from "../round-trips.ts";
import { type AttackReport, attackFromAside } from "./attack.ts";

/** With metadata of 4 KB each; so many take half of a minute's requests. */
const AGENTS = 1500;
const METADATA = { x: "x".repeat(4000) };
const TRIP_PAUSE_MS = 10;
/** After which a user may make all requests again. */
const MINUTE_MS = 60_000;
/** The attackers' links and queues are there by then. */
const RAMP_MS = 2000;
const LOGIN_PAUSE_MS = 1000;
const MAX_RATIO = 5;
const MAX_LOGIN_MS = 2000;

export interface NeighbourReport {
  readonly seconds: number;
  readonly idleP50Ms: number;
  readonly idleP99Ms: number;
  readonly busyP50Ms: number;
  readonly busyP99Ms: number;
  /** Of the two p99. */
  readonly ratio: number;
  readonly trips: number;
  readonly logins: number;
  readonly slowestLoginMs: number;
  readonly attack: AttackReport;
  readonly faults: readonly string[];
}

export const neighbours = async (seconds: number): Promise<NeighbourReport> => {
  const relay = await startRelayProcess();
  try {
    const greedy = await makeUser(relay, "greedy");
    const account = await makeUser(relay, "neighbour");
    const startedMs = performance.now();
    await fill(relay, greedy);
    const trips = await RoundTrips.open(relay, account);
    const measure = async (ms: number): Promise<number[]> => {
      trips.takeTimes();
      for (const end = performance.now() + ms; performance.now() < end; ) {
        await trips.once();
        await wait(TRIP_PAUSE_MS);
      }
      return trips.takeTimes();
    };
    await measure(RAMP_MS); // code that runs for the first time is slow
    const idle = await measure(seconds * 1000);
    await wait(Math.max(0, startedMs + MINUTE_MS - performance.now()));
    const attacking = attackFromAside({
      url: relay.url,
      account: greedy,
      seconds: seconds + (2 * RAMP_MS) / 1000,
    });
    await wait(RAMP_MS);
    const [busy, logins] = await Promise.all([
      measure(seconds * 1000),
      logInFor(relay, seconds * 1000),
    ]);
    const attack = await attacking;
    trips.close();
    const idleP99Ms = percentile(idle, 99);
    const busyP99Ms = percentile(busy, 99);
    const slowestLoginMs = Math.max(...logins);
    const ratio = busyP99Ms / idleP99Ms;
    const faults: string[] = [];
    if (ratio > MAX_RATIO) faults.push(`p99 is ${ratio.toFixed(1)} times that of the idle relay`);
    if (slowestLoginMs > MAX_LOGIN_MS) {
      faults.push(`a right login took ${Math.round(slowestLoginMs)} ms`);
    }
    if (trips.lost + trips.wrong > 0) faults.push(`${trips.lost} lost, ${trips.wrong} wrong`);
    return {
      seconds,
      idleP50Ms: round(percentile(idle, 50)),
      idleP99Ms: round(idleP99Ms),
      busyP50Ms: round(percentile(busy, 50)),
      busyP99Ms: round(busyP99Ms),
      ratio: round(ratio),
      trips: busy.length,
      logins: logins.length,
      slowestLoginMs: Math.round(slowestLoginMs),
      attack,
      faults,
    };
  } finally {
    await relay.stop();
  }
};

const round = (value: number): number => Math.round(value * 10) / 10;

const makeUser = async (relay: RelayProcess, username: string): Promise<string> => {
  const password = PASSWORD;
  const body = { username, password, role: "user" };
  await relay.api("POST", "/admin/users", body, relay.account);
  const login = await relay.api("POST", "/auth/login", { username, password });
  return login.body.user.api_token;
};

const fill = async (relay: RelayProcess, account: string): Promise<void> => {
  let next = 0;
  const make = async (): Promise<void> => {
    while (next++ < AGENTS) {
      await relay.api("POST", "/agents", { name: "full", metadata: METADATA }, account);
    }
  };
  await Promise.all(Array.from({ length: 8 }, make));
};

/** Right logins one after another; how long each took. */
const logInFor = async (relay: RelayProcess, ms: number): Promise<number[]> => {
  const times: number[] = [];
  for (const end = performance.now() + ms; performance.now() < end; ) {
    const startedMs = performance.now();
    const body = { username: "neighbour", password: PASSWORD };
    const { status } = await relay.api("POST", "/auth/login", body);
    if (status !== 200) throw new Error(`a right login was answered ${status}`);
    times.push(performance.now() - startedMs);
    await wait(LOGIN_PAUSE_MS);
  }
  return times;
};
