/**
 * Make before break, for agents and clients that can hold two connections. A cluster node that
 * restarts announces this and keeps the link; a client's session token is renewed on a second link.
 * That one is opened and logged in beside the first, which is left only then. The core above sees a
 * single link all the time.
 *
 *     settled --moveIn--> waiting --elapsed--> dialling --opened--> asking --accepted--> draining
 *      ^   ^                 ^                    |                  |  |                   |
 *      |   |                 +------ failed ------+----- failed -----+  |                   |
 *      |   +----------------------------- refused ----------------------+                   |
 *      +------------------------------- move: the next link is the current one -------------+
 *
 *     any of them --close, or the current link ends and none is being logged in--> closed
 *
 * After a move the link that was left may still deliver, for `leaveMs` at most. From the login of
 * an agent (`takesOver`), the first link's node reads what was sent before, and nothing afterwards;
 * messages on the second wait for the end of the first, because a session refuses packets that were
 * overtaken. A client may use both links, so it first waits for the answers on the first one.
 */
import type { Link, LinkPort, Log, TimerPort } from "../ports.ts";
import { AUTH_TIMEOUT_MS, CLOSE_NORMAL, OUTBOX_BYTES } from "../spec.ts";
import { decodeForAgent } from "../wire/for-agent.ts";
import { PONG_TEXT } from "../wire/ping.ts";
import { Alarm } from "./alarm.ts";
import { BACKOFF_FIRST_MS, BACKOFF_MAX_MS } from "./defaults.ts";
import { doubled } from "./jitter.ts";

export { Alarm };

/** By then, what was sent on one link has reached its agent, and the next link can be used. */
const SETTLE_MS = 100;
/** How long the answers of earlier calls are waited for before the links change anyway. */
const DRAIN_LIMIT_MS = 2000;
/** A ping is shorter than this. */
const SHORT_LENGTH = 64;

type Phase = "settled" | "waiting" | "dialling" | "asking" | "draining" | "closed";

/**
 * What a message on the next link means. `again`: log in once more on it; `failed`: try another one
 * later; `refused`: do not; null: nothing.
 */
export type LoginAnswer = "accepted" | "again" | "failed" | "refused" | null;

/** The agent's or the client's side of a moving link. */
export interface MovingSide {
  /** The relay ends the current link when the next one has logged in. */
  readonly takesOver: boolean;
  login(next: Link): void;
  answered(text: string): LoginAnswer;
  /** Whether to try another link, after `tries` of them failed; absent: always. */
  retries?(tries: number): boolean;
  /** Messages are held back from now on, and will be sent on the next link. */
  moving(): void;
  /** Whether nothing is awaited on the current link. Not asked if `takesOver`. */
  isDrained?(): boolean;
  /**
   * The next link is the current one, and `held` messages follow on it. Returns for how many
   * milliseconds the one before it may still deliver.
   */
  moved(held: number): number;
  /** What was held back has been sent. */
  settled?(): void;
  /** The link that was left delivers nothing any more. */
  left?(): void;
  opened(): void;
  /** `early`: the link that was left may still deliver earlier messages. */
  received(text: string, early: boolean): void;
  receivedLeft(text: string): void;
  closed(link: MovingLink, code: number, reason: string): void;
}

interface MovingPorts {
  readonly link: LinkPort;
  readonly timer: TimerPort;
  readonly log: Log;
}

export class MovingLink implements Link {
  private readonly url: string;
  private readonly ports: MovingPorts;
  private readonly side: MovingSide;

  private phase: Phase = "settled";
  private current: Link;
  private next: Link | null = null;
  private previous: Link | null = null;
  /** How the current link ended while the next one was logging in. */
  private end: { readonly code: number; readonly reason: string } | null = null;
  private outgoing: string[] = [];
  private outgoingBytes = 0;
  private incoming: string[] = [];
  private incomingBytes = 0;
  private readonly alarm: Alarm;
  /** Attempts at the next link, with the one that is waited for or under way. */
  private tries = 0;
  private askedAt = 0;

  constructor(url: string, ports: MovingPorts, side: MovingSide) {
    this.url = url;
    this.ports = ports;
    this.side = side;
    this.alarm = new Alarm(ports.timer);
    this.current = this.connect();
  }

  /** Whether what is sent waits for the next link. */
  get isMoving(): boolean {
    if (this.phase === "asking") return this.side.takesOver || this.end !== null;
    return this.phase === "draining";
  }

  /** Whether no other link is used or wanted. */
  get isSettled(): boolean {
    return this.phase === "settled" && this.previous === null;
  }

  send(text: string): void {
    // A pong is for the link that asked.
    if (this.isMoving && text !== PONG_TEXT) {
      this.outgoing.push(text);
      this.outgoingBytes += text.length;
    } else this.current.send(text);
  }

  queuedBytes(): number {
    return this.outgoingBytes + (this.current.queuedBytes?.() ?? 0);
  }

  close(code: number, reason: string): void {
    const { end } = this;
    this.phase = "closed";
    this.incoming = [];
    this.leave();
    this.dropNext();
    if (end === null) this.current.close(code, reason);
    else this.alarm.set(0, () => this.report());
  }

  /**
   * Opens another link after a while. False: one is being opened or waited for already, or the link
   * is closed.
   */
  moveIn(ms: number): boolean {
    if (this.phase !== "settled") return false;
    this.tries = 1;
    this.dialIn(ms);
    return true;
  }

