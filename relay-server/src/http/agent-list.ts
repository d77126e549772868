/** Pages of agents by filters that the store knows, and by one that only the hub does: who is online. */
import { AGENT_ID_PATTERN } from "@blindrelay/protocol";
import { type AgentQuery, PAGE_LIMIT_DEFAULT } from "@blindrelay/protocol/schema/rest";
import { type AgentPosition, listAgents } from "../store/agents.ts";
import type { AgentRow } from "../store/tables.ts";
import type { HttpContext } from "./app.ts";
import { HttpProblem } from "./problem.ts";

/** How many agents one request looks at in search of those online or offline. */
const MAX_LOOKED_AT = 2000;

const AGENT_ID = new RegExp(AGENT_ID_PATTERN);

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
  const after = query.cursor === undefined ? null : readCursor(query.cursor);
  // One more than is shown tells whether more follow.
  const wanted = online === undefined ? limit + 1 : MAX_LOOKED_AT + 1;
  const filter = { name, runtime, firmwareVersion };
  const found = await listAgents(context.store.db, userId, after, wanted, filter);
  const rows: AgentRow[] = [];
  for (const [index, row] of found.entries()) {
    if (rows.length === limit || index === MAX_LOOKED_AT) {
      return { rows, nextCursor: writeCursor(found[index - 1] as AgentRow) };
    }
    if (online === undefined || context.links.isOnline(row.agent_id) === online) rows.push(row);
  }
  return { rows, nextCursor: null };
};

/** Opaque to callers: where the page ended. */
const writeCursor = (row: AgentRow): string =>
  Buffer.from(`${row.created_at}/${row.agent_id}`).toString("base64url");

const readCursor = (cursor: string): AgentPosition => {
  const [createdAt = "", agentId = ""] = Buffer.from(cursor, "base64url").toString().split("/");
  if (!/^[0-9]{1,15}$/.test(createdAt) || !AGENT_ID.test(agentId)) {
    throw new HttpProblem("VALIDATION_FAILED", "That is no cursor of this list.", {
      errors: [{ path: "/cursor", in: "querystring", message: "must be a next_cursor" }],
    });
  }
  return { createdAt: Number(createdAt), agentId };
};
