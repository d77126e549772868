/**
 * `agent_status` (section 3): every client of a user is notified at once when one of the user's
 * agents connects or disconnects. A newly connected client gets nothing unasked; one that sent
 * `"presence": true` gets one message per agent online, a batch per tick and never into a full
 * queue.
 */

import { encodeAgentStatus } from "@blindrelay/protocol/wire";
import type { LocalClient, User } from "./connection.ts";
import type { ControlMessages } from "./control-messages.ts";
import { SNAPSHOT_BATCH } from "./limits.ts";
import type { Outbox } from "./outbox.ts";

export class Presence {
  readonly #outbox: Outbox;
  readonly #controlMessages: ControlMessages;
  readonly #wallAt: (nowMs: number) => number;
  /** What each unfinished snapshot still has to send. */
  readonly #snapshots = new Map<LocalClient, Set<string>>();

  constructor(
    outbox: Outbox,
    controlMessages: ControlMessages,
    wallAt: (nowMs: number) => number = (nowMs) => nowMs,
  ) {
    this.#wallAt = wallAt;
    this.#outbox = outbox;
    this.#controlMessages = controlMessages;
  }

  /** Tells the user's clients that an agent came or went. */
  announce(user: User, agentId: string, online: boolean, now: number): void {
    if (user.clients.size === 0) {
      return;
    }
    const text = encodeAgentStatus(agentId, online, timestamp(this.#wallAt(now)));
    for (const client of user.clients) {
      // The news overtakes the snapshot, which then has nothing to add.
      this.#snapshots.get(client)?.delete(agentId);
      this.#controlMessages.send(client.connection, text, now);
    }
  }

  startSnapshot(client: LocalClient, now: number): void {
    const { agents, abroad } = client.user;
    this.#snapshots.set(client, new Set([...agents.keys(), ...abroad.keys()]));
    this.#continue(client, now);
  }

  /** An agent turns out to have been online: notifies clients that asked for a snapshot. */
  addToSnapshots(user: User, agentId: string): void {
    for (const client of user.clients) {
      if (!client.connection.wantsPresence) continue;
      const snapshot = this.#snapshots.get(client);
      if (snapshot === undefined) this.#snapshots.set(client, new Set([agentId]));
      else snapshot.add(agentId);
    }
  }

  tick(now: number): void {
    for (const client of this.#snapshots.keys()) {
      this.#continue(client, now);
    }
  }

  forget(client: LocalClient): void {
    this.#snapshots.delete(client);
  }

  get snapshotCount(): number {
    return this.#snapshots.size;
  }

  #continue(client: LocalClient, now: number): void {
    const left = this.#snapshots.get(client) as Set<string>;
    let room = this.#outbox.isRoomy(client.connection) ? SNAPSHOT_BATCH : 0;
    for (const agentId of left) {
      if (room === 0) {
        return;
      }
      room -= 1;
      left.delete(agentId);
      const agent = client.user.agents.get(agentId) ?? client.user.abroad.get(agentId);
      if (agent !== undefined) {
        this.#controlMessages.send(
          client.connection,
          encodeAgentStatus(agentId, true, timestamp(this.#wallAt(agent.onlineSince))),
          now,
        );
      }
    }
    this.#snapshots.delete(client);
  }
}

const timestamp = (atMs: number): string => new Date(atMs).toISOString();
