/**
 * How a connection ends, whoever wants it: it leaves every table at once, is told why, and its
 * socket closes. What its peer sends afterwards is not read any more.
 */
import { CLOSE_POLICY, ERRORS, type ErrorCode } from "@blindrelay/protocol";
import { encodeRestarting, type Subject } from "@blindrelay/protocol/wire";
import { advance, type Connection } from "./connection.ts";
import type { HubState } from "./state.ts";

export class Disconnector {
  readonly #state: HubState;

  constructor(state: HubState) {
    this.#state = state;
  }

  /** Disconnector a connection with a close code and no message. */
  end(connection: Connection, closeCode: number, reason: string, now: number): void {
    this.detach(connection, now);
    connection.link.close(closeCode, reason);
  }

  /** Says why, then closes as the table of errors says. */
  endWith(connection: Connection, code: ErrorCode, subject: Subject | null, now: number): void {
    this.#state.controlMessages.error(connection, code, subject, now);
    this.end(connection, ERRORS[code].close ?? CLOSE_POLICY, code, now);
  }

  /** The relay shuts down. Nothing happens to a connection that is ending already. */
  restart(connection: Connection, reconnectInS: number, now: number): void {
    if (connection.state !== "closing") {
      this.#state.counters.error("RESTARTING");
      this.#state.controlMessages.send(
        connection,
        encodeRestarting(ERRORS.RESTARTING.meaning, reconnectInS),
        now,
      );
      this.end(connection, ERRORS.RESTARTING.close as number, "RESTARTING", now);
    }
  }

  /** Takes a connection out of every table: its socket is gone, or about to be closed. */
  detach(connection: Connection, now: number): void {
    const { wheel, outbox, counters, peers, requestIds, presence, sessions, port } = this.#state;
    advance(connection, "end");
    this.#state.fragmented.delete(connection);
    wheel.remove(connection);
    outbox.forget(connection);
    connection.held = null;
    if (connection.unrouted !== null) {
      connection.unrouted = null;
      counters.drop("SENDER_LEFT");
    }
    const { peer } = connection;
    if (peer === null) {
      return;
    }
    const hadItsPlace = peers.remove(peer);
    if (peer.role === "client") {
      peer.user.bindings.drop(peer);
      requestIds.drop(peer);
      presence.forget(peer);
      sessions.leave(peer.session, now);
    } else if (hadItsPlace) {
      presence.announce(peer, false, now);
      port.agentSeen(peer.agentId, now, null);
    }
  }
}
