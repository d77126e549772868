/**
 * Sends frames and requests, random but from a seed, to a relay in its own process, for a while.
 * Meanwhile another user's messages must be delivered. It fails if the process ends, reports an
 * internal error (an answer 500, an error in its log), loses or changes one of those messages, or
 * needs more memory than the limit.
 */
import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { setTimeout as wait } from "node:timers/promises";
import { frame, upgraded, writeAll } from "../raw-socket.ts";
import { MEMORY_LIMIT_BYTES, type RelayProcess, startRelayProcess } from "../relay-process.ts";
import { percentile, RoundTrips } from "../round-trips.ts";
import { frames } from "./messages.ts";
import { Random } from "./random.ts";
import { request } from "./requests.ts";

/** Concurrent connections that send frames, and that send requests. */
const LINKS = 6;
const REQUESTERS = 3;
const NEIGHBOUR_PAUSE_MS = 20;
/** Requests sent on one connection before the next. */
const REQUESTS_EACH = 20;
const ANSWER_MS = 500;
/** The last inputs of each connection to keep, for an investigation. */
const KEPT = 20;

export interface FuzzReport {
  readonly seed: number;
  readonly seconds: number;
  readonly frames: number;
  readonly requests: number;
  readonly roundTrips: number;
  readonly p99Ms: number;
  readonly peakRssMb: number;
  readonly faults: readonly string[];
  /** The last inputs of each connection, as base64. */
  readonly last: readonly (readonly string[])[];
}

/**
 * The person whose account the fuzzer uses; its tokens are valid, so that it passes authentication.
 */
interface Victim {
  readonly tokens: readonly string[];
  readonly auths: readonly Buffer[];
  readonly agentIds: readonly string[];
}

export const fuzz = async (seed: number, seconds: number): Promise<FuzzReport> => {
  const relay = await startRelayProcess([
    ...["--requests-per-minute", "10000000", "--anonymous-requests-per-minute", "10000000"],
    ...["--agents-per-user", "500"],
  ]);
  const faults: string[] = [];
  const fault = (text: string): void => {
    if (faults.length < 20) faults.push(text);
  };
  const counts = { frames: 0, requests: 0, trips: 0 };
  const last: string[][] = [];
  const times: number[] = [];
  try {
    const victim = await makeVictim(relay);
    const neighbour = await RoundTrips.open(relay, await makeUser(relay, "neighbour"));
    const end = performance.now() + seconds * 1000;
    const goesOn = (): boolean => performance.now() < end && relay.isAlive() && faults.length === 0;
    const noteFrom = (): ((bytes: Buffer) => void) => {
      const kept: string[] = [];
      last.push(kept);
      return (bytes) => {
        kept.push(bytes.subarray(0, 4096).toString("base64"));
        if (kept.length > KEPT) kept.shift();
      };
    };
    const jobs = [
      ...Array.from({ length: LINKS }, async (_, i) => {
        const random = new Random(seed * 1000 + i);
        const note = noteFrom();
        while (goesOn()) counts.frames += await throwFrames(relay, random, victim, note, goesOn);
      }),
      ...Array.from({ length: REQUESTERS }, async (_, i) => {
        const random = new Random(seed * 1000 + 500 + i);
        const note = noteFrom();
        while (goesOn()) counts.requests += await throwRequests(relay, random, victim, note, fault);
      }),
      (async () => {
        while (goesOn()) {
          await neighbour.once();
          counts.trips += 1;
          times.push(...neighbour.takeTimes());
          if (!neighbour.isOpen) fault("the neighbour's link was closed");
          await wait(NEIGHBOUR_PAUSE_MS);
        }
      })(),
    ];
    await Promise.all(jobs);
    if (neighbour.lost > 0) fault(`${neighbour.lost} of the neighbour's messages were lost`);
    if (neighbour.wrong > 0) fault(`${neighbour.wrong} of the neighbour's messages were changed`);
    neighbour.close();
    if (!relay.isAlive()) fault(`the relay ended: ${relay.log.slice(-5).join("\n")}`);
    for (const line of relay.log.filter(isError).slice(0, 5)) fault(`the relay's log: ${line}`);
    const peakRss = relay.isAlive() ? relay.peakRssBytes() : 0;
    if (peakRss > MEMORY_LIMIT_BYTES) fault(`the relay had ${Math.round(peakRss / 2 ** 20)} MB`);
    return {
      seed,
      seconds,
      frames: counts.frames,
      requests: counts.requests,
      roundTrips: counts.trips,
      p99Ms: Math.round(percentile(times, 99)),
      peakRssMb: Math.round(peakRss / 2 ** 20),
      faults,
      last: faults.length === 0 ? [] : last,
    };
  } finally {
    await relay.stop();
  }
};

