/**
 * `agent_status` (section 3): every client of a user hears at once when one of the user's agents
 * comes or goes. A newly connected client hears of nothing unasked; one that said
 * `"presence": true` gets one message per agent online, a batch per tick and never into a full
 * queue.
 */

import { encodeAgentStatus } from "@blindrelay/protocol/wire";
import type { AgentPeer, ClientPeer } from "./connection.ts";
import type { ControlMessages } from "./control-messages.ts";
import { SNAPSHOT_BATCH } from "./limits.ts";
import type { Outbox } from "./outbox.ts";

export class Presence {
  readonly #outbox: Outbox;
  readonly #controlMessages: ControlMessages;
  readonly #wallAt: (nowMs: number) => number;
  /** What each snapshot under way has still to tell. */
  readonly #snapshots = new Map<ClientPeer, Set<string>>();

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
  announce(agent: AgentPeer, online: boolean, now: number): void {
    if (agent.user.clients.size === 0) {
      return;
    }
    const text = encodeAgentStatus(agent.agentId, online, timestamp(this.#wallAt(now)));
    for (const client of agent.user.clients) {
      // The news overtakes the snapshot, which then has nothing to add.
      this.#snapshots.get(client)?.delete(agent.agentId);
      this.#controlMessages.send(client.connection, text, now);
    }
  }

  startSnapshot(client: ClientPeer, now: number): void {
    this.#snapshots.set(client, new Set(client.user.agents.keys()));
    this.#continue(client, now);
  }

  tick(now: number): void {
    for (const client of this.#snapshots.keys()) {
      this.#continue(client, now);
    }
  }

  forget(client: ClientPeer): void {
    this.#snapshots.delete(client);
  }

  get snapshotCount(): number {
    return this.#snapshots.size;
  }

  #continue(client: ClientPeer, now: number): void {
    const left = this.#snapshots.get(client) as Set<string>;
    let room = this.#outbox.isRoomy(client.connection) ? SNAPSHOT_BATCH : 0;
    for (const agentId of left) {
      if (room === 0) {
        return;
      }
      room -= 1;
      left.delete(agentId);
      const agent = client.user.agents.get(agentId);
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
