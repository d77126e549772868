/**
 * Sends what is no link yet, random but from a seed, to a relay in its own process, plain and in
 * TLS: broken heads, upgrades, bodies, pipelines and handshakes, cut anywhere, by peers that leave
 * in every way. Meanwhile a neighbour's messages must be delivered. It fails if the process ends,
 * contains a fault, logs an error, answers 5xx, or keeps a connection or a descriptor.
 */
import { readdirSync } from "node:fs";
import type { Socket } from "node:net";
import { setTimeout as wait } from "node:timers/promises";
import { addressFor, holdsWithin, metric } from "../edge/conversation.ts";
import { FRAMINGS, ODD } from "../edge/odd.ts";
import { frame, rawSocket, UPGRADE, writeAll } from "../raw-socket.ts";
import { type RelayProcess, startRelayProcess } from "../relay-process.ts";
import { percentile, RoundTrips } from "../round-trips.ts";

import { Random } from "./random.ts";

const PENDING = "pending_connections";
const PEERS = 8;
/** Connections of one peer that stay open while it goes on. */
const HELD = 30;
const ANSWER_MS = 150;
const GONE_MS = 30_000;
const NEIGHBOUR_PAUSE_MS = 20;
/** Its log's file, timers and threads may come and go. */
const SPARE_DESCRIPTORS = 5;

export interface WireReport {
  readonly tls: boolean;
  readonly connections: number;
  readonly answers: Readonly<Record<string, number>>;
  readonly roundTrips: number;
  readonly p99Ms: number;
  readonly faults: readonly string[];
}

const LINES = [
  "Expect: 100-continue",
  "Connection: close",
  "Connection: keep-alive, Upgrade",
  "Upgrade: h2c",
  "Host: y",
  "X: \0",
  "Sec-WebSocket-Version: 8",
  "Sec-WebSocket-Protocol: a, a",
  `X: ${"a".repeat(17_000)}`,
];
const REQUEST = "GET /api/v1/auth/config HTTP/1.1\r\nHost: x\r\n\r\n";
const HELLO = Buffer.from("16030100f8010000f40303", "hex");

/** Bytes of one connection, mostly nearly valid. */
export const wireBytes = (random: Random): Buffer => {
  const kind = random.below(10);
  if (kind === 0) return random.bytes(random.below(400));
  if (kind === 1) return Buffer.concat([HELLO, random.bytes(random.below(300))]);
  if (kind < 4) return mutated(random, Buffer.from(random.pick(ODD).bytes, "latin1"));
  const more = Array.from({ length: random.below(4) }, () =>
    random.chance(50) ? random.pick(FRAMINGS) : random.pick(LINES),
  );
  const head = `${UPGRADE}${more.map((line) => `${line}\r\n`).join("")}\r\n`;
  const before = REQUEST.repeat(random.chance(30) ? random.below(10) : 0);
  const after = random.pick([
    Buffer.alloc(0),
    random.bytes(random.below(40)),
    frame(random.pick([1, 8, 9, 15]), random.bytes(random.below(130))),
    Buffer.from("5\r\nhello\r\n0\r\n\r\n"),
    Buffer.from(REQUEST),
  ]);
  return mutated(random, Buffer.concat([Buffer.from(before + head, "latin1"), after]));
};

const mutated = (random: Random, bytes: Buffer): Buffer =>
  random.chance(40) ? random.mutate(bytes) : bytes;

