import { randomBytes } from "node:crypto";
import { mkdtemp, rm } from "node:fs/promises";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { relayUrl } from "@blindrelay/client-sdk/node";
import { makeToken } from "@blindrelay/protocol";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { KINDS } from "../devices/kinds.ts";
import { Tally } from "../report/tally.ts";
import { type CallerOptions, callAll } from "./caller.ts";
import { type FleetChild, startFleet } from "./fleet-child.ts";
import { type RelayChild, startRelay } from "./relay-process.ts";
import { logIn, type MadeAgent, makeAgents } from "./rest.ts";

const never = new AbortController().signal;

function optionsFor(
  url: string,
  accountToken: string,
  agents: CallerOptions["agents"],
): CallerOptions {
  const limits = { callsPerAgent: 4, concurrency: 8, callTimeoutMs: 10_000 };
  return { url, accountToken, agents, roles: KINDS, ...limits, signal: never };
}

describe("a caller", () => {
  let folder = "";
  let relay: RelayChild;
  let fleet: FleetChild;
  let accountToken = "";
  let agents: MadeAgent[] = [];

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), "blindrelay-test-"));
    relay = await startRelay(folder, never);
    const account = await logIn(relay, never);
    accountToken = account.accountToken;
    agents = await makeAgents(relay, account.accessToken, 9, 1, never, () => {});
    fleet = startFleet({
      url: relayUrl(relay.url),
      connectionsPerSecond: 1000,
      seed: 1,
      programs: KINDS.map(({ name }) => `kind:${name}`),
      agents: agents.map((agent) => ({ ...agent, program: agent.kind })),
    });
    await fleet.untilConnected(agents.length);
  });

  afterAll(async () => {
    await Promise.all([fleet?.stop(), relay?.stop()]);
    await rm(folder, { recursive: true, force: true });
  });

  test("counts every correct answer once, by kind", async () => {
    const tally = new Tally(() => 0);
    await callAll(optionsFor(relay.url, accountToken, agents), tally);
    expect(tally.failures()).toEqual([]);
    expect([tally.sent, tally.ok, tally.failed]).toEqual([36, 36, 0]);
    const kinds = [...tally.kinds].map(([name, { agents, calls, ok }]) => [
      name,
      agents,
      calls,
      ok,
    ]);
    expect(kinds).toEqual([
      ["sensor", 3, 12, 12],
      ["valve", 3, 12, 12],
      ["echo", 3, 12, 12],
    ]);
    const { first, later } = tally.histogram();
    expect(first.reduce((sum, count) => sum + count)).toBe(9);
    expect(later.reduce((sum, count) => sum + count)).toBe(27);
  });

  test("finds answers that are verified but wrong", async () => {
    const tally = new Tally(() => 0);
    // Under another name, a sensor's measurements do not match any sensor of that name.
    const renamed = agents.map((agent) => ({ ...agent, name: `not ${agent.name}` }));
    await callAll(optionsFor(relay.url, accountToken, renamed), tally);
    expect(tally.failures()).toMatchObject([{ code: "WRONG_ANSWER", count: 12 }]);
    expect(tally.ok).toBe(24);
  });

  test("gets no answer with another secret, and reports that by code", async () => {
    const tally = new Tally(() => 0);
    const stranger = { ...(agents[0] as MadeAgent), agentToken: makeToken("e2e", randomBytes(32)) };
    const options = optionsFor(relay.url, accountToken, [stranger]);
    await callAll({ ...options, callsPerAgent: 1, callTimeoutMs: 300 }, tally);
    expect(tally.failures()).toMatchObject([{ code: "TIMED_OUT", count: 1 }]);
  });

  test("makes no further call once it is stopped, and counts those in flight", async () => {
    const tally = new Tally(() => 0);
    const stop = new AbortController();
    const options = optionsFor(relay.url, accountToken, agents);
    const calling = callAll({ ...options, callsPerAgent: 1000, signal: stop.signal }, tally);
    while (tally.ok < 20) await new Promise((resolve) => setImmediate(resolve));
    stop.abort(new Error("enough"));
    await calling;
    expect(tally.ok).toBeGreaterThanOrEqual(20);
    expect(tally.ok + tally.failed).toBe(tally.sent);
    expect(tally.sent).toBeLessThan(9000);
  });
});

describe("a caller without a relay", () => {
  const agents = [
    { id: "echo-1", name: "echo", kind: 2, agentToken: makeToken("e2e", randomBytes(32)) },
  ];
  const accountToken = makeToken("account", randomBytes(32));

  test("fails at once if nobody listens", async () => {
    const server = createServer().listen(0, "127.0.0.1");
    await new Promise((resolve) => server.once("listening", resolve));
    const { port } = server.address() as { port: number };
    await new Promise((resolve) => server.close(resolve));
    const tally = new Tally(() => 0);
    const calling = callAll(optionsFor(`http://127.0.0.1:${port}`, accountToken, agents), tally);
    await expect(calling).rejects.toMatchObject({ code: "UNREACHABLE" });
    expect(tally.sent).toBe(0);
  });

  test("does not wait for one that never answers, once it is stopped", async () => {
    const accepted = Promise.withResolvers<void>();
    const server = createServer((socket) => {
      socket.on("error", () => {});
      accepted.resolve();
    }).listen(0, "127.0.0.1");
    await new Promise((resolve) => server.once("listening", resolve));
    const { port } = server.address() as { port: number };
    const stop = new AbortController();
    const tally = new Tally(() => 0);
    const options = optionsFor(`http://127.0.0.1:${port}`, accountToken, agents);
    const calling = callAll({ ...options, signal: stop.signal }, tally);
    await accepted.promise;
    stop.abort(new Error("enough"));
    await expect(calling).rejects.toThrow("enough");
    expect(tally.sent).toBe(0);
    server.close();
  });
});
