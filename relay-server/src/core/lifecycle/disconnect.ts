/**
 * Ends a connection, for any reason: it leaves the hub's state at once, is told the reason, and its
 * socket closes. Later messages from its peer are not read.
 */
import { CLOSE_POLICY, ERRORS, type ErrorCode } from "@blindrelay/protocol";
import { encodeRestarting, type Subject } from "@blindrelay/protocol/wire";
import { advance, type Connection, isGuest, type User } from "../connections/connection.ts";
import { drop } from "../connections/hold-queue.ts";
import type { HubState } from "../state.ts";

export class Disconnector {
  readonly #state: HubState;

  constructor(state: HubState) {
    this.#state = state;
  }

  /** Ends a connection with a close code and no message. */
  end(connection: Connection, closeCode: number, reason: string, now: number): void {
    this.detach(connection, now);
    connection.link.close(closeCode, reason);
  }

  /** Sends the reason, then closes with the code from the table of errors. */
  endWith(connection: Connection, code: ErrorCode, subject: Subject | null, now: number): void {
    this.#state.controlMessages.error(connection, code, subject, now);
    this.end(connection, ERRORS[code].close ?? CLOSE_POLICY, code, now);
  }

  /** The relay shuts down. A connection that is already closing is left alone. */
  restart(connection: Connection, reconnectInS: number, now: number): void {
    this.tellRestart(connection, reconnectInS, now);
    this.endRestart(connection, now);
  }

  tellRestart(connection: Connection, reconnectInS: number, now: number): void {
    if (connection.state === "closing") return;
    const text = encodeRestarting(ERRORS.RESTARTING.meaning, reconnectInS);
    this.#state.counters.error("RESTARTING");
    this.#state.controlMessages.send(connection, text, now);
  }

  endRestart(connection: Connection, now: number): void {
    if (connection.state === "closing") return;
    this.end(connection, ERRORS.RESTARTING.close as number, "RESTARTING", now);
  }

  /** Removes a connection from the hub's state: its socket is gone, or about to be closed. */
  detach(connection: Connection, now: number): void {
    const { wheel, outbox, gauges, counters, peers, requestIds, presence, requestCounts } =
      this.#state;
    const { port, bus, remoteRouting, remoteAgents, views } = this.#state;
    const moving = this.#state.moving || connection.leaving !== null;
    advance(connection, "end");
    const { peer } = connection;
    if (!isGuest(peer)) gauges.become("closing", peer?.clientType ?? "waiting");
    this.#state.fragmented.delete(connection);
    wheel.remove(connection);
    outbox.forget(connection);
    drop(connection);
    if (connection.unrouted !== null || connection.uncounted !== null) {
      connection.unrouted = null;
      connection.uncounted = null;
      counters.drop("SENDER_LEFT");
    }
    if (peer === null) {
      return;
    }
    const hadItsPlace = peers.remove(peer);
    if (peer.role === "client") {
      peer.user.bindings.drop(peer);
      requestIds.drop(peer);
      if (peer.origin === null) {
        presence.forget(peer);
        views.remove(peer);
        requestCounts.leave(peer.session, now);
        remoteRouting.leave(peer);
        if (peer.user.clients.size === 0) this.#lastClientWent(peer.user);
      }
      return;
    }
    if (hadItsPlace) {
      port.agentSeen(peer.agentId, now, null, false);
      bus.agentOffline(peer.userId, peer.agentId, peer.loginNumber, moving);
      if (moving) {
        remoteAgents.yielded(peer.user, peer.agentId, { ...peer, node: "" }, now);
      } else {
        presence.announce(peer.user, peer.agentId, false, now);
      }
    }
    if (peer.user.agents.size === 0) {
      for (const guest of [...peer.user.guests]) this.detach(guest.connection, now);
    }
  }

  #lastClientWent(user: User): void {
    user.abroad.clear();
    this.#state.bus.clientsOffline(user.id);
  }
}
