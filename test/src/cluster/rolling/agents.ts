/** Many agents in one process: how often each call was run, and how long each had no link. */
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { startAgent } from "@blindrelay/agent-sdk/node";
import { type AgentKeys, type AgentsReport, serve } from "./messages.ts";

const STARTED_TOGETHER = 20;

serve(async ({ url, folder, agents }) => {
  const runs = new Map<number, number>();
  const lostAt = new Map<string, number>();
  let gaps: number[] = [];
  let moves = 0;
  let online = 0;
  const start = async ({ id, relayToken, agentToken }: AgentKeys) => {
    const agent = await startAgent({
      url,
      agentId: id,
      relayToken,
      agentToken,
      stateDir: join(folder, id),
      log: (_level, _message, fields) => {
        const { heldMs } = (fields ?? {}) as { heldMs?: number };
        if (heldMs === undefined) return;
        moves += 1;
        gaps.push(heldMs);
      },
      program: (program) => {
        program.handle("run", (params) => {
          const { call } = params as { call: number };
          runs.set(call, (runs.get(call) ?? 0) + 1);
          return call;
        });
      },
    });
    let isOnline = false;
    agent.onState(({ state }) => {
      if ((state === "online") === isOnline) return;
      isOnline = state === "online";
      online += isOnline ? 1 : -1;
      if (!isOnline) lostAt.set(id, performance.now());
      else if (lostAt.has(id)) gaps.push(performance.now() - (lostAt.get(id) as number));
    });
    await agent.online();
  };
  for (let at = 0; at < agents.length; at += STARTED_TOGETHER) {
    await Promise.all(agents.slice(at, at + STARTED_TOGETHER).map(start));
    await sleep(0);
  }
  return (): AgentsReport => {
    const report = { online, runs: [...runs], gaps: gaps.map(Math.round), moves };
    gaps = [];
    moves = 0;
    return report;
  };
});
