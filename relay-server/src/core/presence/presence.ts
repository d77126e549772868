/**
 * `agent_status` (section 3): every client of a user is notified when one of the user's agents
 * connects or disconnects. Few clients are notified at once; many are notified over several turns
 * of the event loop, because a user may have a thousand clients, and agents that keep coming and
 * going. So is even one client of thousands of agents, as when their node is lost: they would not
 * fit into its queue.
 *
 * A newly connected client gets nothing by default; one that sent `"presence": true` gets one
 * message per online agent, a batch per tick and never into a full queue. Only a few clients of a
 * user get this snapshot at a time, because each lists all agents.
 */
import { encodeAgentStatus } from "@blindrelay/protocol/wire";
import type { View } from "../connections/access-key.ts";
import type { LocalClient, User } from "../connections/connection.ts";
import type { ControlMessages } from "../connections/control-messages.ts";
import type { Outbox } from "../connections/outbox.ts";
import {
  GONE_KEPT_MS,
  NEWS_AT_ONCE,
  NEWS_KEPT,
  NEWS_PER_TURN,
  SNAPSHOT_BATCH,
  SNAPSHOTS_AT_ONCE,
} from "../limits/limits.ts";
import { sees, type ViewChange } from "./access-key-views.ts";

/** The rest of a client's snapshot. */
interface Snapshot {
  /** Agents that connected later are reported as news. */
  readonly sinceMs: number;
  /** Null until it is this client's turn. */
  left: Set<string> | null;
}

/** An agent connected or disconnected, for all of its user's clients or for those of a view. */
interface Change {
  readonly agentId: string;
  readonly text: string;
  /** Null: for all. */
  readonly view: View | null;
}

/** Some clients have not been notified. */
interface News extends Change {
  readonly since: number;
  /** Clients that have not been notified, and those that connected since. */
  readonly left: Iterator<LocalClient>;
}

export class Presence {
  readonly #outbox: Outbox;
  readonly #controlMessages: ControlMessages;
  readonly #wallAt: (nowMs: number) => number;
  readonly #askForTurn: () => void;
  /** By user, in the order in which clients connected. */
  readonly #snapshots = new Map<User, Map<LocalClient, Snapshot>>();
  /** For users with many clients; in order, keyed by agent or, while few are queued, by number. */
  readonly #news = new Map<User, Map<string | number, News>>();
  #newsCount = 0;
  /** How many clients were notified at once since the last turn or tick. */
  #toldAtOnce = 0;
  /** Agents whose clients here were last told that they are offline, and when; oldest first. */
  readonly #gone = new Map<string, number>();

  /** `askForTurn`: has `turn` called in the next turn of the event loop. */
  constructor(
    outbox: Outbox,
    controlMessages: ControlMessages,
    askForTurn: () => void,
    wallAt: (nowMs: number) => number = (nowMs) => nowMs,
  ) {
    this.#wallAt = wallAt;
    this.#outbox = outbox;
    this.#controlMessages = controlMessages;
    this.#askForTurn = askForTurn;
  }

