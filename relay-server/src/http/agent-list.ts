/** Pages of agents by filters that the store knows, and by one that only the hub does: who is online. */
import { type AgentQuery, PAGE_LIMIT_DEFAULT } from "@blindrelay/protocol/schema/rest";
import { listAgents } from "../store/agents.ts";
import type { AgentRow } from "../store/tables.ts";
import type { HttpContext } from "./context.ts";
import { readPosition, writePosition } from "./pagination.ts";

/** How many agents one request looks at in search of those online or offline. */
const MAX_LOOKED_AT = 2000;

export interface AgentPageRows {
  readonly rows: AgentRow[];
  readonly nextCursor: string | null;
}

/** One page. With `online` it may end early, with a cursor to go on from. */
export const agentPage = async (
  context: HttpContext,
  userId: string,
  query: AgentQuery,
): Promise<AgentPageRows> => {
  const { online, name, runtime, firmware_version: firmwareVersion } = query;
  const limit = query.limit ?? PAGE_LIMIT_DEFAULT;
  const after = readPosition(query.cursor);
  // One more than is shown tells whether more follow.
  const wanted = online === undefined ? limit + 1 : MAX_LOOKED_AT + 1;
  const filter = { name, runtime, firmwareVersion };
  const found = await listAgents(context.store.db, userId, after, wanted, filter);
  const rows: AgentRow[] = [];
  for (const [index, row] of found.entries()) {
    if (rows.length === limit || index === MAX_LOOKED_AT) {
      const { created_at: at, agent_id: id } = found[index - 1] as AgentRow;
      return { rows, nextCursor: writePosition({ at, id }) };
    }
    if (online === undefined || context.links.isOnline(row.agent_id) === online) rows.push(row);
  }
  return { rows, nextCursor: null };
};
