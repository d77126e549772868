/**
 * What an operator does while a world runs: REST requests that change nothing that its peers see,
 * and what each must answer. Throws an Error if an answer is another one.
 */
import type { AccessKeyCreated, Agent, AgentPage } from "@blindrelay/protocol/schema/rest";
import type { Method } from "@blindrelay/relay-server/control";
import type { Stream } from "../base/random-streams.ts";

export interface Desk {
  /** A request of the agent's owner; rejects unless it succeeds. */
  request(method: Method, path: string, body?: object): Promise<unknown>;
  /** REST says whether an agent is online. */
  told(agentId: string, online: boolean): void;
}

const TASKS: readonly ((desk: Desk, agentId: string, draws: Stream) => Promise<void>)[] = [
  async ({ request, told }, agentId) => {
    const agent = (await request("GET", `/agents/${agentId}`)) as Agent;
    told(agent.agent_id, agent.online);
  },
  async ({ request, told }, agentId, draws) => {
    const path = `/agents?limit=${1 + draws.below(5)}`;
    const seen = new Set<string>();
    for (let cursor: string | null = ""; cursor !== null; ) {
      const next: string = cursor === "" ? path : `${path}&cursor=${encodeURIComponent(cursor)}`;
      const page = (await request("GET", next)) as AgentPage;
      for (const { agent_id, online } of page.items) {
        if (seen.has(agent_id)) throw new Error(`${path} lists ${agent_id} twice`);
        seen.add(agent_id);
        told(agent_id, online);
      }
      cursor = page.next_cursor;
    }
    if (!seen.has(agentId)) throw new Error(`${path} does not list ${agentId}`);
  },
  async ({ request }, agentId, draws) => {
    const labels = { site: `hall-${draws.below(3)}` };
    await request("PATCH", `/agents/${agentId}`, { labels, metadata: { n: draws.below(100) } });
    const where = encodeURIComponent(`label.site=${labels.site}`);
    const page = (await request("GET", `/agents?limit=100&where=${where}`)) as AgentPage;
    if (!page.items.some(({ agent_id }) => agent_id === agentId)) {
      throw new Error(`no agent ${agentId} with the label that it was just given`);
    }
  },
  async ({ request }, agentId) => {
    const wanted = { name: `key-of-${agentId}`, scopes: ["call"], where: `id=${agentId}` };
    const key = (await request("POST", "/account/keys", wanted)) as AccessKeyCreated;
    await request("DELETE", `/account/keys/${key.id}`);
  },
];

export const operate = (desk: Desk, agentId: string, draws: Stream): Promise<void> => {
  const task = TASKS[draws.below(TASKS.length)] as (typeof TASKS)[number];
  return task(desk, agentId, draws);
};
