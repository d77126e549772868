/**
 * What a user feels while another does the worst that the limits allow and strangers guess
 * passwords as fast as they can: round trips, and right logins from an address that the name has
 * used and from new ones, against round trips of the same run while the relay was idle. Times
 * depend on the machine, their ratio less. Round trips through a process that only passes them on
 * (control.ts) are taken in turn with those through the relay, and tell what the machine's being
 * busy costs by itself.
 */
import { setTimeout as wait } from "node:timers/promises";
import { PASSWORD, type RelayProcess, startRelayProcess } from "../relay-process.ts";
import { percentile, RoundTrips } from "../round-trips.ts";
import { type AttackReport, attackFromAside } from "./attack.ts";
import { Control } from "./control.ts";
import { logInFrom } from "./log-in-from.ts";

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

/** Right logins, one after another. */
interface Logins {
  readonly count: number;
  readonly slowestMs: number;
  /** Answered with anything but 200. */
  readonly refused: number;
}

export interface NeighbourReport {
  readonly seconds: number;
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
  readonly attack: AttackReport;
  readonly faults: readonly string[];
}

export const neighbours = async (seconds: number): Promise<NeighbourReport> => {
  const relay = await startRelayProcess();
  const control = await Control.start();
  try {
    const greedy = await makeUser(relay, "greedy");
    const account = await makeUser(relay, "neighbour");
    const startedMs = performance.now();
    await fill(relay, greedy);
    const trips = await RoundTrips.open(relay, account);
    const measure = async (ms: number): Promise<{ relay: number[]; control: number[] }> => {
      trips.takeTimes();
      control.takeTimes();
      for (const end = performance.now() + ms; performance.now() < end; ) {
        await trips.once();
        await wait(TRIP_PAUSE_MS);
        await control.once();
        await wait(TRIP_PAUSE_MS);
      }
      return { relay: trips.takeTimes(), control: control.takeTimes() };
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
    const [busy, logins, newLogins] = await Promise.all([
      measure(seconds * 1000),
      logInFor(seconds * 1000, () => logInFrom(relay.url, "127.0.0.1", RIGHT)),
      logInFor(seconds * 1000, (i) => logInFrom(relay.url, `127.200.0.${1 + (i % 250)}`, RIGHT)),
    ]);
    const attack = await attacking;
    trips.close();
    const idleP99Ms = percentile(idle.relay, 99);
    const busyP99Ms = percentile(busy.relay, 99);
    const ratio = busyP99Ms / idleP99Ms;
    const faults: string[] = [];
    if (ratio > MAX_RATIO) faults.push(`p99 is ${ratio.toFixed(1)} times that of the idle relay`);
    for (const [from, { slowestMs, refused }] of [
      ["a known address", logins],
      ["a new address", newLogins],
    ] as const) {
      if (slowestMs > MAX_LOGIN_MS) faults.push(`a right login from ${from} took ${slowestMs} ms`);
      if (refused > 0) faults.push(`${refused} right logins from ${from} were refused`);
    }
    if (trips.lost + trips.wrong > 0) faults.push(`${trips.lost} lost, ${trips.wrong} wrong`);
    return {
      seconds,
      idleP50Ms: round(percentile(idle.relay, 50)),
      idleP99Ms: round(idleP99Ms),
      busyP50Ms: round(percentile(busy.relay, 50)),
      busyP99Ms: round(busyP99Ms),
      ratio: round(ratio),
      controlIdleP99Ms: round(percentile(idle.control, 99)),
      controlBusyP99Ms: round(percentile(busy.control, 99)),
      trips: busy.relay.length,
      logins,
      newLogins,
      attack,
      faults,
    };
  } finally {
    await control.stop();
    await relay.stop();
  }
};

const RIGHT = { username: "neighbour", password: PASSWORD };

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

const logInFor = async (ms: number, logIn: (i: number) => Promise<number>): Promise<Logins> => {
  const times: number[] = [];
  let refused = 0;
  for (const end = performance.now() + ms; performance.now() < end; ) {
    const startedMs = performance.now();
    if ((await logIn(times.length)) !== 200) refused += 1;
    times.push(performance.now() - startedMs);
    await wait(LOGIN_PAUSE_MS);
  }
  return { count: times.length, slowestMs: Math.round(Math.max(...times)), refused };
};
