/**
 * Make before break on Node. A cluster node that restarts announces this and keeps the link. The
 * agent then opens a second link to another node, which claims the agent, and only then does the
 * first link end. The core sees a single link all the time. This is not in the core, because boards
 * can hold only one connection and have no bytes to spare.
 *
 *     settled --RESTARTING--> waiting --its time--> dialling --opened--> asking --+
 *        ^                      ^                      |                   |      |
 *        |                      +------- failed -------+---- failed -------+   accepted
 *        +--------- the first link has ended, or SETTLE_MS -------- arriving <----+
 *
 *     any of them --the core closes--> closing
 *
 * Nothing is sent on the first link from the login on the second: its node reads what was sent
 * before, and nothing afterwards. Messages that arrive on the second wait for the end of the first,
 * because a session refuses packets that were overtaken.
 */
import { AUTH_TIMEOUT_MS, CLOSE_NORMAL, OUTBOX_BYTES } from "@blindrelay/protocol";
import {
  type AuthFailed,
  decodeForAgent,
  encodeAgentAuth,
  PONG_TEXT,
} from "@blindrelay/protocol/wire";
import { BACKOFF_FIRST_MS, BACKOFF_MAX_MS, MAX_ASKED_WAIT_MS } from "../core/defaults.ts";
import { authFailure } from "../core/failures.ts";
import type { LinkOptions } from "../core/link.ts";
import type { Link, LinkEvents, LinkPort } from "../ports.ts";

/** How long a node that has handed the agent over may take to close its link. */
const SETTLE_MS = 2000;
/** The relay's own messages are shorter, and only those are read here. */
const MAX_NOTICE_LENGTH = 512;

type Phase = "settled" | "waiting" | "dialling" | "asking" | "arriving" | "closing";

/** A subset of the core's options; `ports.link` makes the links. */
export type MovingOptions = Pick<
  LinkOptions,
  "agentId" | "relayToken" | "runtime" | "firmwareVersion" | "ports"
>;

/** A LinkPort with links that survive the restart of their node. */
export const movingLinks = (options: MovingOptions): LinkPort => ({
  connect: (url, events) => new MovingLink(url, events, options),
});

class MovingLink implements Link {
  private readonly url: string;
  private readonly events: LinkEvents;
  private readonly options: MovingOptions;

  private phase: Phase = "settled";
  private current: Link;
  /** A second link has logged in, or may have, and so is what replaces the first one. */
  private replacesItself = false;
  /** How the first link ended while the second one was logging in. */
  private end: { readonly code: number; readonly reason: string } | null = null;
  private next: Link | null = null;
  private sessionToken: string | null = null;
  private triedSession = false;
  /** The notice of the restart, which the core needs if the link ends early. */
  private notice: string | null = null;
  private readonly outgoing: string[] = [];
  private outgoingBytes = 0;
  private readonly incoming: string[] = [];
  private incomingBytes = 0;
  private timer: unknown = null;
  private tries = 0;
  private askedAt = 0;

  constructor(url: string, events: LinkEvents, options: MovingOptions) {
    this.url = url;
    this.events = events;
    this.options = options;
    this.current = this.connect();
  }

  send(text: string): void {
    if (this.phase === "asking") {
      this.outgoing.push(text);
      this.outgoingBytes += text.length;
    } else if (this.phase === "arriving") this.next?.send(text);
    else this.current.send(text);
  }

  queuedBytes(): number {
    const link = this.phase === "arriving" ? this.next : this.current;
    return this.outgoingBytes + (link?.queuedBytes?.() ?? 0);
  }

  close(code: number, reason: string): void {
    const { end } = this;
    this.dropNext();
    this.phase = "closing";
    this.notice = null;
    if (end === null) this.current.close(code, reason);
    // Without the second link nothing is left, and its end is no longer reported.
    else this.arm(0, () => this.events.closed(end.code, end.reason));
  }

  private connect(): Link {
    const link: Link = this.options.ports.link.connect(this.url, {
      opened: () => {
        if (link === this.next) this.ask(link);
        else if (link === this.current) this.events.opened();
      },
      received: (text) => {
        if (link === this.next) this.receivedNext(link, text);
        else if (link === this.current) this.received(text);
      },
      closed: (code, reason) => {
        if (link === this.next) this.failed();
        else if (link === this.current) this.closed(code, reason);
      },
    });
    return link;
  }

  // ---- the first link

  private received(text: string): void {
    const message = isNotice(text) ? decodeForAgent(text) : null;
    const handsOver = this.phase === "asking" || this.phase === "arriving";
    if (message?.kind === "error" && message.code === "RESTARTING") {
      this.restarts(text, message.reconnectIn ?? 0);
    } else if (message?.kind === "error" && message.code === "REPLACED" && this.replacesItself) {
      // Replaced by our own second link, even if that one has ended meanwhile.
    } else if (message?.kind === "ping" && handsOver) {
      this.current.send(PONG_TEXT);
    } else {
      if (message?.kind === "authenticated") this.sessionToken = message.sessionToken;
      this.events.received(text);
    }
  }

