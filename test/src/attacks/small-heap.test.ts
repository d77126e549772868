/** A fleet and its comings and goings in a heap that is a fraction of what the unit gives. */
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { addressFor, holdsWithin, metric } from "../overload/edge/conversation.ts";
import { RawLink } from "../overload/raw-link.ts";
import { rawSocket, UPGRADE } from "../overload/raw-socket.ts";
import { type RelayProcess, startRelayProcess } from "../overload/relay-process.ts";
import { RoundTrips } from "../overload/round-trips.ts";

const HEAP_MB = 48;
const AGENTS = 800;
const AT_ONCE = 50;
const CONNECTIONS = 1500;
/** What those may leave, after all garbage is collected: about 1 KB each. */
const LEFT_BYTES = CONNECTIONS * 1024;

let folder: string;
let relay: RelayProcess;
let neighbour: RoundTrips;
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "blindrelay-small-heap-"));
  const node = join(folder, "node");
  const script = `#!/bin/sh\nexec "${process.execPath}" --max-old-space-size=${HEAP_MB} "$@"\n`;
  writeFileSync(node, script, { mode: 0o755 });
  const limits = ["--requests-per-minute", "100000000", "--requests-at-once", String(AT_ONCE)];
  relay = await startRelayProcess([...limits, "--agents-per-user", String(AGENTS + 10)], { node });
  neighbour = await RoundTrips.open(relay, relay.account);
});
afterAll(async () => {
  neighbour.close();
  await relay.stop();
  rmSync(folder, { recursive: true });
});

/** Does it `count` times, `AT_ONCE` at a time. */
const many = async <T>(count: number, work: (n: number) => Promise<T>): Promise<T[]> => {
  const done: T[] = [];
  while (done.length < count) {
    const size = Math.min(AT_ONCE, count - done.length);
    const some = Array.from({ length: size }, (_, i) => work(done.length + i));
    done.push(...(await Promise.all(some)));
  }
  return done;
};

const expectWell = async (): Promise<void> => {
  await neighbour.once();
  expect([neighbour.lost, neighbour.wrong, relay.isAlive()]).toEqual([0, 0, true]);
  expect(await metric(relay, "faults_total")).toBe(0);
};

test(`${AGENTS} agents in a heap of ${HEAP_MB} MB, which all leave at once and come back`, async () => {
  const made = await many(AGENTS, async (n) => {
    const answer = await relay.api("POST", "/agents", { name: `agent ${n}` }, relay.account);
    expect(answer.status).toBe(201);
    return answer.body as { agent_id: string; api_token: string };
  });
  const connect = () =>
    many(AGENTS, (n) => {
      const { agent_id, api_token } = made[n] ?? {};
      const auth = { client_type: "agent", agent_id, api_token };
      return RawLink.open({ port: relay.port, localAddress: addressFor(n), auth });
    });
  const online = async () => (await metric(relay, "agents_online")) - 1; // the neighbour's
  for (let round = 0; round < 2; round++) {
    const links = await connect();
    expect(await online()).toBe(AGENTS);
    await expectWell();
    for (const link of links) link.socket.resetAndDestroy();
    expect(await holdsWithin(20_000, async () => (await online()) === 0)).toBe(true);
  }
  await expectWell();
});

test(`${CONNECTIONS} connections that come and go in whatever state leave nothing`, async () => {
  const auth = { client_type: "client", api_token: relay.account };
  const kept = await metric(relay, "pending_connections");
  const comeAndGo = async (n: number): Promise<void> => {
    const peer = { port: relay.port, localAddress: addressFor(n) };
    if (n % 4 === 0) {
      const link = await RawLink.open({ ...peer, auth });
      if (n % 8 === 0) link.socket.resetAndDestroy();
      else link.close();
      return;
    }
    const socket = rawSocket(peer);
    const says = ["", "GET / HTTP/1.1\r\nHo", UPGRADE, `${UPGRADE}\r\n`][n % 4] ?? "";
    await new Promise((resolve) => socket.write(says, resolve));
    if (n % 3 === 0) socket.resetAndDestroy();
    else socket.destroy();
  };
  const descriptors = () => readdirSync(`/proc/${relay.child.pid}/fd`).length;
  /**
   * Once all of them are gone for the relay, too, but those that this process keeps for requests.
   */
  const settled = async () => {
    const isGone = async () => (await metric(relay, "pending_connections")) <= kept + AT_ONCE;
    expect(await holdsWithin(60_000, isGone)).toBe(true);
    return { files: descriptors(), live: (await relay.leftBytes()).live };
  };
  await many(600, comeAndGo); // all is compiled, and caches are full
  const before = await settled();
  await many(CONNECTIONS, comeAndGo);
  const after = await settled();
  expect(after.files - before.files).toBeLessThan(CONNECTIONS / 20);
  expect(after.live - before.live).toBeLessThan(LEFT_BYTES);
  await expectWell();
});
