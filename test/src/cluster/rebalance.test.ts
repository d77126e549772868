/**
 * `blindrelay-server rebalance` on a node that has all links, with agents and calls of the SDKs.
 */
import { spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { createConnection } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { setTimeout as sleep } from "node:timers/promises";
import { type RunningAgent, startAgent } from "@blindrelay/agent-sdk/node";
import { type Client, connect } from "@blindrelay/client-sdk/node";
import { makeToken } from "@blindrelay/protocol";
import { NATS_URL, noCluster, postgres } from "@blindrelay/relay-server/testing";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { MAIN, type RelayNode, type Relays, startRelays } from "./relays.ts";

const AGENTS = 18;
const CLIENTS = 2;
const LINKS = AGENTS + CLIENTS;

const rebalance = async (data: string, share: string, cwd = process.cwd()) => {
  const args = [MAIN, "rebalance", "--share", share, "--data", data, "--json"];
  const child = spawn(process.execPath, args, { cwd, stdio: ["ignore", "pipe", "pipe"] });
  const [out, err, [code]] = await Promise.all([
    text(child.stdout),
    text(child.stderr),
    once(child, "exit"),
  ]);
  return { code, err, made: out === "" ? null : JSON.parse(out) };
};

describe.skipIf(noCluster)("three nodes, with all links on the first", () => {
  const engine = postgres();
  const folder = mkdtempSync(join(tmpdir(), "blindrelay-agents-"));
  let relays: Relays;
  let urls: string[];
  const agents: RunningAgent[] = [];
  const clients: Client[] = [];
  const keys: { id: string; agentToken: string }[] = [];

  const node = (place: number) => relays.nodes[place] as RelayNode;
  const linksOf = async (place: number): Promise<number> => {
    const metrics = await (await fetch(node(place).metricsUrl)).text();
    const counts = metrics.matchAll(/^blindrelay_connections\{type="(client|agent)"\} (\d+)/gm);
    return [...counts].reduce((sum, [, , count]) => sum + Number(count), 0);
  };
  const links = () => Promise.all([0, 1, 2].map(linksOf));
  const isReady = async (place: number) =>
    (await fetch(`${node(place).url}/health/ready`)).status === 200;

  beforeAll(async () => {
    const location = await engine.prepare();
    if (location.engine !== "postgres") throw new Error("a cluster needs PostgreSQL");
    relays = await startRelays(3, location.url, NATS_URL);
    urls = [0, 1, 2].map((place) => node(place).url);
    relays.balancer.targets = urls.slice(0, 1);
    await sleep(300); // until the balancer has looked
    const { accountToken } = relays;
    for (let i = 0; i < AGENTS; i++) {
      const answer = await fetch(`${urls[0]}/api/v1/agents`, {
        method: "POST",
        headers: { "content-type": "application/json", authorization: `Bearer ${accountToken}` },
        body: JSON.stringify({ name: `pump ${i}` }),
      });
      const made = (await answer.json()) as { agent_id: string; api_token: string };
      const agentToken = makeToken("e2e", randomBytes(32));
      keys.push({ id: made.agent_id, agentToken });
      agents.push(
        await startAgent({
          url: relays.balancer.url,
          agentId: made.agent_id,
          relayToken: made.api_token,
          agentToken,
          stateDir: join(folder, made.agent_id),
          log: () => undefined,
          program: (agent) => agent.handle("echo", (params) => params),
        }),
      );
    }
    await Promise.all(agents.map((agent) => agent.online()));
    for (let i = 0; i < CLIENTS; i++) {
      clients.push(await connect({ url: relays.balancer.url, accountToken, presence: true }));
    }
  });
  afterAll(async () => {
    for (const client of clients) client.close();
    await Promise.all(agents.map((agent) => agent.stop()));
    await relays?.close();
    await engine.remove();
    rmSync(folder, { recursive: true, force: true });
  });

  /** Calls all agents repeatedly until stopped; returns how each call ended. */
  const callAll = () => {
    let stopped = false;
    const outcomes: unknown[] = [];
    const workers = keys.map(async ({ id, agentToken }, at) => {
      const agent = (clients[at % CLIENTS] as Client).agent(id, agentToken);
      for (let call = 0; !stopped; call++) {
        const outcome = await agent.call("echo", { call }).then(
          (result) => ((result as { call: number }).call === call ? "OK" : "WRONG"),
          (error) => error.code ?? error,
        );
        outcomes.push(outcome);
        await sleep(50);
      }
    });
    return async () => {
      stopped = true;
      await Promise.all(workers);
      return outcomes;
    };
  };

  test("about the share moves to the others, no call is lost, and the node is ready again", async () => {
    expect(await links()).toEqual([LINKS, 0, 0]);
    relays.balancer.targets = urls;
    const offline: string[] = [];
    const off = clients[0]?.on("presence", ({ agentId, online }) => {
      if (!online) offline.push(agentId);
    });
    const stop = callAll();
    const running = rebalance(node(0).data, "60%");
    await expect.poll(() => isReady(0)).toBe(false);
    const second = await rebalance(node(0).data, "10%");
    expect([second.code, second.err]).toEqual([5, expect.stringContaining("already")]);
    const { code, err, made } = await running;
    expect([code, err]).toEqual([0, ""]);
    expect(made).toEqual({ links: LINKS, asked: 12, moved: 12 });
    const outcomes = await stop();
    off?.();
    expect(outcomes.length).toBeGreaterThan(10 * AGENTS);
    expect(outcomes.filter((outcome) => outcome !== "OK")).toEqual([]);
    expect(offline).toEqual([]);
    const [first, ...others] = await links();
    expect(first).toBe(LINKS - 12);
    expect(others.reduce((sum, count) => sum + count)).toBe(12);
    expect(await isReady(0)).toBe(true);
  });

  test("a question that is none ends only its connection, and anything but a share is refused", async () => {
    for (const question of ["nonsense\n", '{"percent":101}\n', "x".repeat(1000)]) {
      const socket = createConnection(join(node(0).data, "node.sock"));
      socket.write(question);
      expect(await text(socket)).toBe("");
    }
    for (const share of ["0%", "101%", "30", "30.5%", "-1%", "all"]) {
      const { code, err } = await rebalance(node(0).data, share);
      expect([share, code]).toEqual([share, 2]);
      expect(err).toContain("1% to 100%");
    }
    expect(await isReady(0)).toBe(true);
  });

  test("a node without a ready one beside it keeps its links", async () => {
    const before = await linksOf(0);
    relays.balancer.targets = urls.slice(0, 1);
    await sleep(300);
    await Promise.all([relays.end(1, "SIGTERM"), relays.end(2, "SIGTERM")]);
    relays.balancer.targets = urls.slice(0, 1);
    const { code, err } = await rebalance(node(0).data, "30%");
    expect([code, err]).toEqual([5, expect.stringContaining("no other node")]);
    expect(await isReady(0)).toBe(true);
    expect(await linksOf(0)).toBeGreaterThanOrEqual(before);
  });

  test("no node on the folder: exit 4, also after a crash left the socket behind", async () => {
    const { data } = node(0);
    await relays.end(0, "SIGKILL");
    for (const dir of [data, folder, join(folder, "nowhere"), join(folder, "long".repeat(50))]) {
      const { code, err } = await rebalance(dir, "30%");
      expect([dir, code]).toEqual([dir, 4]);
      expect(err).toContain("no node of a cluster runs on");
    }
  });
});