  private closed(code: number, reason: string): void {
    this.end = { code, reason };
    if (this.phase === "arriving") this.settle();
    else if (this.phase !== "asking") this.report();
  }

  /** If the relay repeats itself, there is no second attempt while one is in progress. */
  private restarts(text: string, reconnectInS: number): void {
    if (this.phase !== "settled") return;
    this.notice = text;
    this.tries = 0;
    this.dialIn(Math.min(reconnectInS * 1000, MAX_ASKED_WAIT_MS));
  }

  // ---- the second link

  private dialIn(ms: number): void {
    this.phase = "waiting";
    this.arm(ms, () => {
      this.phase = "dialling";
      this.notice = null;
      this.arm(AUTH_TIMEOUT_MS, () => this.failed());
      this.next = this.connect();
    });
  }

  private ask(next: Link): void {
    this.phase = "asking";
    this.replacesItself = true;
    this.askedAt = this.options.ports.timer.now();
    this.triedSession = this.sessionToken !== null;
    this.login(next);
  }

  private login(next: Link): void {
    const { agentId, relayToken, runtime, firmwareVersion = null } = this.options;
    const token = this.triedSession ? (this.sessionToken as string) : relayToken;
    next.send(encodeAgentAuth(token, this.triedSession, agentId, runtime, firmwareVersion));
  }

  private receivedNext(next: Link, text: string): void {
    if (this.phase === "arriving") {
      this.incoming.push(text);
      this.incomingBytes += text.length;
      if (this.incomingBytes > OUTBOX_BYTES) this.settle();
      return;
    }
    const message = decodeForAgent(text);
    if (message.kind === "ping") next.send(PONG_TEXT);
    else if (message.kind === "authenticated") this.arrive(next, message.sessionToken);
    else if (message.kind === "authFailed") this.refused(next, message);
  }

  private arrive(next: Link, sessionToken: string | null): void {
    const { log, timer } = this.options.ports;
    this.phase = "arriving";
    this.sessionToken = sessionToken;
    log("info", "moved to another link", { heldMs: Math.round(timer.now() - this.askedAt) });
    this.sendHeld(next);
    if (this.end === null) this.arm(SETTLE_MS, () => this.settle());
    else this.settle();
  }

  /** The second link is the only one now. */
  private settle(): void {
    const { current, next, end } = this;
    if (next === null) return;
    this.disarm();
    this.phase = "settled";
    this.replacesItself = false;
    this.current = next;
    this.next = null;
    this.end = null;
    if (end === null) current.close(CLOSE_NORMAL, "moved");
    this.incomingBytes = 0;
    for (const text of this.incoming.splice(0)) this.received(text);
  }

  private refused(next: Link, { code, retryAfter }: AuthFailed): void {
    const failure = authFailure(code);
    if (failure.dropsSession) this.sessionToken = null;
    if (this.triedSession && failure.dropsSession && (retryAfter ?? 0) <= 0) {
      // The connection stays open for an attempt with the other token (section 3).
      this.triedSession = false;
      this.login(next);
    } else if (failure.course === "backoff") {
      this.failed();
    } else {
      // The core knows how long to wait, once the first link has ended.
      this.giveUp();
    }
  }

  /** The load balancer may soon know a better node, and the first link is kept for a while. */
  private failed(): void {
    this.giveUp();
    if (this.end === null) {
      this.dialIn(Math.min(BACKOFF_FIRST_MS * 2 ** this.tries, BACKOFF_MAX_MS));
      this.tries++;
    }
  }

  /** The first link stays in use until its node closes it. */
  private giveUp(): void {
    this.dropNext();
    this.phase = "waiting";
    if (this.end === null) this.sendHeld(this.current);
    else this.report();
  }

  private report(): void {
    const { code, reason } = this.end as NonNullable<typeof this.end>;
    this.dropNext();
    if (this.notice !== null) this.events.received(this.notice);
    this.events.closed(code, reason);
  }

  private sendHeld(link: Link): void {
    this.outgoingBytes = 0;
    for (const text of this.outgoing.splice(0)) link.send(text);
  }

  private dropNext(): void {
    const { next } = this;
    this.disarm();
    this.next = null;
    next?.close(CLOSE_NORMAL, "not needed");
  }

  private arm(ms: number, fn: () => void): void {
    this.disarm();
    this.timer = this.options.ports.timer.set(ms, () => {
      this.timer = null;
      fn();
    });
  }

  private disarm(): void {
    if (this.timer !== null) this.options.ports.timer.clear(this.timer);
    this.timer = null;
  }
}

/** Avoids parsing packets twice. */
const isNotice = (text: string): boolean =>
  text.length <= MAX_NOTICE_LENGTH && /RESTARTING|REPLACED|"auth_response"|"ping"/.test(text);
