/** Many agents in one process: how often each call was executed, and how long each had no link. */
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { startAgent, webSocketLinks } from "@blindrelay/agent-sdk/node";
import { type AgentKeys, type AgentsReport, serve } from "./messages.ts";

const STARTED_TOGETHER = 20;

serve(async ({ url, folder, agents, boards }) => {
  const runs = new Map<number, number>();
  const fresh = () => ({
    withoutLink: [] as number[],
    boardsWithoutLink: [] as number[],
    moving: [] as number[],
  });
  let figures = fresh();
  let online = 0;
  const start = async ({ id, relayToken, agentToken }: AgentKeys, isBoard: boolean) => {
    const agent = await startAgent({
      url,
      agentId: id,
      relayToken,
      agentToken,
      stateDir: join(folder, id),
      log: (_level, _message, fields) => {
        const { heldMs } = (fields ?? {}) as { heldMs?: number };
        if (heldMs !== undefined) figures.moving.push(heldMs);
      },
      ...(isBoard ? { links: webSocketLinks() } : {}),
      program: (program) => {
        program.handle("run", (params) => {
          const { call } = params as { call: number };
          runs.set(call, (runs.get(call) ?? 0) + 1);
          return call;
        });
      },
    });
    let isOnline = false;
    let lostAtMs: number | null = null;
    agent.onState(({ state }) => {
      if ((state === "online") === isOnline) return;
      isOnline = state === "online";
      online += isOnline ? 1 : -1;
      if (!isOnline) lostAtMs = performance.now();
      else if (lostAtMs !== null) {
        const gaps = isBoard ? figures.boardsWithoutLink : figures.withoutLink;
        gaps.push(Math.round(performance.now() - lostAtMs));
      }
    });
    await agent.online();
  };
  for (let at = 0; at < agents.length; at += STARTED_TOGETHER) {
    const some = agents.slice(at, at + STARTED_TOGETHER);
    await Promise.all(some.map((agent, i) => start(agent, at + i < boards)));
    await sleep(0);
  }
  return (): AgentsReport => {
    const report = { online, runs: [...runs], ...figures };
    figures = fresh();
    return report;
  };
});
