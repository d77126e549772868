/**
 * The client's link to the relay (section 3): connect, authenticate, stay connected, reconnect. Its
 * states are those of the agent's link: protocol/src/link-states.ts.
 *
 * A refusal is final if only a person can fix it (a wrong or revoked token). Lockouts are waited
 * out, for at least 120 s, so that one stale client does not lock out its whole address.
 */
import {
  AUTH_TIMEOUT_MS,
  CLOSE_NORMAL,
  type LinkEvent,
  type LinkState,
  nextLinkState,
  REFUSED_WAIT_MS,
  SESSION_MAX_REQUESTS,
} from "@blindrelay/protocol";
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
import { backoffMs, randomFraction } from "./backoff.ts";
import {
  BACKOFF_BASE_MS,
  BACKOFF_CEILING_MS,
  BESIDE_DOUBLINGS,
  BESIDE_RETRY_MS,
  CONNECT_TIMEOUT_MS,
  DEAD_RELAY_MS,
  DRAIN_LIMIT_MS,
  LEFT_LINK_MS,
  MAX_ASKED_WAIT_MS,
  RENEW_TRIES,
  RENEWED_LINK_MS,
  SETTLE_MS,
  STABLE_LINK_MS,
  TOKEN_LAST_MS,
  TOKEN_LAST_REQUESTS,
  TOKEN_RESERVE_MS,
  TOKEN_RESERVE_REQUESTS,
} from "./defaults.ts";

/** Refusals that say nothing about the credentials. */
const NOT_OUR_FAULT = ["UNAVAILABLE", "INTERNAL", "RESTARTING"];
/** Refusals of the connection, to be tried again when the relay says so. */
const LATER = ["QUOTA_EXCEEDED", "RATE_LIMITED"];
/** Refusals after which a session token is still good: it was not judged, or found valid. */
const KEEPS_SESSION = [...NOT_OUR_FAULT, "QUOTA_EXCEEDED"];
/**
 * About the session token, also the one that the relay makes during a login with the account token:
 * that has ended already if its clock jumped meanwhile.
 */
const SESSION_OVER = ["SESSION_EXPIRED", "LIMIT_EXCEEDED"];

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

export class RelayLink {
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

