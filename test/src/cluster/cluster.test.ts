/**
 * Three relay processes behind a balancer, with agents and a client of the SDKs: each node in turn
 * is restarted, killed and frozen during calls.
 */
import { randomBytes } from "node:crypto";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { type RunningAgent, startAgent } from "@blindrelay/agent-sdk/node";
import { CallError, type Client, connect } from "@blindrelay/client-sdk/node";
import { makeToken } from "@blindrelay/protocol";
import { NATS_URL, noCluster, postgres } from "@blindrelay/relay-server/testing";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type Relays, startRelays } from "./relays.ts";

const AGENTS = 6;
const CALL_TIMEOUT_MS = 60_000;

// A node that is killed: `npm run rolling`, which a test in test/src/attacks runs.
describe.skipIf(noCluster)("three nodes", () => {
  const engine = postgres();
  const folder = mkdtempSync(join(tmpdir(), "blindrelay-agents-"));
  let relays: Relays;
  let client: Client;
  let agents: RunningAgent[];
  const ids: string[] = [];
  const secrets: string[] = [];
  /** How often each call was executed, by its number. */
  const runs = new Map<number, number>();
  let lastCall = 0;

  beforeAll(async () => {
    const location = await engine.prepare();
    if (location.engine !== "postgres") throw new Error("a cluster needs PostgreSQL");
    relays = await startRelays(3, location.url, NATS_URL);
    agents = [];
    for (let i = 0; i < AGENTS; i += 1) agents.push(await addAgent(i));
    await Promise.all(agents.map((agent) => agent.online()));
    client = await connect({
      url: relays.balancer.url,
      accountToken: relays.accountToken,
      presence: true,
    });
  });
  afterAll(async () => {
    client?.close();
    await Promise.all((agents ?? []).map((agent) => agent.stop()));
    await relays?.close();
    await engine.remove();
    rmSync(folder, { recursive: true, force: true });
  });

  const addAgent = async (i: number): Promise<RunningAgent> => {
    const answer = await fetch(`${relays.nodes[0]?.url}/api/v1/agents`, {
      method: "POST",
      headers: {
        "content-type": "application/json",
        authorization: `Bearer ${relays.accountToken}`,
      },
      body: JSON.stringify({ name: `pump ${i}` }),
    });
    const made = (await answer.json()) as { agent_id: string; api_token: string };
    const agentToken = makeToken("e2e", randomBytes(32));
    ids.push(made.agent_id);
    secrets.push(agentToken);
    return startAgent({
      url: relays.balancer.url,
      agentId: made.agent_id,
      relayToken: made.api_token,
      agentToken,
      stateDir: join(folder, made.agent_id),
      log: () => undefined,
      program: (agent) => {
        agent.handle("run", (params) => {
          const { call } = params as { call: number };
          runs.set(call, (runs.get(call) ?? 0) + 1);
          return call;
        });
      },
    });
  };

  /** Calls all agents repeatedly until stopped; returns how each call ended. */
  const callAll = () => {
    let stopped = false;
    const outcomes: { call: number; code: string; retryable: boolean; ms: number }[] = [];
    const workers = ids.map(async (id, at) => {
      const agent = client.agent(id, secrets[at] as string);
      while (!stopped) {
        lastCall += 1;
        const call = lastCall;
        const startedMs = performance.now();
        const ended = await agent.call("run", { call }, { timeoutMs: CALL_TIMEOUT_MS }).then(
          (result) => ({ code: result === call ? "OK" : "WRONG", retryable: false }),
          (error: unknown) => {
            if (!(error instanceof CallError)) throw error;
            return { code: error.code as string, retryable: error.retryable };
          },
        );
        outcomes.push({ call, ...ended, ms: performance.now() - startedMs });
        await sleep(20);
      }
    });
    return {
      outcomes,
      stop: async () => {
        stopped = true;
        await Promise.all(workers);
        return outcomes;
      },
    };
  };
  const tally = (outcomes: { code: string }[]) => {
    const counts: Record<string, number> = {};
    for (const { code } of outcomes) counts[code] = (counts[code] ?? 0) + 1;
    return counts;
  };
  /** Over all nodes that answer. */
  const agentsOnline = async (): Promise<number> => {
    const counts = await Promise.all(
      relays.nodes.map(async (node) => {
        if (node === null) return 0;
        const answer = await fetch(`${node.url}/api/v1/admin/stats`, {
          headers: { authorization: `Bearer ${relays.accountToken}` },
        });
        return ((await answer.json()) as { agents: { online: number } }).agents.online;
      }),
    );
    return Math.max(...counts);
  };

  test("each node in turn is restarted: calls continue, none is executed twice, and no agent appears offline", async () => {
    const flaps: string[] = [];
    const off = client.on("presence", ({ agentId, online }) => {
      if (!online) flaps.push(agentId);
    });
    const calls = callAll();
    for (const place of [0, 1, 2]) {
      await sleep(300);
      expect(await relays.end(place, "SIGTERM")).toBe(0);
      await relays.start(place);
    }
    const outcomes = await calls.stop();
    off();
    const counts = tally(outcomes);
    console.log(JSON.stringify({ "rolling restart": counts }));
    expect(counts).toEqual({ OK: outcomes.length });
    expect([...runs.values()].filter((times) => times > 1)).toEqual([]);
    expect(flaps).toEqual([]);
    expect(await agentsOnline()).toBe(AGENTS);
  });

  test("a node is frozen: its agents move to others, and when it resumes each has one link", async () => {
    const node = relays.nodes[0];
    node?.child.kill("SIGSTOP");
    await sleep(1500); // until the balancer has noticed
    relays.balancer.cut(node?.url as string);
    await Promise.all(agents.map((agent) => agent.online()));
    await expect.poll(() => agents.every(({ core }) => core.link.state === "online")).toBe(true);
    await sleep(2000);
    node?.child.kill("SIGCONT");
    await expect.poll(agentsOnline).toBe(AGENTS);
    const calls = callAll();
    await sleep(1000);
    const outcomes = await calls.stop();
    expect(tally(outcomes)).toEqual({ OK: outcomes.length });
  });
});