  /** Makes the next link the current one, if it has logged in. */
  move(): void {
    const { current, next, end } = this;
    if (this.phase !== "draining" || next === null) return;
    this.alarm.clear();
    this.previous?.close(CLOSE_NORMAL, "moved");
    this.current = next;
    this.next = null;
    this.end = null;
    this.previous = end === null ? current : null;
    const heldMs = Math.round(this.ports.timer.now() - this.askedAt);
    this.ports.log("info", "moved to another link", { heldMs });
    const leaveMs = this.side.moved(this.outgoing.length);
    // Not earlier: what is sent meanwhile must not overtake what was held back.
    this.phase = "settled";
    if (end === null) this.alarm.set(leaveMs, () => this.leave());
    this.sendHeld();
    this.receiveHeld();
  }

  private connect(): Link {
    const link: Link = this.ports.link.connect(this.url, {
      opened: () => {
        if (link === this.next) this.ask(link);
        else if (link === this.current && this.phase !== "closed") this.side.opened();
      },
      received: (text) => {
        if (this.phase === "closed") return;
        if (link === this.current) this.received(text);
        else if (link === this.next) this.receivedNext(link, text);
        else if (link !== this.previous) return;
        else if (isPing(text)) link.send(PONG_TEXT);
        else this.side.receivedLeft(text);
      },
      closed: (code, reason) => {
        if (link === this.current) this.closed(code, reason);
        else if (link === this.next) this.failed();
        else if (link === this.previous) this.leave();
      },
    });
    return link;
  }

  private received(text: string): void {
    if (this.previous !== null && this.side.takesOver) this.holdReceived(text);
    else this.side.received(text, this.previous !== null);
  }

  private closed(code: number, reason: string): void {
    const wasMoving = this.isMoving;
    this.end = { code, reason };
    if (this.phase === "draining") this.move();
    else if (this.phase !== "asking") this.report();
    else if (!wasMoving) this.side.moving();
  }

  private report(): void {
    const { code, reason } = this.end as NonNullable<typeof this.end>;
    this.end = null;
    this.dropNext();
    // What waited for the end of the other link came first.
    this.leave();
    this.phase = "closed";
    this.side.closed(this, code, reason);
  }

  // ---- the next link

  private dialIn(ms: number): void {
    this.phase = "waiting";
    this.alarm.set(ms, () => {
      // Its own timer, if it still had one, gave way to this one.
      this.leave();
      if (this.phase !== "waiting") return;
      this.phase = "dialling";
      this.alarm.set(AUTH_TIMEOUT_MS, () => this.failed());
      this.next = this.connect();
    });
  }

  private ask(next: Link): void {
    this.phase = "asking";
    this.askedAt = this.ports.timer.now();
    if (this.side.takesOver) this.side.moving();
    this.side.login(next);
  }

  private receivedNext(next: Link, text: string): void {
    if (this.phase === "draining") {
      this.holdReceived(text);
      return;
    }
    if (isPing(text)) {
      next.send(PONG_TEXT);
      return;
    }
    const answer = this.side.answered(text);
    if (answer === "accepted") this.accepted();
    else if (answer === "again") this.side.login(next);
    else if (answer === "failed") this.failed();
    else if (answer === "refused") this.stayHere();
  }

  private accepted(): void {
    if (!this.isMoving) this.side.moving();
    this.phase = "draining";
    if (this.end !== null || this.side.takesOver) this.move();
    else this.drain(this.ports.timer.now() + DRAIN_LIMIT_MS);
  }

  private drain(limit: number): void {
    this.alarm.set(SETTLE_MS, () => {
      if (this.side.isDrained?.() || this.ports.timer.now() >= limit) this.move();
      else this.drain(limit);
    });
  }

  /** The load balancer may soon know a better node, and the first link is kept for a while. */
  private failed(): void {
    // First: whoever hears that it is settled may want another link at once.
    if (this.end === null && this.side.retries?.(this.tries) !== false) {
      this.dropNext();
      this.dialIn(doubled(BACKOFF_FIRST_MS, this.tries - 1, BACKOFF_MAX_MS));
      this.tries++;
      this.sendHeld();
    } else this.stayHere();
  }

  /** The current link stays in use until its node closes it. */
  private stayHere(): void {
    this.dropNext();
    this.phase = "settled";
    if (this.end === null) this.sendHeld();
    else this.report();
  }

  private dropNext(): void {
    const { next } = this;
    this.alarm.clear();
    this.next = null;
    next?.close(CLOSE_NORMAL, "not needed");
  }

  // ---- the link that was left

  private leave(): void {
    const { previous } = this;
    if (previous === null) return;
    this.previous = null;
    previous.close(CLOSE_NORMAL, "moved");
    this.side.left?.();
    this.receiveHeld();
  }

  // ---- what is held back

  private sendHeld(): void {
    const texts = this.outgoing;
    this.outgoing = [];
    this.outgoingBytes = 0;
    for (const text of texts) this.send(text);
    this.side.settled?.();
  }

  private holdReceived(text: string): void {
    this.incoming.push(text);
    this.incomingBytes += text.length;
    if (this.incomingBytes <= OUTBOX_BYTES) return;
    this.move();
    this.leave();
  }

  private receiveHeld(): void {
    const texts = this.incoming;
    this.incoming = [];
    this.incomingBytes = 0;
    for (const text of texts) this.received(text);
  }
}

const isPing = (text: string): boolean =>
  text.length <= SHORT_LENGTH && decodeForAgent(text).kind === "ping";
