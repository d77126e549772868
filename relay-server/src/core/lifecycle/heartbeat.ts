/**
 * The deadlines of a connection: `auth` within 30 s, a ping every 30 s, two unanswered pings, a
 * client session's age (section 3). Each connection has one entry in the timer wheel, its next
 * deadline.
 */
import { CLOSE_POLICY, MISSED_PINGS, PING_INTERVAL_MS } from "@blindrelay/protocol";
import { PING_TEXT } from "@blindrelay/protocol/wire";
import type { Connection, Peer } from "../connections/connection.ts";
import type { HubState } from "../state.ts";
import type { Disconnector } from "./disconnect.ts";
import { stagger } from "./stagger.ts";

export class Heartbeat {
  readonly #state: HubState;
  readonly #disconnector: Disconnector;

  constructor(state: HubState, disconnector: Disconnector) {
    this.#state = state;
    this.#disconnector = disconnector;
  }

  awaitAuth(connection: Connection): void {
    this.#state.wheel.set(connection, connection.authDeadline);
  }

  /**
   * The first ping comes in the second half of the first interval: jitter, so that connections
   * accepted together are not pinged together.
   */
  start(connection: Connection, now: number): void {
    const fraction = 0.5 + stagger(this.#state.counters.authSuccesses) / 2;
    connection.nextPingAt = now + fraction * PING_INTERVAL_MS;
    this.#setWake(connection);
  }

  tick(now: number): void {
    this.#state.wheel.tick(now, (connection) => this.#wake(connection, now));
  }

  #setWake(connection: Connection): void {
    const { peer, nextPingAt } = connection;
    this.#state.wheel.set(connection, Math.min(nextPingAt, expiryOf(peer)));
  }

  #wake(connection: Connection, now: number): void {
    const { peer } = connection;
    if (peer === null) {
      this.#disconnector.endWith(connection, "AUTH_TIMEOUT", null, now);
    } else if (now >= expiryOf(peer)) {
      this.#disconnector.endWith(connection, "SESSION_EXPIRED", null, now);
    } else if (connection.held === null && connection.pingsUnanswered >= MISSED_PINGS) {
      this.#state.counters.closedForMissedPings += 1;
      this.#disconnector.end(connection, CLOSE_POLICY, "missed pings", now);
    } else {
      this.#ping(connection, now);
    }
  }

  #ping(connection: Connection, now: number): void {
    // During a look-up no pong is read, so it does not count against the peer.
    if (connection.held === null) connection.pingsUnanswered += 1;
    // After a pause of the whole process, the next ping still leaves time for an answer.
    connection.nextPingAt = Math.max(connection.nextPingAt, now - PING_INTERVAL_MS / 2);
    connection.nextPingAt += PING_INTERVAL_MS;
    this.#state.controlMessages.send(connection, PING_TEXT, now);
    this.#setWake(connection);
  }
}

/** An agent stays for as long as it answers; a guest is watched by its own node. */
const expiryOf = (peer: Peer | null): number =>
  peer?.role === "client" && peer.origin === null ? peer.session.expiresAtMs : Infinity;
