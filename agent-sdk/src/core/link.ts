/**
 * The agent's link to the relay (section 3): connect, log in, stay online, and reconnect after the
 * wait that each failure requires (protocol/src/link/failures.ts). Its states are those of the
 * client's link: protocol/src/link/states.ts.
 *
 * It sets no timer: its owner calls `timeout` at `nextDeadline`. A late or extra call is harmless.
 *
 * [portable]
 */
import type { Failure, LinkEvent, LinkState } from "@blindrelay/protocol";
import {
  AUTH_TIMEOUT_MS,
  authFailure,
  BACKOFF_MAX_MS,
  CLOSE_NORMAL,
  doubled,
  LINK_SILENCE_MS,
  LOCKED_OUT,
  LOST,
  linkFailure,
  nextLinkState,
  OUTBOX_BYTES,
  RESTARTING,
} from "@blindrelay/protocol";
import { asciiBytes, crc32 } from "@blindrelay/protocol/crypto";
import type { AgentsPacket, MessageForAgent, RelayError } from "@blindrelay/protocol/wire";
import { decodeForAgent, encodeAgentAuth, PONG_TEXT } from "@blindrelay/protocol/wire";
import type { Link, LinkEvents, LinkPort, Log, Random, TimerPort } from "../ports.ts";
import { Backoff } from "./backoff.ts";
import { CONNECT_TIMEOUT_MS, SESSION_TOKEN_MARGIN_MS } from "./defaults.ts";

/** In the range for private use: the relay only logs it. */
const CLOSE_GIVEN_UP = 4000;

/** Pings are shorter than this, and cost next to nothing. */
const SHORT_LENGTH = 64;

export interface LinkPorts {
  readonly link: LinkPort;
  readonly timer: TimerPort;
  readonly random: Random;
  readonly log: Log;
}

export interface LinkOptions {
  /** Address of the relay's WebSocket, such as wss://relay.example/wss. */
  readonly url: string;
  readonly agentId: string;
  /** `agt_`. */
  readonly relayToken: string;
  /** Sent at login and in system.info, such as "node 26.10.0"; its first word names the runtime. */
  readonly runtime: string;
  /**
   * The version of the running firmware: SemVer if it should be compared with releases. Sent at
   * login.
   */
  readonly firmwareVersion?: string;
  readonly ports: LinkPorts;
  /**
   * Whether there is memory to handle this message; if not, it is dropped, as if the network had
   * lost it. A board that runs out of memory while handling one may never recover. Absent: always.
   */
  readonly hasRoom?: (text: string) => boolean;
}

/** The link's state and the reason for it, for a person or a supervising program. */
export interface AgentStatus {
  readonly state: LinkState;
  /** The relay's code for the last failure, if it gave one. */
  readonly code: string | null;
  /** What happened and what to do about it; null if nothing is wrong. */
  readonly advice: string | null;
  /** In the state `waiting`: milliseconds until the next connect. */
  readonly waitMs: number | null;
}

export interface LinkCounters {
  /** Successful logins, the first one included. */
  logins: number;
  /** Messages that are not JSON, not a packet, or arrived before the login. */
  unreadable: number;
  /** `error` messages of the relay. */
  relayErrors: number;
  /** Messages dropped for lack of memory. */
  dropped: number;
}

/** The link's owner. */
interface LinkOwner {
  /** A packet arrived; only while online. */
  receivePacket(message: AgentsPacket): void;
  /** Something happened: `nextDeadline` may have changed. */
  arm(): void;
}

export class RelayLink {
  state: LinkState = "idle";
  declare status: AgentStatus;
  declare readonly counters: LinkCounters;

  declare private readonly options: LinkOptions;
  declare private readonly owner: LinkOwner;
  declare private readonly backoff: Backoff;
  declare private listeners: ((status: AgentStatus) => void)[];

  private link: Link | null = null;
  /** Counts connects: events of a link that was given up are ignored. */
  private turn = 0;
  /** When the current wait, connect or login ends. */
  private deadline = 0;
  private heardAt = 0;
  private onlineAt: number | null = null;
  /** When to reconnect after an announced restart; set until the relay closes. */
  private restartAt: number | null = null;
  /** Restarts that the relay has announced in a row, without a login in between. */
  private restarts = 0;

  /** The last reason for being offline that was logged as a warning. */
  private told: string | null = null;

  private sessionToken: string | null = null;
  private sessionTokenEnds = 0;
  private triedSession = false;

