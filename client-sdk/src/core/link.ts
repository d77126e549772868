/**
 * The client's link to the relay (section 3): connect, authenticate, stay connected, reconnect. Its
 * states are those of the agent's link: protocol/src/link/states.ts; those of a move to another
 * link are in protocol/src/link/moving.ts.
 *
 * A refusal is final if only a person can fix it (a wrong or revoked token). Lockouts are waited
 * out, for at least 120 s, so that one stale client does not lock out its whole address.
 */
import {
  AUTH_TIMEOUT_MS,
  authFailure,
  BACKOFF_FIRST_MS,
  BACKOFF_MAX_MS,
  CLOSE_NORMAL,
  doubled,
  jittered,
  LINK_SILENCE_MS,
  type LinkEvent,
  type LinkState,
  linkFailure,
  MAX_ASKED_WAIT_MS,
  nextLinkState,
  REFUSED_WAIT_MS,
  randomFraction,
  SESSION_MAX_REQUESTS,
} from "@blindrelay/protocol";
import {
  Alarm,
  type LoginAnswer,
  MovingLink,
  type MovingSide,
} from "@blindrelay/protocol/moving-link";
import {
  type AuthFailed,
  type ClientAuthenticated,
  decodeForClient,
  encodeClientAuth,
  type MessageForClient,
  PING_TEXT,
  PONG_TEXT,
  type RelayError,
} from "@blindrelay/protocol/wire";
import { CallError } from "../errors.ts";
import type { Link, Ports } from "../ports.ts";
import {
  CONNECT_TIMEOUT_MS,
  LEFT_LINK_MS,
  RENEW_TRIES,
  RENEWED_LINK_MS,
  STABLE_LINK_MS,
  TOKEN_LAST_MS,
  TOKEN_LAST_REQUESTS,
  TOKEN_RESERVE_MS,
  TOKEN_RESERVE_REQUESTS,
} from "./defaults.ts";

/** A client's connection too many: to be tried again when the relay says so. */
const QUOTA = { course: "asked", dropsSession: false } as const;

export interface RelayLinkOptions {
  readonly url: string;
  readonly accountToken: string | null;
  readonly sessionToken: string | null;
  /** Request one agent_status per online agent after each authentication. */
  readonly presence: boolean;
  readonly ports: Ports;
}

export interface RelayLinkEvents {
  /** `fresh`: with another session token than before, so earlier bindings cannot be taken over. */
  online(fresh: boolean): void;
  /** The link is down and will reconnect by itself. Also called after a failed attempt. */
  offline(reason: CallError): void;
  /** The link is about to be replaced: from now on, packets are sent on the next one. */
  moving(): void;
  /** It was replaced and was never down: the next one takes over the bindings. */
  moved(): void;
  /** What had to wait while the links changed, or were about to, may be sent again. */
  settled(): void;
  /** Whether no answer is awaited on the link. */
  isDrained(): boolean;
  /** It will not reconnect. */
  refused(reason: CallError): void;
  /** `early`: on the next link, while the one before it may still deliver earlier messages. */
  received(message: MessageForClient, early: boolean): void;
  /** The link before this one delivers nothing any more. */
  left(): void;
}

export class RelayLink implements MovingSide {
  readonly takesOver = false;
  state: LinkState = "idle";
  /** Why it is not online, for the calls that wait for it. */
  failure = new CallError("UNREACHABLE", "the relay is not connected yet");

  private readonly url: string;
  private readonly accountToken: string | null;
  private readonly presence: boolean;
  private readonly ports: Ports;
  private readonly events: RelayLinkEvents;

  private sessionToken: string | null;
  private tokenExpiresAt = Number.POSITIVE_INFINITY;
  /** The initial lifetime of a token that this link fetched. */
  private tokenLifeMs = Number.POSITIVE_INFINITY;
  private tokenRequests = 0;
  /** The session token of the last `online`. */
  private lastToken: string | null = null;
  private triedSession = false;

  private link: MovingLink | null = null;
  /** The session token that the next link renews; null: it is to another node. */
  private renews: string | null = null;
  /** The answer that came on it. */
  private renewed: ClientAuthenticated | null = null;
  /** Whether this relay renews a session token on a second link, as far as known. */
  private canRenew = true;
  /** When the restarting relay asked us to reconnect. */
  private movesAt: number | null = null;
  /** Restarts that the relay has announced since the link was last stable. */
  private restarts = 0;
  private readonly alarm: Alarm;
  private heardAt = 0;
  private onlineAt = 0;
  /** Attempts since the link was last stable. */
  private attempt = 0;
  /** Set by a message of the relay, only for the next reconnection. */
  private nextDelayMs: number | null = null;