  /** Notifies the user's clients that an agent connected or disconnected. */
  announce(user: User, agentId: string, online: boolean, now: number): void {
    if (user.clients.size === 0) {
      this.#news.delete(user);
      return;
    }
    this.#gone.delete(agentId);
    if (!online) this.#gone.set(agentId, now);
    const text = encodeAgentStatus(agentId, online, timestamp(this.#wallAt(now)));
    this.#spread(user, user.clients, { agentId, text, view: null }, now);
  }

  /** An agent has appeared for the clients of a view, or no longer exists for them. */
  announceIn(
    { view, agentId, isSeen }: ViewChange,
    clients: ReadonlySet<LocalClient>,
    now: number,
  ): void {
    const [first] = clients;
    if (first === undefined) return;
    if (isSeen && this.#onlineSince(first.user, agentId) === undefined) return;
    const text = encodeAgentStatus(agentId, isSeen, timestamp(this.#wallAt(now)));
    this.#spread(first.user, clients, { agentId, text, view }, now);
  }

  #spread(user: User, clients: ReadonlySet<LocalClient>, change: Change, now: number): void {
    let news = this.#news.get(user);
    const isFew = clients.size <= NEWS_PER_TURN;
    if (news === undefined && isFew && this.#toldAtOnce + clients.size <= NEWS_AT_ONCE) {
      this.#toldAtOnce += clients.size;
      for (const client of clients) this.#tell(client, change, now);
      return;
    }
    if (news === undefined) {
      news = new Map();
      this.#news.set(user, news);
    }
    // While many are queued, this replaces queued news of the same agent: clients that have not
    // received that get this instead.
    const { agentId, view } = change;
    const name = view === null ? agentId : `${agentId} ${view.keyId}`;
    const key = news.size < NEWS_KEPT ? this.#newsCount++ : name;
    news.delete(key);
    news.set(key, { ...change, since: now, left: clients.values() });
    this.#askForTurn();
  }

  /** Notifies more clients. */
  turn(now: number): void {
    this.#toldAtOnce = 0;
    for (const [user, news] of this.#news) {
      let room = NEWS_PER_TURN;
      for (const [key, one] of news) {
        for (; room > 0; room -= 1) {
          const next = one.left.next();
          if (next.done === true) {
            news.delete(key);
            break;
          }
          if (next.value.onlineSince <= one.since) this.#tell(next.value, one, now);
        }
        if (room === 0) break;
      }
      if (news.size === 0) this.#news.delete(user);
    }
    if (this.#news.size > 0) this.#askForTurn();
  }

  #onlineSince({ agents, abroad }: User, agentId: string): number | undefined {
    return (agents.get(agentId) ?? abroad.get(agentId))?.onlineSince;
  }

  #tell(client: LocalClient, { agentId, text, view }: Change, now: number): void {
    // A view's own news may be that the agent is not seen any more.
    if (view === null && !sees(client, agentId)) return;
    // The news overtakes the snapshot, which then need not list the agent.
    this.#snapshots.get(client.user)?.get(client)?.left?.delete(agentId);
    this.#controlMessages.send(client.connection, text, now);
  }

  startSnapshot(client: LocalClient, now: number): void {
    const snapshots = this.#add(client, { sinceMs: now, left: null });
    if (snapshots.size <= SNAPSHOTS_AT_ONCE) this.#continue(client, snapshots, now);
  }

  /** Agents turn out to have been online already: notifies clients that asked for a snapshot. */
  addToSnapshots(user: User, agentIds: readonly string[], now: number): void {
    if (agentIds.length === 0) return;
    const queued = new Set<string>();
    for (const { agentId, view } of this.#news.get(user)?.values() ?? []) {
      if (view === null) queued.add(agentId);
    }
    for (const agentId of agentIds) {
      // Otherwise clients would be told after it that the agent is offline.
      if (queued.has(agentId)) this.announce(user, agentId, true, now);
      else this.#addToSnapshots(user, agentId);
    }
  }

  #addToSnapshots(user: User, agentId: string): void {
    for (const client of user.clients) {
      if (!client.connection.wantsPresence) continue;
      const snapshot = this.#snapshots.get(user)?.get(client);
      if (snapshot === undefined) this.#add(client, { sinceMs: 0, left: new Set([agentId]) });
      else snapshot.left?.add(agentId); // a snapshot that has not begun will include it
    }
  }

  /** Whether a client that is here was just told that an agent is offline. */
  isJustGone({ clients }: User, agentId: string): boolean {
    const since = this.#gone.get(agentId);
    const [oldest] = clients;
    return since !== undefined && oldest !== undefined && oldest.onlineSince <= since;
  }

  tick(now: number): void {
    this.#toldAtOnce = 0;
    for (const [agentId, since] of this.#gone) {
      if (since > now - GONE_KEPT_MS) break;
      this.#gone.delete(agentId);
    }
    for (const snapshots of this.#snapshots.values()) {
      for (const client of [...snapshots.keys()].slice(0, SNAPSHOTS_AT_ONCE)) {
        this.#continue(client, snapshots, now);
      }
    }
  }

  forget(client: LocalClient): void {
    const snapshots = this.#snapshots.get(client.user);
    if (snapshots?.delete(client) && snapshots.size === 0) this.#snapshots.delete(client.user);
  }

  #add(client: LocalClient, snapshot: Snapshot): Map<LocalClient, Snapshot> {
    let snapshots = this.#snapshots.get(client.user);
    if (snapshots === undefined) {
      snapshots = new Map();
      this.#snapshots.set(client.user, snapshots);
    }
    return snapshots.set(client, snapshot);
  }

  #continue(client: LocalClient, snapshots: Map<LocalClient, Snapshot>, now: number): void {
    const snapshot = snapshots.get(client) as Snapshot;
    if (!this.#outbox.isRoomy(client.connection)) {
      // A client that reads slowly gives way to those that wait, and then starts again.
      if (snapshots.size > SNAPSHOTS_AT_ONCE) {
        snapshot.left = null;
        snapshots.delete(client);
        snapshots.set(client, snapshot);
      }
      return;
    }
    snapshot.left ??= onlineSince(client.user, snapshot.sinceMs);
    let room = SNAPSHOT_BATCH;
    for (const agentId of snapshot.left) {
      if (room === 0) {
        return;
      }
      room -= 1;
      snapshot.left.delete(agentId);
      const since = this.#onlineSince(client.user, agentId);
      if (since !== undefined && sees(client, agentId)) {
        this.#controlMessages.send(
          client.connection,
          encodeAgentStatus(agentId, true, timestamp(this.#wallAt(since))),
          now,
        );
      }
    }
    this.forget(client);
  }
}

/**
 * Agents that were online then; for agents on other nodes this is not known exactly, so all of
 * them.
 */
const onlineSince = ({ agents, abroad }: User, sinceMs: number): Set<string> => {
  const found = new Set(abroad.keys());
  for (const agent of agents.values()) if (agent.onlineSince <= sinceMs) found.add(agent.agentId);
  return found;
};

const timestamp = (atMs: number): string => new Date(atMs).toISOString();
