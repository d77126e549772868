/**
 * A fleet that connects, disconnects and calls for a given time, against a relay in its own
 * process. It fails if the relay's memory rises: not by its size, which the fleet determines, but
 * by the slope of its floor once all agents are connected. What counts is the memory left after a
 * full garbage collection: the size of the process alone says little, because V8 enlarges its heap
 * by tens of megabytes in the first half hour under load, and shrinks it in a quiet minute.
 */
import { setTimeout as wait } from "node:timers/promises";
import { Random } from "../fuzz/random.ts";
import { RawLink } from "../raw-link.ts";
import { type LeftBytes, type RelayProcess, startRelayProcess } from "../relay-process.ts";
import { RoundTrips } from "../round-trips.ts";

const MAKERS = 16;
const CONNECTING = 32;
/** Messages to agents per second, in all. */
const CALLS_PER_SECOND = 100;
/** Agents that reconnect, and clients that connect and disconnect, per second. */
const RECONNECTS_PER_SECOND = 10;
/** Each collects all garbage of the relay, which takes a tenth of a second with 10,000 agents. */
const SAMPLE_MS = 15_000;
/** Share of the time before the slope counts: code is compiled, agents reconnect at random. */
const WARM_UP = 0.25;
/**
 * The rest is divided into so many parts, each with a floor of memory, because calls are in
 * progress.
 */
const PARTS = 10;
/**
 * The permitted rise from the first part to the last, by the line through the floors. Objects: in
 * an hour, 8 bytes for each call or 80 for each reconnect. Outside V8's heap, the allocator decides
 * what it returns.
 */
const MOST_BYTES = { live: 2 * 2 ** 20, outside: 16 * 2 ** 20 };

interface Growth {
  readonly floorsMb: readonly number[];
  readonly risePerHourMb: number;
}

export interface SoakReport {
  readonly agents: number;
  readonly minutes: number;
  readonly calls: number;
  readonly reconnects: number;
  readonly lost: number;
  /** Objects in V8's heap, and their buffers. */
  readonly live: Growth;
  /** Memory of the process outside V8's heap. */
  readonly outside: Growth;
  /** Null if the relay ended before it could be read. */
  readonly peakRssMb: number | null;
  readonly faults: readonly string[];
}

export const soak = async (
  agents: number,
  minutes: number,
  seed: number,
  say: (text: string) => void,
): Promise<SoakReport> => {
  const relay = await startRelayProcess([
    ...["--requests-per-minute", "100000000", "--requests-at-once", "32"],
    ...["--agents-per-user", String(agents + 100)],
  ]);
  const faults: string[] = [];
  const counts = { calls: 0, reconnects: 0 };
  try {
    const random = new Random(seed);
    const made = await makeAgents(relay, agents);
    say(`${agents} agents made`);
    const fleet = await connectAll(relay, made);
    say(`${agents} agents connected`);
    const trips = await RoundTrips.open(relay, relay.account);
    const end = performance.now() + minutes * 60_000;
    const goesOn = (): boolean => performance.now() < end && faults.length === 0 && relay.isAlive();
    /** A relay that ends during the run is reported, with the measurements until then. */
    const repeat = async (work: () => Promise<void>): Promise<void> => {
      try {
        while (goesOn()) await work();
      } catch (error) {
        faults.push(String(error));
      }
    };
    const samples: LeftBytes[] = [];
    await Promise.all([
      repeat(async () => {
        const left = await relay.leftBytes();
        samples.push(left);
        say(
          `${inMb(left.live)} MB live, ${inMb(left.outside)} MB outside, ${inMb(relay.rssBytes())} MB in all; ${counts.calls} calls, ${counts.reconnects} returns`,
        );
        await wait(SAMPLE_MS);
      }),
      repeat(async () => {
        await Promise.all([trips.once(), wait(1000 / CALLS_PER_SECOND)]);
        trips.takeTimes();
        counts.calls += 1;
      }),
      repeat(async () => {
        await wait(1000 / RECONNECTS_PER_SECOND);
        await comeAndGo(relay, made, fleet, random);
        counts.reconnects += 1;
      }),
    ]);
    if (!relay.isAlive()) faults.push(`the relay ended: ${relay.log.slice(-5).join("\n")}`);
    if (trips.lost + trips.wrong > 0) faults.push(`${trips.lost} calls lost, ${trips.wrong} wrong`);
    trips.close();
    for (const link of fleet) link?.close();
    const { faults: leaks, ...growth } = judge(samples, minutes * 60);
    return {
      agents,
      minutes,
      ...counts,
      lost: trips.lost,
      ...growth,
      peakRssMb: relay.isAlive() ? inMb(relay.peakRssBytes()) : null,
      faults: [...faults, ...leaks],
    };
  } finally {
    await relay.stop();
  }
};