  constructor(options: RelayLinkOptions, events: RelayLinkEvents) {
    this.url = options.url;
    this.accountToken = options.accountToken;
    this.sessionToken = options.sessionToken;
    this.lastToken = options.sessionToken;
    this.presence = options.presence;
    this.ports = options.ports;
    this.alarm = new Alarm(options.ports.timer);
    this.events = events;
  }

  start(): void {
    if (this.move("start")) this.dial();
  }

  /** Closes permanently. */
  stop(): void {
    if (this.move("stop")) this.drop("client closed");
  }

  /** Whether calls should wait because the links are about to change. */
  get isMoving(): boolean {
    return this.link?.isMoving === true;
  }

  /** Sends a text that the relay does not count. */
  send(text: string): void {
    if (this.state === "online") this.link?.send(text);
  }

  /** Sends a packet, bare or enveloped: one of the session token's 10,000 requests. */
  sendRequest(text: string): void {
    this.tokenRequests++;
    this.send(text);
  }

  /** Whether a fresh session token should be fetched at the next quiet moment, or in any case. */
  renewal(): "no" | "soon" | "now" {
    if (this.state !== "online" || this.accountToken === null) return "no";
    const requestsLeft = SESSION_MAX_REQUESTS - this.tokenRequests;
    const msLeft = this.tokenExpiresAt - this.ports.timer.now();
    // A short-lived token has a smaller reserve, or a new one would be due again and again.
    const lastMs = Math.min(TOKEN_LAST_MS, this.tokenLifeMs / 4);
    const reserveMs = Math.min(TOKEN_RESERVE_MS, this.tokenLifeMs / 2);
    if (requestsLeft <= TOKEN_LAST_REQUESTS || msLeft <= lastMs) return "now";
    return requestsLeft <= TOKEN_RESERVE_REQUESTS || msLeft <= reserveMs ? "soon" : "no";
  }

  /**
   * Fetches a fresh session token on a second link, which takes over the bindings of this one.
   * False if only `renew` can do it.
   */
  renewBeside(): boolean {
    if (!this.canRenew || this.sessionToken === null) return false;
    if (this.link?.isSettled) this.moveIn(0, this.sessionToken);
    return true;
  }

  /** Reconnects at once, with the account token. */
  renew(): void {
    this.sessionToken = null;
    // A relay whose tokens hardly live must not be asked in a tight loop.
    if (this.stable()) this.nextDelayMs = 0;
    this.lose(new CallError("UNREACHABLE", "fetching a fresh session token"), "renewing");
  }

  private move(event: LinkEvent): boolean {
    const next = nextLinkState(this.state, event);
    if (next === null) return false;
    this.state = next;
    return true;
  }

  private dial(): void {
    this.attempt++;
    this.alarm.set(CONNECT_TIMEOUT_MS, () => this.loseBecause("no connection in time"));
    this.link = new MovingLink(this.url, this.ports, this);
  }

  closed(link: MovingLink, code: number, reason: string): void {
    if (this.link !== link) return;
    this.link = null;
    if (this.movesAt !== null && this.nextDelayMs === null) {
      const waitMs = Math.max(0, this.movesAt - this.ports.timer.now());
      this.nextDelayMs = Math.round(waitMs + randomFraction(this.ports.random, 0) * 500);
    }
    if (this.state === "connecting" && reason !== "") this.loseBecause(reason);
    else this.loseBecause(`the connection closed (${code}${reason === "" ? "" : ` ${reason}`})`);
  }

  opened(): void {
    if (!this.move("opened")) return;
    this.heardAt = this.ports.timer.now();
    this.alarm.set(AUTH_TIMEOUT_MS, () => this.loseBecause("no answer to auth in time"));
    this.sendAuth();
  }

  private sendAuth(): void {
    this.triedSession = this.sessionToken !== null;
    const token = this.sessionToken ?? this.accountToken ?? "";
    this.link?.send(encodeClientAuth(token, this.triedSession, this.presence));
  }

  received(text: string, early: boolean): void {
    this.heardAt = this.ports.timer.now();
    const message = decodeForClient(text);
    if (message.kind === "ping") {
      this.link?.send(PONG_TEXT);
    } else if (this.state === "authenticating" && message.kind === "authenticated") {
      this.authenticated(message);
    } else if (this.state === "authenticating" && message.kind === "authFailed") {
      this.authFailed(message);
    } else if (message.kind === "pong") {
      // It is behind all that the relay read from this link.
      this.link?.move();
    } else if (message.kind !== "error" || !this.relayError(message)) {
      if (this.state === "online") this.events.received(message, early);
    }
  }