  constructor(options: LinkOptions, owner: LinkOwner) {
    // Not fields with values: on Espruino those are on the prototype, so all links would share
    // them.
    this.status = { state: "idle", code: null, advice: null, waitMs: null };
    this.counters = { logins: 0, unreadable: 0, relayErrors: 0, dropped: 0 };
    this.listeners = [];
    this.options = options;
    this.owner = owner;
    this.backoff = new Backoff(options.ports.random, crc32(asciiBytes(options.agentId)));
  }

  /** False if it was started or stopped before. */
  start(): boolean {
    if (!this.move("start", null, null, null)) return false;
    this.connect();
    return true;
  }

  /** Closes the link permanently. Harmless when repeated. */
  stop(): void {
    this.drop(CLOSE_NORMAL, "stopped");
    this.move("stop", null, null, null);
  }

  /**
   * Sets the session token of an earlier start to log in with; only the relay knows how long it is
   * valid. Call it before `start`.
   */
  resumeSession(token: string): void {
    this.sessionToken = token;
    this.sessionTokenEnds = Infinity;
  }

  /** The session token that the next login would use; null: the relay token. */
  heldSession(): string | null {
    return this.sessionToken;
  }

  /** Milliseconds since the relay's last message. */
  quietMs(): number {
    return this.options.ports.timer.now() - this.heardAt;
  }

  /**
   * Calls `fn` at every change of state; an exception from it is logged, and the link continues.
   */
  onState(fn: (status: AgentStatus) => void): void {
    this.listeners = this.listeners.concat([fn]);
  }

  /** Whether it makes sense to call `send` now: the link is online and the queue is not full. */
  canSend(): boolean {
    const link = this.link;
    if (link === null || this.state !== "online") return false;
    return link.queuedBytes === undefined || link.queuedBytes() <= OUTBOX_BYTES;
  }

  send(text: string): void {
    if (this.link !== null) this.link.send(text);
  }

  /** When to call `timeout`; null: never. */
  nextDeadline(): number | null {
    if (this.state === "online") return this.heardAt + LINK_SILENCE_MS;
    return this.state === "idle" || this.state === "refused" || this.state === "stopped"
      ? null
      : this.deadline;
  }

  timeout(now: number): void {
    const due = this.nextDeadline();
    if (due === null || now < due) return;
    if (this.move("elapsed", null, null, null)) this.connect();
    else this.lose(LOST, null, null);
  }

  private connect(): void {
    // A listener to the state may have stopped it.
    if (this.state !== "connecting") return;
    const ports = this.options.ports;
    this.turn++;
    const turn = this.turn;
    const events: LinkEvents = {
      opened: () => {
        if (turn === this.turn) this.opened();
      },
      received: (text) => {
        if (turn === this.turn) this.received(text);
      },
      closed: (code, reason) => {
        if (turn === this.turn) this.closed(code, reason);
      },
    };
    this.deadline = ports.timer.now() + CONNECT_TIMEOUT_MS;
    this.restartAt = null;
    try {
      this.link = ports.link.connect(this.options.url, events);
    } catch {
      this.lose(LOST, null, null);
    }
    this.owner.arm();
  }

  private opened(): void {
    const now = this.options.ports.timer.now();
    this.heardAt = now;
    this.deadline = now + AUTH_TIMEOUT_MS;
    this.move("opened", null, null, null);
    const token = this.sessionToken;
    this.triedSession = token !== null && now < this.sessionTokenEnds;
    this.login(this.triedSession ? token : null);
    this.owner.arm();
  }

  private login(sessionToken: string | null): void {
    const options = this.options;
    const isSession = sessionToken !== null;
    const token = isSession ? sessionToken : options.relayToken;
    const firmware = options.firmwareVersion === undefined ? null : options.firmwareVersion;
    this.send(encodeAgentAuth(token, isSession, options.agentId, options.runtime, firmware));
  }

  private received(text: string): void {
    const options = this.options;
    this.heardAt = options.ports.timer.now();
    if (text.length > SHORT_LENGTH && options.hasRoom !== undefined && !options.hasRoom(text)) {
      this.counters.dropped++;
      return;
    }
    const message = decodeForAgent(text);
    if (message.kind === "ping") this.send(PONG_TEXT);
    else if (message.kind === "error") this.relayError(message);
    else if (this.state === "authenticating") this.authAnswered(message);
    else if (message.kind === "packet") this.owner.receivePacket(message);
    else if (message.kind === "unreadable") this.counters.unreadable++;
    this.owner.arm();
  }