export const fuzzWire = async (
  seed: number,
  seconds: number,
  tls: boolean,
): Promise<WireReport> => {
  const relay = await startRelayProcess(["--anonymous-requests-per-minute", "10000000"], { tls });
  const faults: string[] = [];
  const fault = (text: string): void => {
    if (faults.length < 20) faults.push(text);
  };
  const answers: Record<string, number> = {};
  const heard = (answer: string, bytes: Buffer): void => {
    const status = /^HTTP\/1\.1 (\d+) /.exec(answer)?.[1] ?? "none";
    answers[status] = (answers[status] ?? 0) + 1;
    if (/^HTTP\/1\.1 5/m.test(answer)) {
      fault(`answered ${answer.slice(0, 500)} to ${bytes.toString("base64")}`);
    }
  };
  try {
    const neighbour = await RoundTrips.open(relay, relay.account);
    const descriptors = () => readdirSync(`/proc/${relay.child.pid}/fd`).length;
    const before = { descriptors: descriptors(), pending: await metric(relay, PENDING) };
    const end = performance.now() + seconds * 1000;
    const goesOn = (): boolean => performance.now() < end && relay.isAlive() && faults.length === 0;
    let [connections, trips] = [0, 0];
    const times: number[] = [];
    const attack = async (peer: number): Promise<void> => {
      const random = new Random(seed * 1000 + peer + (tls ? 500 : 0));
      const held: Socket[] = [];
      while (goesOn()) {
        const localAddress = addressFor(connections++);
        const bytes = wireBytes(random);
        const socket = await throwBytes(relay, random, bytes, localAddress, heard);
        held.push(socket);
        if (random.chance(70) || held.length > HELD) leave(random, held.shift() as Socket);
      }
      for (const socket of held) socket.destroy();
    };
    const call = async (): Promise<void> => {
      while (goesOn()) {
        await neighbour.once();
        trips += 1;
        times.push(...neighbour.takeTimes());
        if (!neighbour.isOpen) fault("the neighbour's link was closed");
        await wait(NEIGHBOUR_PAUSE_MS);
      }
    };
    await Promise.all([call(), ...Array.from({ length: PEERS }, (_, peer) => attack(peer))]);
    if (neighbour.lost > 0) fault(`${neighbour.lost} of the neighbour's messages were lost`);
    if (neighbour.wrong > 0) fault(`${neighbour.wrong} of the neighbour's messages were changed`);
    if (!relay.isAlive()) fault(`the relay ended: ${relay.log.slice(-5).join("\n")}`);
    else await expectEmpty(relay, before, descriptors, fault);
    neighbour.close();
    for (const line of relay.log.filter(isError).slice(0, 5)) fault(`the relay's log: ${line}`);
    const p99Ms = Math.round(percentile(times, 99));
    return { tls, connections, answers, roundTrips: trips, p99Ms, faults };
  } finally {
    await relay.stop();
  }
};

const isError = (line: string): boolean => /"level":[56]0/.test(line) || !line.startsWith("{");

/** Only the neighbour's two links are left, and what this process kept before for its requests. */
const expectEmpty = async (
  relay: RelayProcess,
  before: { readonly descriptors: number; readonly pending: number },
  descriptors: () => number,
  fault: (text: string) => void,
): Promise<void> => {
  const faults = await metric(relay, "faults_total");
  if (faults > 0) fault(`${faults} faults were contained`);
  const isEmpty = async () =>
    (await metric(relay, PENDING)) <= before.pending &&
    (await metric(relay, "connections")) === 2 &&
    descriptors() <= before.descriptors + SPARE_DESCRIPTORS;
  if (await holdsWithin(GONE_MS, isEmpty)) return;
  const left = [await metric(relay, PENDING), await metric(relay, "connections"), descriptors()];
  fault(`left: ${left} connections without and with a link, and descriptors`);
};

/** Sends the bytes in one piece or in two, and notes what is answered. */
const throwBytes = async (
  relay: RelayProcess,
  random: Random,
  bytes: Buffer,
  localAddress: string,
  heard: (answer: string, bytes: Buffer) => void,
): Promise<Socket> => {
  // A ClientHello that is none, or half of one, is sent below TLS.
  const tls = relay.tls && random.chance(80);
  const socket = rawSocket({ port: relay.port, tls, localAddress });
  let answer = "";
  socket.on("data", (chunk: Buffer) => {
    if (answer.length < 20_000) answer += chunk.toString("latin1");
  });
  if (random.chance(10)) socket.pause();
  const at = random.chance(30) ? random.below(bytes.length + 1) : bytes.length;
  await writeAll(socket, bytes.subarray(0, at));
  if (at < bytes.length && random.chance(70)) {
    await wait(random.below(20));
    await writeAll(socket, bytes.subarray(at));
  }
  await holdsWithin(random.chance(80) ? ANSWER_MS : 0, () => answer !== "" || socket.destroyed);
  heard(answer, bytes);
  return socket;
};

/** In one of the ways in which peers leave. */
const leave = (random: Random, socket: Socket): void => {
  const kind = random.below(4);
  if (kind === 0) socket.end(() => socket.destroySoon());
  else if (kind === 1 && !("encrypted" in socket)) socket.resetAndDestroy();
  else socket.destroy();
};
