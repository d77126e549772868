/**
 * A cluster that grows from one node to three and shrinks to one, with agents and calls of the
 * SDKs; and `blindrelay-server rebalance` on the node that has all links then.
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

describe.skipIf(noCluster)("one node, then three, then one", () => {
  const engine = postgres();
  const folder = mkdtempSync(join(tmpdir(), "blindrelay-agents-"));
  let relays: Relays;
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
  /** Agents that a client was told are offline; those that are still, and all. */
  const offline = new Set<string>();
  const wereOffline: string[] = [];
  const isReady = async (place: number) =>
    (await fetch(`${node(place).url}/health/ready`)).status === 200;

  beforeAll(async () => {
    const location = await engine.prepare();
    if (location.engine !== "postgres") throw new Error("a cluster needs PostgreSQL");
    relays = await startRelays(1, location.url, NATS_URL);
    await sleep(300); // until the balancer has looked
    const { accountToken } = relays;
    for (let i = 0; i < AGENTS; i++) {
      const answer = await fetch(`${node(0).url}/api/v1/agents`, {
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
    clients[0]?.on("presence", ({ agentId, online }) => {
      if (online) offline.delete(agentId);
      else offline.add(agentId);
      if (!online) wereOffline.push(agentId);
    });
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
    const stop = callAll();
    await Promise.all([relays.start(1), relays.start(2)]);
    expect(await links()).toEqual([LINKS, 0, 0]);
    await sleep(300);
    const running = rebalance(node(0).data, "60%");
    await expect.poll(() => isReady(0)).toBe(false);
    const second = await rebalance(node(0).data, "10%");
    expect([second.code, second.err]).toEqual([5, expect.stringContaining("already")]);
    const { code, err, made } = await running;
    expect([code, err]).toEqual([0, ""]);
    expect(made).toEqual({ links: LINKS, asked: 12, moved: 12 });
    const outcomes = await stop();
    expect(outcomes.length).toBeGreaterThan(10 * AGENTS);
    expect(outcomes.filter((outcome) => outcome !== "OK")).toEqual([]);
    expect(wereOffline).toEqual([]);
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

  test("when two of three nodes end at once, no call is lost, and nobody stays offline", async () => {
    const stop = callAll();
    await sleep(300);
    const codes = await Promise.all([relays.end(1, "SIGTERM"), relays.end(2, "SIGTERM")]);
    expect(codes).toEqual([0, 0]);
    await expect.poll(() => linksOf(0)).toBe(LINKS);
    await sleep(300);
    const outcomes = await stop();
    expect(outcomes.length).toBeGreaterThan(10 * AGENTS);
    expect(outcomes.filter((outcome) => outcome !== "OK")).toEqual([]);
    expect([[...offline], wereOffline]).toEqual([[], []]);
  });

  test("a node without a ready one beside it keeps its links", async () => {
    const { code, err } = await rebalance(node(0).data, "30%");
    expect([code, err]).toEqual([5, expect.stringContaining("no other node")]);
    expect(await isReady(0)).toBe(true);
    expect(await linksOf(0)).toBe(LINKS);
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