  private closed(code: number, reason: string): void {
    this.link = null;
    const restartAt = this.restartAt;
    if (restartAt === null) {
      this.options.ports.log("info", "link closed", { code: code, reason: reason });
      this.lose(LOST, null, null, this.state === "connecting" ? reason : "");
    } else {
      // A cluster node keeps the link for longer than it asks us to wait.
      const left = restartAt - this.options.ports.timer.now();
      this.lose(RESTARTING, "RESTARTING", Math.max(left, 0));
    }
    this.owner.arm();
  }

  private authAnswered(message: MessageForAgent): void {
    const now = this.options.ports.timer.now();
    if (message.kind === "authenticated") {
      const expiresIn = message.expiresIn === null ? 0 : message.expiresIn;
      this.sessionToken = message.sessionToken;
      this.sessionTokenEnds = now + expiresIn * 1000 - SESSION_TOKEN_MARGIN_MS;
      this.onlineAt = now;
      this.restarts = 0;
      this.told = null;
      this.counters.logins++;
      this.move("accepted", null, null, null);
      return;
    }
    if (message.kind !== "authFailed") {
      this.counters.unreadable++;
      return;
    }
    let failure = authFailure(message.code);
    const asked = message.retryAfter === null ? 0 : message.retryAfter * 1000;
    if (failure.dropsSession) this.sessionToken = null;
    if (this.triedSession && failure.dropsSession) {
      if (asked <= 0) {
        // The connection stays open for another attempt (section 3).
        this.triedSession = false;
        this.login(null);
        return;
      }
      // It says nothing about the relay token.
      if (failure.course !== "asked") failure = LOCKED_OUT;
    }
    this.options.ports.log("warn", "login failed", { code: message.code, error: message.error });
    this.lose(failure, message.code, asked);
  }

  private relayError(message: RelayError): void {
    const code = message.code;
    this.counters.relayErrors++;
    const fields = { code: code, error: message.error };
    this.options.ports.log("debug", "the relay reports an error", fields);
    if (code === "RESTARTING") {
      const asked = message.reconnectIn === null ? 0 : message.reconnectIn * 1000;
      // All nodes may be restarting: who comes again and again keeps them busy.
      if (this.restartAt === null) this.restarts++;
      const wait = Math.max(asked, doubled(asked, this.restarts - 1, BACKOFF_MAX_MS));
      this.restartAt = this.options.ports.timer.now() + wait;
      return;
    }
    const failure = linkFailure(code);
    if (failure === null) return;
    if (failure.dropsSession) this.sessionToken = null;
    this.lose(failure, code, null);
  }

  /** Ends the connection, and waits as the failure requires or gives up permanently. */
  private lose(failure: Failure, code: string | null, askedMs: number | null, why?: string): void {
    const ports = this.options.ports;
    const now = ports.timer.now();
    const onlineMs = this.onlineAt === null ? 0 : now - this.onlineAt;
    // Never the relay's own text: a close reason has at most 123 bytes, and edges throw for more.
    this.drop(CLOSE_GIVEN_UP, "no use");
    if (failure.course === "never") {
      ports.log("error", failure.advice, { code: code });
      this.move("refused", code, failure.advice, null);
      return;
    }
    const waitMs = this.backoff.next(failure, askedMs, onlineMs);
    this.deadline = now + waitMs;
    const advice = why || failure.advice;
    // Each reason once, however often it is met, until the agent was online again.
    const level = advice === this.told || advice === LOST.advice ? "info" : "warn";
    this.told = advice;
    ports.log(level, advice, { code: code, waitMs: waitMs });
    this.move("lost", code, advice, waitMs);
  }

  private drop(code: number, reason: string): void {
    const link = this.link;
    this.turn++;
    this.link = null;
    this.onlineAt = null;
    if (link !== null) link.close(code, reason);
  }

  /** Makes the transition, if the event has an effect in this state. */
  private move(
    event: LinkEvent,
    code: string | null,
    advice: string | null,
    waitMs: number | null,
  ): boolean {
    const state = nextLinkState(this.state, event);
    if (state === null) return false;
    this.state = state;
    const status = { state: state, code: code, advice: advice, waitMs: waitMs };
    this.status = status;
    for (const listener of this.listeners) {
      try {
        listener(status);
      } catch (error) {
        this.options.ports.log("error", "a listener to the state failed", { reason: `${error}` });
      }
    }
    return true;
  }
}