  private link: Link | null = null;
  /** While the relay restarts: the link to the node that takes over, until it is online. */
  private beside: Link | null = null;
  private besideTimer: unknown = null;
  /** The session token that the second link renews; null: it moves to another node. */
  private renews: string | null = null;
  /** The answer that came on it. */
  private renewed: ClientAuthenticated | null = null;
  /** Whether this relay renews a session token on a second link, as far as known. */
  private canRenew = true;
  /** The previous link, for answers that are still in transit there. */
  private left: Link | null = null;
  /**
   * Held back while the links change, so that nothing is overtaken; limited by the calls in flight.
   */
  private held: string[] | null = null;
  /** The new node's notice of its own restart, if it arrives while calls wait to be sent there. */
  private besideRestarts: RelayError | null = null;
  /** Failed attempts to open it since the relay requested one. */
  private besideTries = 0;
  /** When the restarting relay asked us to reconnect. */
  private movesAt: number | null = null;
  /** Restarts that the relay has announced in a row, without a login in between. */
  private restarts = 0;
  private timer: unknown = null;
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
    return this.held !== null;
  }

  /** Sends a text that the relay does not count. */
  send(text: string): void {
    if (this.state !== "online") return;
    if (this.held !== null) this.held.push(text);
    else this.link?.send(text);
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
    if (this.besideTimer === null) this.dialBeside(this.sessionToken);
    return true;
  }

  /** Reconnects at once, with the account token. */
  renew(): void {
    this.sessionToken = null;
    this.nextDelayMs = 0;
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
    this.arm(CONNECT_TIMEOUT_MS, () => this.loseBecause("no connection in time"));
    const link = this.ports.link.connect(this.url, {
      opened: () => {
        if (this.link === link) this.authenticate();
      },
      received: (text) => {
        if (this.link === link) this.receive(text);
        else if (this.left === link) this.receiveLeft(link, text);
      },
      closed: (code, reason) => {
        if (this.link === link) this.closed(code, reason);
        else if (this.left === link) this.leftClosed();
      },
    });
    this.link = link;
  }

  private closed(code: number, reason: string): void {
    this.link = null;
    if (this.held !== null && this.beside !== null) {
      this.moveTo(this.beside);
      return;
    }
    if (this.movesAt !== null && this.nextDelayMs === null) {
      const waitMs = Math.max(0, this.movesAt - this.ports.timer.now());
      this.nextDelayMs = Math.round(waitMs + randomFraction(this.ports.random) * 500);
    }
    if (this.state === "connecting" && reason !== "") this.loseBecause(reason);
    else this.loseBecause(`the connection closed (${code}${reason === "" ? "" : ` ${reason}`})`);
  }

  private authenticate(): void {
    if (!this.move("opened")) return;
    this.heardAt = this.ports.timer.now();
    this.arm(AUTH_TIMEOUT_MS, () => this.loseBecause("no answer to auth in time"));
    this.sendAuth();
  }

  private sendAuth(): void {
    this.triedSession = this.sessionToken !== null;
    const token = this.sessionToken ?? this.accountToken ?? "";
    this.link?.send(encodeClientAuth(token, this.triedSession, this.presence));
  }

  private receive(text: string): void {
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
      if (this.renewed !== null && this.beside !== null) this.moveTo(this.beside);
    } else if (message.kind !== "error" || !this.relayError(message)) {
      if (this.state === "online") this.events.received(message, this.left !== null);
    }
  }

  private authenticated(message: ClientAuthenticated): void {
    const fresh = this.takeToken(message);
    this.canRenew = true;
    this.move("accepted");
    this.onlineAt = this.ports.timer.now();
    this.restarts = 0;
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
  private authFailed(failure: AuthFailed): void {
    const code = failure.code ?? "";
    const retryAfterS = failure.retryAfter ?? 0;
    if (this.triedSession && this.dropSession(code) && retryAfterS <= 0) {
      this.sendAuth();
      return;
    }
    const message = `the relay refused the credentials: ${failure.error}`;
    const isLoginOver = !this.triedSession && SESSION_OVER.includes(code);
    if (NOT_OUR_FAULT.includes(code) || isLoginOver) {
      this.lose(new CallError("UNREACHABLE", message, { relayCode: code }), "refused");
      return;
    }
    if (LATER.includes(code)) {
      this.nextDelayMs = retryAfterS > 0 ? askedMs(retryAfterS) : null;
      this.lose(new CallError("REFUSED", message, { relayCode: code, retryable: true }), "refused");
      return;
    }
    if (code === "LOCKED_OUT" || retryAfterS > 0) {
      const leastMs = Math.max(REFUSED_WAIT_MS, askedMs(retryAfterS));
      this.nextDelayMs = Math.round(leastMs * (1 + randomFraction(this.ports.random) / 4));
      const waiting = `${message} (locked out for ${Math.ceil(retryAfterS)} s)`;
      this.lose(new CallError("REFUSED", waiting, { relayCode: code, retryable: true }), "refused");
      return;
    }
    this.refuse(new CallError("REFUSED", message, { relayCode: code }));
  }

  /**
   * Drops a session token that was refused, if there is another one to log in with. Returns whether
   * it did.
   */
  private dropSession(code: string): boolean {
    if (this.accountToken === null || KEEPS_SESSION.includes(code)) return false;
    this.sessionToken = null;
    return true;
  }

  /** Handles errors about the link itself, after which the relay closes; true if it was one. */
  private relayError(message: RelayError): boolean {
    const { code } = message;
    if (code === "RESTARTING") {
      const asked = askedMs(message.reconnectIn ?? 0);
      // All nodes may be restarting: who comes again and again keeps them busy.
      if (this.movesAt === null) this.restarts++;
      const doubledMs = asked * 2 ** (this.restarts - 1);
      const waitMs = Math.max(asked, Math.min(doubledMs, BACKOFF_CEILING_MS));
      this.movesAt = this.ports.timer.now() + waitMs;
      this.nextDelayMs = null;
      // If the relay repeats itself, there is no second attempt while one is in progress.
      if (this.beside === null) this.armBeside(waitMs, () => this.dialBeside(null));
      return true;
    }
    if (code === "LIMIT_EXCEEDED" || code === "SESSION_EXPIRED" || code === "REVOKED") {
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

  /**
   * Make before break: a node of a cluster keeps the link until we have another one, and a renewed
   * session token needs another one. `renews`: see the field.
   */
  private dialBeside(renews: string | null): void {
    const token = renews === null ? this.sessionToken : this.accountToken;
    if (this.state !== "online" || token === null) return;
    this.renews = renews;
    const next: Link = this.ports.link.connect(this.url, {
      opened: () => {
        if (this.beside !== next) return;
        next.send(encodeClientAuth(token, renews === null, this.presence, renews));
      },
      received: (text) => {
        if (this.link === next) this.receive(text);
        else if (this.beside === next) this.receiveBeside(next, text);
        else if (this.left === next) this.receiveLeft(next, text);
      },
      closed: (code, reason) => {
        if (this.link === next) this.closed(code, reason);
        else if (this.beside === next) this.retryBeside();
        else if (this.left === next) this.leftClosed();
      },
    });
    this.beside = next;
    this.armBeside(AUTH_TIMEOUT_MS, () => this.retryBeside());
  }

  /**
   * Until it is authenticated, the old link is used, as long as the relay keeps it. A refusal is
   * not tried again here: the reconnection that follows knows how long to wait.
   */
  private receiveBeside(next: Link, text: string): void {
    const message = decodeForClient(text);
    if (message.kind === "ping") {
      next.send(PONG_TEXT);
      return;
    }
    if (this.held !== null) {
      if (message.kind === "agentStatus") this.events.received(message, false);
      else if (message.kind === "error" && message.code === "RESTARTING") {
        this.besideRestarts = message;
      }
      return;
    }
    const isAway = message.kind === "authFailed" && NOT_OUR_FAULT.includes(message.code ?? "");
    const isRefused = message.kind === "authFailed" && !(isAway && this.renews !== null);
    if (isRefused || (this.renews !== null && isOlderRelay(message))) {
      if (this.renews !== null) this.canRenew = false;
      this.dropBeside();
      return;
    }
    if (message.kind !== "authenticated" || this.state !== "online") {
      this.retryBeside();
      return;
    }
    this.events.moving();
    this.held = [];
    if (this.renews === null) {
      this.moveOnceDrained(next, this.ports.timer.now() + DRAIN_LIMIT_MS);
      return;
    }
    this.renewed = message;
    // What was sent before has then reached the relay, so nothing on the next link overtakes it.
    this.link?.send(PING_TEXT);
    this.armBeside(DRAIN_LIMIT_MS, () => this.moveTo(next));
  }

  /**
   * Not before all answers have arrived: an answer on the old link that arrives after a later one
   * on the new link would be refused, because a session never accepts an older `seq`.
   */
  private moveOnceDrained(next: Link, limit: number): void {
    this.armBeside(SETTLE_MS, () => {
      if (this.events.isDrained() || this.ports.timer.now() >= limit) this.moveTo(next);
      else this.moveOnceDrained(next, limit);
    });
  }

  private moveTo(next: Link): void {
    const now = this.ports.timer.now();
    const old = this.link;
    const { besideRestarts } = this;
    this.link = next;
    this.beside = null;
    this.besideRestarts = null;
    this.besideTries = 0;
    this.movesAt = null;
    this.restarts = 0;
    this.heardAt = now;
    this.onlineAt = now;
    if (this.renewed !== null) {
      this.takeToken(this.renewed);
      this.tokenRequests = this.held?.length ?? 0;
    }
    if (old !== null) this.leaveLater(old, this.renewed === null ? LEFT_LINK_MS : RENEWED_LINK_MS);
    else this.disarmBeside();
    this.renews = null;
    this.renewed = null;
    this.ports.log("info", "moved to another link", {});
    this.events.moved();
    this.sendHeld();
    if (besideRestarts !== null) this.relayError(besideRestarts);
  }

  private sendHeld(): void {
    const { held } = this;
    if (held === null) return;
    this.held = null;
    for (const text of held) this.send(text);
    this.events.settled();
  }

  /** Calls sent on the old link may be answered there. */
  private leaveLater(old: Link, ms: number): void {
    this.left?.close(CLOSE_NORMAL, "moved");
    this.left = old;
    this.armBeside(ms, () => this.dropBeside());
  }

  private leftClosed(): void {
    this.left = null;
    this.events.left();
  }

  private receiveLeft(old: Link, text: string): void {
    const message = decodeForClient(text);
    if (message.kind === "ping") old.send(PONG_TEXT);
    else if (this.state === "online" && isOfSession(message)) this.events.received(message, false);
  }

  private dropBeside(): void {
    const { beside, left } = this;
    this.beside = null;
    this.besideRestarts = null;
    this.renews = null;
    this.renewed = null;
    this.disarmBeside();
    this.sendHeld();
    beside?.close(CLOSE_NORMAL, "not needed");
    left?.close(CLOSE_NORMAL, "moved");
    if (left !== null) this.leftClosed();
  }

  /** The load balancer may soon know a better node; the relay keeps this link for a while. */
  private retryBeside(): void {
    const { renews } = this;
    this.dropBeside();
    if (this.state !== "online") return;
    const waitMs = BESIDE_RETRY_MS * 2 ** Math.min(this.besideTries++, BESIDE_DOUBLINGS);
    if (renews !== null && this.besideTries > RENEW_TRIES) this.canRenew = false;
    else this.armBeside(waitMs, () => this.dialBeside(renews));
  }

  private disarmBeside(): void {
    if (this.besideTimer !== null) this.ports.timer.clear(this.besideTimer);
    this.besideTimer = null;
  }

  private armBeside(ms: number, fn: () => void): void {
    this.disarmBeside();
    this.besideTimer = this.ports.timer.set(ms, () => {
      this.besideTimer = null;
      fn();
    });
  }

  /** The relay's pings show that the link works; one timer follows the last message. */
  private watch(): void {
    const quietMs = this.ports.timer.now() - this.heardAt;
    if (quietMs >= DEAD_RELAY_MS) {
      this.loseBecause("the relay fell silent");
      return;
    }
    this.arm(DEAD_RELAY_MS - quietMs, () => this.watch());
  }

  private stable(): boolean {
    return this.state === "online" && this.ports.timer.now() - this.onlineAt >= STABLE_LINK_MS;
  }

  private loseBecause(reason: string): void {
    this.lose(new CallError("UNREACHABLE", `no connection to the relay: ${reason}`), reason);
  }

  private lose(failure: CallError, reason: string): void {
    if (this.stable()) this.attempt = 0;
    if (!this.move("lost")) return;
    this.drop(reason);
    this.failure = failure;
    const delayMs =
      this.nextDelayMs ??
      backoffMs(this.ports.random, this.attempt, BACKOFF_BASE_MS, BACKOFF_CEILING_MS);
    this.nextDelayMs = null;
    this.arm(delayMs, () => {
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
    if (this.timer !== null) this.ports.timer.clear(this.timer);
    this.timer = null;
    const link = this.link;
    this.link = null;
    this.movesAt = null;
    this.besideTries = 0;
    this.dropBeside();
    link?.close(CLOSE_NORMAL, reason);
  }

  private arm(ms: number, fn: () => void): void {
    if (this.timer !== null) this.ports.timer.clear(this.timer);
    this.timer = this.ports.timer.set(ms, () => {
      this.timer = null;
      fn();
    });
  }
}

/** A packet, or the relay's word about one that was sent. */
const isOfSession = (message: MessageForClient): boolean =>
  message.kind === "packet" || (message.kind === "error" && message.sid !== null);

/** Whether it accepted a login without renewing the session token that this named. */
const isOlderRelay = (message: MessageForClient): boolean =>
  message.kind === "authenticated" && !message.renewed;

/** A wait requested by the relay, within our maximum. */
const askedMs = (seconds: number): number => Math.min(seconds * 1000, MAX_ASKED_WAIT_MS);