  private authenticated(message: ClientAuthenticated): void {
    const fresh = this.takeToken(message);
    this.canRenew = true;
    this.move("accepted");
    this.onlineAt = this.ports.timer.now();
    this.nextDelayMs = null;
    this.watch();
    this.events.online(fresh);
  }

  /** Returns whether it is another session token than the last one. */
  private takeToken({ sessionToken: token, expiresIn }: ClientAuthenticated): boolean {
    const now = this.ports.timer.now();
    const fresh = token === null || token !== this.lastToken;
    if (fresh) this.tokenRequests = 0;
    const lifeMs = (expiresIn ?? 0) * 1000;
    this.tokenExpiresAt = lifeMs > 0 ? now + lifeMs : Number.POSITIVE_INFINITY;
    if (fresh) this.tokenLifeMs = this.tokenExpiresAt - now;
    this.sessionToken = token;
    this.lastToken = token;
    return fresh;
  }

  /**
   * Handles a failed auth_response. The connection stays open for one more attempt with the other
   * token.
   */
  private authFailed({ code: given, error, retryAfter }: AuthFailed): void {
    const code = given ?? "";
    const retryAfterS = retryAfter ?? 0;
    const { course, dropsSession } = code === "QUOTA_EXCEEDED" ? QUOTA : authFailure(code);
    if (this.triedSession && dropsSession && this.accountToken !== null) {
      this.sessionToken = null;
      if (retryAfterS <= 0) {
        this.sendAuth();
        return;
      }
    }
    const message = `the relay refused the credentials: ${error}`;
    const notNow = `the relay refused the login for now: ${error}`;
    const later = { relayCode: code, retryable: true };
    if (course === "asked") {
      this.nextDelayMs = retryAfterS > 0 ? askedMs(retryAfterS) : null;
      this.lose(new CallError("REFUSED", notNow, later), "refused");
    } else if (course === "spread" || (dropsSession && retryAfterS > 0)) {
      const leastMs = Math.max(REFUSED_WAIT_MS, askedMs(retryAfterS));
      this.nextDelayMs = Math.round(leastMs * (1 + randomFraction(this.ports.random, 0) / 4));
      const waiting = `${message} (locked out for ${Math.ceil(askedMs(retryAfterS) / 1000)} s)`;
      this.lose(new CallError("REFUSED", waiting, later), "refused");
    } else if (course === "backoff" && !(dropsSession && this.accountToken === null)) {
      this.lose(new CallError("UNREACHABLE", notNow, { relayCode: code }), "refused");
    } else {
      this.refuse(new CallError("REFUSED", message, { relayCode: code }));
    }
  }

  /** Handles errors about the link itself, after which the relay closes; true if it was one. */
  private relayError(message: RelayError): boolean {
    const { code } = message;
    if (code === "RESTARTING") {
      const asked = askedMs(message.reconnectIn ?? 0);
      // All nodes may be restarting: who comes again and again keeps them busy.
      if (this.stable()) this.restarts = 0;
      if (this.movesAt === null) this.restarts++;
      const again = this.restarts - 1;
      const least = again > 0 ? Math.max(asked, BACKOFF_FIRST_MS) : asked;
      const waitMs = Math.max(asked, doubled(least, again, BACKOFF_MAX_MS));
      this.movesAt = this.ports.timer.now() + waitMs;
      this.nextDelayMs = null;
      // If the relay repeats itself, there is no second attempt while one is in progress.
      if (this.state === "online") this.moveIn(waitMs, null);
      return true;
    }
    const failure = linkFailure(code);
    if (failure?.course === "backoff" && failure.dropsSession) {
      this.sessionToken = null;
      if (this.accountToken === null) {
        const text = `the session token is over: ${message.error}`;
        this.refuse(new CallError("REFUSED", text, { relayCode: code }));
        return true;
      }
      // A relay that refuses every new token must not be asked in a tight loop.
      if (this.stable()) this.nextDelayMs = 0;
      return true;
    }
    return false;
  }

  // ---- the next link; see MovingSide

  /** `renews`: see the field. */
  private moveIn(ms: number, renews: string | null): void {
    if (this.link?.moveIn(ms)) this.renews = renews;
  }

  login(next: Link): void {
    const { renews } = this;
    const token = renews === null ? this.sessionToken : this.accountToken;
    const isSession = renews === null && token !== null;
    next.send(encodeClientAuth(token ?? this.accountToken ?? "", isSession, this.presence, renews));
  }

