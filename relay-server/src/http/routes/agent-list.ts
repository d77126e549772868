/**
 * Pages of agents by filters that the store knows, and by one that only the hub knows: who is
 * online.
 */
import { type AgentQuery, PAGE_LIMIT_DEFAULT } from "@blindrelay/protocol/schema/rest";
import { parseSelector, type Selector, SelectorError } from "@blindrelay/protocol/selector";
import type { Credential } from "../../control/credentials.ts";
import { chosenIn } from "../../store/agent-selector.ts";
import { type AgentPlace, findAgents, listAgents } from "../../store/agents.ts";
import type { AgentRow } from "../../store/tables.ts";
import type { HttpContext } from "../base/context.ts";
import { readPosition, writePosition } from "../base/pagination.ts";
import { HttpProblem } from "../base/problem.ts";

/** How many agents one request examines in search of those online or offline. */
const MAX_LOOKED_AT = 2000;
/** Agents per turn of the relay's thread, which all requests share. */
const LOOK_AT_ONCE = 256;
/** Agents read at a time, each with its metadata. */
const READ_AT_ONCE = 8;
/** Metadata in one page, which is written in one go: JSON of 128 KiB takes milliseconds. */
const MAX_PAGE_BYTES = 32_768;

interface AgentPageRows {
  readonly rows: AgentRow[];
  readonly nextCursor: string | null;
}

/**
 * One page. It may end early, with a cursor for the rest: when it filters many agents by `online`,
 * or when the agents have much metadata. A long search waits for `pause` occasionally.
 */
export const agentPage = async (
  context: HttpContext,
  { userId, key }: Pick<Credential, "userId" | "key">,
  query: AgentQuery,
  pause: () => Promise<void>,
): Promise<AgentPageRows> => {
  const { places, next } = await choosePlaces(context, userId, key?.selector ?? [], query, pause);
  const { rows, end } = await readRows(context, userId, places, pause);
  return { rows, nextCursor: cursorAfter(end ?? next) };
};

const noSelector = (error: unknown): never => {
  if (!(error instanceof SelectorError)) throw error;
  throw new HttpProblem("VALIDATION_FAILED", "That is no selector.", {
    errors: [{ path: "/where", in: "querystring", message: error.message }],
  });
};

const readSelector = (text: string | undefined): Selector => {
  try {
    return text === undefined ? [] : parseSelector(text);
  } catch (error) {
    return noSelector(error);
  }
};

/** What a selector asks of presence: all of these must be. */
const presenceIn = (selector: Selector): boolean[] =>
  selector
    .filter(({ key }) => key === "online")
    .map(({ operator, value }) => (operator === "=") === (value === "true"));

/** The places of one page, and the last one examined, if more follow. */
const choosePlaces = async (
  context: HttpContext,
  userId: string,
  visible: Selector,
  { name, runtime, firmware_version: firmwareVersion, cursor, ...query }: AgentQuery,
  pause: () => Promise<void>,
): Promise<{ places: AgentPlace[]; next: AgentPlace | null }> => {
  const limit = query.limit ?? PAGE_LIMIT_DEFAULT;
  const selector = [...readSelector(query.where), ...visible];
  const online = [query.online, ...presenceIn(selector)].filter((is) => is !== undefined);
  const isWanted = (is: boolean) => online.every((wanted) => wanted === is);
  // One more than is shown tells whether more follow.
  const atOnce = online.length === 0 ? limit + 1 : LOOK_AT_ONCE;
  const chosen = await chosenIn(context.store.db, userId, selector).catch(noSelector);
  const filter = { name, runtime, firmwareVersion, chosen };
  const places: AgentPlace[] = [];
  let after = readPosition(cursor);
  let last: AgentPlace | null = null;
  let lookedAt = 0;
  for (;;) {
    const found = await listAgents(context.store.db, userId, after, atOnce, filter);
    for (const place of found) {
      if (places.length === limit || lookedAt === MAX_LOOKED_AT) return { places, next: last };
      last = place;
      lookedAt += 1;
      const isOnline = () => context.links.isOnline(place.agent_id, place.node, userId);
      if (online.length === 0 || isWanted(isOnline())) places.push(place);
    }
    if (last === null || found.length < atOnce) return { places, next: null };
    after = { at: last.created_at, id: last.agent_id };
    await pause();
  }
};

/**
 * The agents at these places, as far as a page may contain them; `end`: the last one, if more are
 * left.
 */
const readRows = async (
  context: HttpContext,
  userId: string,
  places: readonly AgentPlace[],
  pause: () => Promise<void>,
): Promise<{ rows: AgentRow[]; end: AgentPlace | null }> => {
  const rows: AgentRow[] = [];
  let bytes = 0;
  for (let at = 0; at < places.length; at += READ_AT_ONCE) {
    if (at > 0) await pause();
    const some = places.slice(at, at + READ_AT_ONCE);
    const ids = some.map((place) => place.agent_id);
    const read = await findAgents(context.store.db, userId, ids);
    for (const place of some) {
      const row = read.get(place.agent_id);
      if (row === undefined) continue;
      rows.push(row);
      bytes += row.metadata.length + row.labels.length;
      if (bytes >= MAX_PAGE_BYTES && place !== places.at(-1)) return { rows, end: place };
    }
  }
  return { rows, end: null };
};

const cursorAfter = (place: AgentPlace | null): string | null =>
  place === null ? null : writePosition({ at: place.created_at, id: place.agent_id });
