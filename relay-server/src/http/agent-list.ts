/**
 * Pages of agents by filters that the store knows, and by one that only the hub does: who is
 * online.
 */
import { type AgentQuery, PAGE_LIMIT_DEFAULT } from "@blindrelay/protocol/schema/rest";
import { type AgentPlace, findAgents, listAgents } from "../store/agents.ts";
import type { AgentRow } from "../store/tables.ts";
import type { HttpContext } from "./context.ts";
import { readPosition, writePosition } from "./pagination.ts";

/** How many agents one request looks at in search of those online or offline. */
const MAX_LOOKED_AT = 2000;
/** Agents read at a time, each with its metadata. */
const READ_AT_ONCE = 32;
/** Metadata of one page: reading and writing a megabyte of JSON would keep everybody waiting. */
const MAX_PAGE_BYTES = 262_144;

export interface AgentPageRows {
  readonly rows: AgentRow[];
  readonly nextCursor: string | null;
}

/**
 * One page. It may end early, with a cursor to go on from: with `online` among many, and where the
 * agents have much metadata.
 */
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
  const places: AgentPlace[] = [];
  let last: AgentPlace | null = null;
  let more = false;
  for (const [index, place] of found.entries()) {
    more = places.length === limit || index === MAX_LOOKED_AT;
    if (more) break;
    last = place;
    if (online === undefined || context.links.isOnline(place.agent_id) === online) {
      places.push(place);
    }
  }
  const { rows, end } = await readRows(context, userId, places);
  return { rows, nextCursor: cursorAfter(end ?? (more ? last : null)) };
};

/**
 * The agents at these places as far as a page may hold them; `end`: the last, where more are left.
 */
const readRows = async (
  context: HttpContext,
  userId: string,
  places: readonly AgentPlace[],
): Promise<{ rows: AgentRow[]; end: AgentPlace | null }> => {
  const rows: AgentRow[] = [];
  let bytes = 0;
  for (let at = 0; at < places.length; at += READ_AT_ONCE) {
    const some = places.slice(at, at + READ_AT_ONCE);
    const ids = some.map((place) => place.agent_id);
    const read = await findAgents(context.store.db, userId, ids);
    for (const place of some) {
      const row = read.get(place.agent_id);
      if (row === undefined) continue;
      rows.push(row);
      bytes += row.metadata.length;
      if (bytes >= MAX_PAGE_BYTES && place !== places.at(-1)) return { rows, end: place };
    }
  }
  return { rows, end: null };
};

const cursorAfter = (place: AgentPlace | null): string | null =>
  place === null ? null : writePosition({ at: place.created_at, id: place.agent_id });