  /**
   * A refusal is not tried again here: the reconnection that follows knows how long to wait.
   */
  answered(text: string): LoginAnswer {
    const message = decodeForClient(text);
    if (message.kind !== "authenticated" && message.kind !== "authFailed") return null;
    const isRenewal = this.renews !== null;
    if (message.kind === "authFailed") {
      const { course, dropsSession } = authFailure(message.code);
      if (course === "backoff" && !dropsSession) return "failed";
    } else if (!isRenewal || message.renewed) {
      if (isRenewal) this.renewed = message;
      return "accepted";
    }
    // An older relay accepts the login without renewing the session token that this names.
    if (isRenewal) this.canRenew = false;
    return "refused";
  }

  retries(tries: number): boolean {
    if (this.renews === null || tries < RENEW_TRIES) return true;
    this.canRenew = false;
    return false;
  }

  moving(): void {
    this.events.moving();
    // What was sent before has then reached the relay, so nothing on the next link overtakes it.
    if (this.renewed !== null) this.link?.send(PING_TEXT);
  }

  /**
   * Not before all answers have arrived: an answer on the old link that arrives after a later one
   * on the new link would be refused, because a session never accepts an older `seq`. A renewal
   * waits for the pong instead, because its messages are put in order.
   */
  isDrained(): boolean {
    return this.renewed === null && this.events.isDrained();
  }

  moved(held: number): number {
    const { renewed } = this;
    const now = this.ports.timer.now();
    this.movesAt = null;
    this.heardAt = now;
    this.onlineAt = now;
    this.renews = null;
    this.renewed = null;
    if (renewed !== null) {
      this.takeToken(renewed);
      this.tokenRequests = held;
    }
    this.events.moved();
    return renewed === null ? LEFT_LINK_MS : RENEWED_LINK_MS;
  }

  settled(): void {
    this.renewed = null;
    this.events.settled();
  }

  receivedLeft(text: string): void {
    const message = decodeForClient(text);
    if (this.state === "online" && isOfSession(message)) this.events.received(message, false);
  }

  left(): void {
    this.events.left();
  }

  /** The relay's pings show that the link works; one timer follows the last message. */
  private watch(): void {
    const quietMs = this.ports.timer.now() - this.heardAt;
    if (quietMs >= LINK_SILENCE_MS) {
      this.loseBecause("the relay fell silent");
      return;
    }
    // Whole ones: a fraction may be too small to move a clock that counts them.
    this.alarm.set(Math.ceil(LINK_SILENCE_MS - quietMs), () => this.watch());
  }

  private stable(): boolean {
    return this.state === "online" && this.ports.timer.now() - this.onlineAt >= STABLE_LINK_MS;
  }

  private loseBecause(reason: string): void {
    this.lose(new CallError("UNREACHABLE", `no connection to the relay: ${reason}`), reason);
  }

  private lose(failure: CallError, reason: string): void {
    if (this.stable()) {
      this.attempt = 0;
      this.restarts = 0;
    }
    if (!this.move("lost")) return;
    this.drop(reason);
    this.failure = failure;
    const backoffMs = doubled(BACKOFF_FIRST_MS, this.attempt, BACKOFF_MAX_MS);
    const delayMs = this.nextDelayMs ?? jittered(backoffMs, randomFraction(this.ports.random, 0));
    this.nextDelayMs = null;
    this.alarm.set(delayMs, () => {
      if (this.move("elapsed")) this.dial();
    });
    this.ports.log("warn", "link lost", { reason, retryInMs: delayMs });
    this.events.offline(failure);
  }

  private refuse(failure: CallError): void {
    if (!this.move("refused")) return;
    this.drop("refused");
    this.failure = failure;
    this.ports.log("error", "link refused", { reason: failure.message });
    this.events.refused(failure);
  }

  /** Drops the connection and the timer; later events of that connection are ignored. */
  private drop(reason: string): void {
    this.alarm.clear();
    const link = this.link;
    this.link = null;
    this.movesAt = null;
    this.renews = null;
    this.renewed = null;
    link?.close(CLOSE_NORMAL, reason);
  }
}

/** A packet, or the relay's word about one that was sent. */
const isOfSession = (message: MessageForClient): boolean =>
  message.kind === "packet" || (message.kind === "error" && message.sid !== null);

/** A wait requested by the relay, within our maximum. */
const askedMs = (seconds: number): number => Math.min(seconds * 1000, MAX_ASKED_WAIT_MS);