const isError = (line: string): boolean => /"level":[56]0/.test(line) || !line.startsWith("{");

const makeUser = async (relay: RelayProcess, username: string): Promise<string> => {
  const password = "another horse battery";
  const body = { username, password, role: "user" };
  const made = await relay.api("POST", "/admin/users", body, relay.account);
  if (made.status !== 201) throw new Error(`no user: ${JSON.stringify(made.body)}`);
  const login = await relay.api("POST", "/auth/login", { username, password });
  return login.body.user.api_token;
};

const makeVictim = async (relay: RelayProcess): Promise<Victim> => {
  const account = await makeUser(relay, "victim");
  const agentIds: string[] = [];
  const auths = [
    frame(1, JSON.stringify({ type: "auth", client_type: "client", api_token: account })),
  ];
  const tokens = [account, "acct_x", ""];
  for (let i = 0; i < 3; i++) {
    const { agent_id, api_token } = (await relay.api("POST", "/agents", { name: "v" }, account))
      .body;
    agentIds.push(agent_id);
    tokens.push(api_token);
    const auth = { type: "auth", client_type: "agent", api_token, agent_id };
    auths.push(frame(1, JSON.stringify(auth)));
  }
  const session = await relay.api("POST", "/auth/session", {}, account);
  tokens.push(session.body.session_token);
  return { tokens, auths, agentIds };
};

/** One link's life: usually it authenticates, then sends random messages. Returns how many. */
const throwFrames = async (
  relay: RelayProcess,
  random: Random,
  victim: Victim,
  note: (bytes: Buffer) => void,
  goesOn: () => boolean,
): Promise<number> => {
  // Failures lock an address out, and loopback has many.
  const address = `127.0.${1 + random.below(200)}.${1 + random.below(200)}`;
  const socket = await upgraded({ port: relay.port, localAddress: address }).catch(() => null);
  if (socket === null) return 0;
  if (random.chance(80)) await writeAll(socket, random.pick(victim.auths));
  let count = 0;
  for (let left = 1 + random.below(400); left > 0 && goesOn(); left--) {
    const bytes = frames(random, victim.agentIds);
    note(bytes);
    if (!(await writeInPieces(socket, random, bytes))) break;
    count += 1;
  }
  socket.destroy();
  return count;
};

/** Segments end anywhere. */
const writeInPieces = async (socket: Socket, random: Random, bytes: Buffer): Promise<boolean> => {
  if (random.chance(80)) return writeAll(socket, bytes);
  const at = random.below(bytes.length + 1);
  if (!(await writeAll(socket, bytes.subarray(0, at)))) return false;
  return writeAll(socket, bytes.subarray(at));
};

/** Requests on their own connections; each is answered, or its connection closed. */
const throwRequests = async (
  relay: RelayProcess,
  random: Random,
  victim: Victim,
  note: (bytes: Buffer) => void,
  fault: (text: string) => void,
): Promise<number> => {
  const localAddress = `127.0.${1 + random.below(200)}.${1 + random.below(200)}`;
  const socket = connect({ port: relay.port, host: "127.0.0.1", localAddress });
  socket.on("error", () => undefined);
  let answers = "";
  socket.on("data", (chunk: Buffer) => {
    answers = (answers + chunk.toString("latin1")).slice(-100_000);
    const fatal = /HTTP\/1\.1 (500|502|504) [\s\S]{0,600}/.exec(answers);
    if (fatal !== null) fault(`answered ${fatal[0]}`);
  });
  let count = 0;
  while (count < REQUESTS_EACH && socket.writable) {
    const bytes = request(random, victim.tokens, victim.agentIds);
    note(bytes);
    if (!(await writeAll(socket, bytes))) break;
    count += 1;
    // A malformed request may leave the relay waiting for more: the connection is abandoned.
    const given = new AbortController();
    const { signal } = given;
    const answered = await Promise.race([
      once(socket, "data", { signal }).then(() => true),
      once(socket, "close", { signal }).then(() => false),
      wait(ANSWER_MS, false, { signal }),
    ]).catch(() => false);
    given.abort();
    if (!answered) break;
  }
  socket.destroy();
  return count;
};