const inMb = (bytes: number): number => Math.round((bytes / 2 ** 20) * 10) / 10;

/** Whether memory rose after the warm-up; samples at equal intervals over `seconds`. */
export const judge = (
  samples: readonly LeftBytes[],
  seconds: number,
): Pick<SoakReport, "live" | "outside" | "faults"> => {
  const faults: string[] = [];
  const growth = (what: keyof LeftBytes): Growth => {
    const settled = samples.slice(Math.floor(samples.length * WARM_UP)).map((each) => each[what]);
    const floors = floorsOf(settled);
    if (floors.length < PARTS)
      faults.push(`${what}: ${floors.length} samples are too few to judge`);
    const rise = riseOf(floors);
    if (rise > MOST_BYTES[what]) faults.push(`${what}: memory rose by ${inMb(rise)} MB`);
    const perHour = (rise / (seconds * (1 - WARM_UP))) * 3600;
    return { floorsMb: floors.map(inMb), risePerHourMb: inMb(perHour) };
  };
  return { live: growth("live"), outside: growth("outside"), faults };
};

const floorsOf = (samples: readonly number[]): number[] => {
  const size = Math.max(1, Math.floor(samples.length / PARTS));
  const floors: number[] = [];
  for (let at = 0; at + size <= samples.length && floors.length < PARTS; at += size) {
    floors.push(Math.min(...samples.slice(at, at + size)));
  }
  return floors;
};

/** By the line through the floors, from the first to the last. */
const riseOf = (floors: readonly number[]): number => {
  const middle = (floors.length - 1) / 2;
  const mean = floors.reduce((sum, floor) => sum + floor, 0) / Math.max(1, floors.length);
  let above = 0;
  let below = 0;
  for (const [i, floor] of floors.entries()) {
    above += (i - middle) * (floor - mean);
    below += (i - middle) ** 2;
  }
  return below === 0 ? 0 : (above / below) * (floors.length - 1);
};

interface Made {
  readonly agent_id: string;
  readonly api_token: string;
}

const makeAgents = async (relay: RelayProcess, count: number): Promise<Made[]> => {
  const made: Made[] = [];
  let next = 0;
  const make = async (): Promise<void> => {
    while (next < count) {
      const name = `agent ${next++}`;
      const answer = await relay.api("POST", "/agents", { name }, relay.account);
      if (answer.status !== 201) throw new Error(`no agent: ${JSON.stringify(answer.body)}`);
      made.push(answer.body);
    }
  };
  await Promise.all(Array.from({ length: MAKERS }, make));
  return made;
};

const connectAgent = (relay: RelayProcess, { agent_id, api_token }: Made): Promise<RawLink> =>
  RawLink.open({ port: relay.port, auth: { client_type: "agent", agent_id, api_token } });

const connectAll = async (relay: RelayProcess, made: readonly Made[]) => {
  const fleet: (RawLink | null)[] = made.map(() => null);
  let next = 0;
  const work = async (): Promise<void> => {
    while (next < made.length) {
      const i = next++;
      fleet[i] = await connectAgent(relay, made[i] as Made);
    }
  };
  await Promise.all(Array.from({ length: CONNECTING }, work));
  return fleet;
};

/**
 * One agent disconnects and reconnects; occasionally a client reads the list and connects for a
 * moment.
 */
const comeAndGo = async (
  relay: RelayProcess,
  made: readonly Made[],
  fleet: (RawLink | null)[],
  random: Random,
): Promise<void> => {
  const i = random.below(made.length);
  fleet[i]?.close();
  fleet[i] = await connectAgent(relay, made[i] as Made).catch(() => null);
  if (random.chance(90)) return;
  await relay.api("GET", "/agents?online=true&limit=10", undefined, relay.account);
  const auth = { client_type: "client", api_token: relay.account };
  const client = await RawLink.open({ port: relay.port, auth }).catch(() => null);
  client?.close();
};
