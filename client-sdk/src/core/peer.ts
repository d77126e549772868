/**
 * One agent as a client sees it: the calls that wait for it, the session that carries them, and
 * what happens to them when that session ends. Calls wait here until a session is open; once sent
 * they belong to the session, until an answer, their deadline, or the session's end.
 *
 * The relay's messages are unproven, so none of them makes a call that is not idempotent be sent
 * again other than byte for byte: a lying relay cannot make an agent do something twice.
 */
import {
  BACKOFF_MAX_MS,
  doubled,
  jittered,
  randomFraction,
  SESSION_RENEW_MS,
} from "@blindrelay/protocol";
import { Alarm } from "@blindrelay/protocol/moving-link";
import { CallError } from "../errors.ts";
import {
  DROPPED_CEILING_MS,
  MAX_BYTES_PER_AGENT,
  MAX_IN_FLIGHT_PER_AGENT,
  MAX_RETIRING,
  OFFLINE_GRACE_MS,
  RESUBSCRIBE_BASE_MS,
  STABLE_SESSION_MS,
} from "./defaults.ts";
import { failed, isTooLate, type Outcome } from "./jsonrpc.ts";
import { MovingEvents } from "./moving-events.ts";
import type { Call, Missing, PeerSessionOptions } from "./session.ts";
import { type PacketHost, PeerSession, type PeerSessionEvents } from "./session.ts";

/** Errors of the relay after which the same bytes may be delivered a moment later. */
const RESEND_LATER = ["RATE_LIMITED", "SLOW_CONSUMER", "UNAVAILABLE", "INTERNAL"];

/** The core around a peer. */
export interface PeerHost extends PacketHost {
  /** Calls that were sent, over all agents, in that order, and when. */
  readonly inFlight: Map<Call, number>;
  /** The peer has something to send; call its `step`. */
  ready(peer: Peer): void;
  settle(call: Call, outcome: Outcome): void;
  /** A session's last stream has ended. */
  streamsOver(): void;
}

/** What the peer's listeners hear. */
export interface PeerEvents {
  event(event: string, data: unknown): void;
  gap(count: number, of: Missing): void;
  /** A subscriber's session ended: events are missing until it is reopened. */
  interrupted(reason: string): void;
  /** It was reopened: events in between are missing. */
  reopened(reason: string): void;
}

export class Peer implements PeerSessionEvents {
  readonly agentId: string;

  private readonly options: PeerSessionOptions;
  private readonly host: PeerHost;
  private readonly events: PeerEvents;
  private queue: Call[] = [];
  private current: PeerSession;
  /** Those before it that are still needed, oldest first, with the timer that ends each. */
  private readonly retiring = new Map<PeerSession, unknown>();
  private subscribed = false;
  private linkUp = false;
  /** Why events may be missing since a subscriber's session ended; null: they are not. */
  private interrupted: string | null = null;
  /** The session whose events a subscriber gets; null: none is open. */
  private hearing: PeerSession | null = null;
  private hearingSince = 0;
  /** While a subscriber moves from one session to the next. */
  private moving: MovingEvents<PeerSession> | null = null;
  /**
   * Failed attempts in a row, for a subscriber or for waiting calls, and the wait before the next
   * one.
   */
  private failures = 0;
  private readonly retry: Alarm;
  /** Fires when the agent has been offline for too long. */
  private readonly away: Alarm;

  constructor(options: PeerSessionOptions, events: PeerEvents, host: PeerHost) {
    this.agentId = options.agentId;
    this.options = options;
    this.events = events;
    this.host = host;
    this.retry = new Alarm(host.ports.timer);
    this.away = new Alarm(host.ports.timer);
    this.current = this.makeSession();
  }

  // ---- called by its sessions

  opened(session: PeerSession): void {
    if (session === this.current && this.subscribed) this.hear();
    else if (session === this.current) this.failures = 0;
    this.host.ready(this);
  }

  answered(session: PeerSession, call: Call, outcome: Outcome): void {
    if (isTooLate(outcome)) this.refusedAsLate(session, call);
    else this.host.settle(call, outcome);
    this.dismiss(session);
    this.host.ready(this);
  }

  alive(session: PeerSession): void {
    this.moved(session);
    this.host.ready(this);
  }

  drained(session: PeerSession): void {
    this.host.streamsOver();
    this.dismiss(session);
  }

  event(session: PeerSession, event: string, data: unknown): void {
    if (this.counts(session)) this.events.event(event, data);
    if (this.moving?.add(session, event, data) === false) this.endMove();
  }

  gap(session: PeerSession, count: number, of: Missing): void {
    // The agent counts an event in each session that should have had it.
    if (of === "packets" || this.counts(session)) this.events.gap(count, of);
  }

  // ---- called by the core

  add(call: Call): void {
    this.queue.push(call);
    this.host.ready(this);
  }

  /** Keeps a session open, so that the agent's events arrive, or lets it expire. */
  subscribe(on: boolean): void {
    this.subscribed = on;
    if (on) {
      this.current.keep(true);
      if (this.current.state === "open") this.hear();
      this.host.ready(this);
      return;
    }
    this.hearing = null;
    this.interrupted = null;
    this.moving = null;
    for (const session of this.sessions()) {
      session.keep(false);
      this.dismiss(session);
    }
    this.leaveIfIdle();
  }

  /** Takes one step towards sending; true if another step may do more. */
  step(): boolean {
    const session = this.current;
    const waits = this.subscribed || this.queue.length > 0;
    const wanted = this.retry.isSet ? this.queue.some((call) => !call.waitForAgent) : waits;
    if (!this.linkUp || !wanted) return false;
    if (session.state === "open" && session.lapsed) session.leave("idle for too long");
    if (session.state === "idle") session.open();
    if (session.state !== "open" || session.holding) return false;
    if (session.renewalDue) {
      this.moveOn();
      return true;
    }
    if (session.unsure && (session.awaitsPong || session.ping())) return false;
    const call = this.queue[0];
    if (call === undefined || session.inFlight >= MAX_IN_FLIGHT_PER_AGENT) return false;
    if (session.inFlight > 0 && session.bytesInFlight >= MAX_BYTES_PER_AGENT) return false;
    this.queue.shift();
    this.host.inFlight.set(call, this.host.ports.timer.now());
    try {
      if (session.send(call)) return true;
    } catch (cause) {
      this.queue.unshift(call);
      throw cause;
    }
    // The session has used up its numbers.
    this.host.inFlight.delete(call);
    this.queue.unshift(call);
    this.moveOn();
    return true;
  }

  /**
   * A call's deadline: its session is given up, so that no late packet is mistaken for an answer.
   */
  expired(call: Call, linkFailure: CallError | null): void {
    const { session, mayHaveRun } = call;
    const text = `no verified answer to ${call.method} from ${this.agentId} before the deadline`;
    const unanswered = new CallError("TIMED_OUT", text, { retryable: call.idempotent });
    if (session !== null) {
      this.host.settle(call, failed(unanswered));
      session.leave("a call passed its deadline");
    } else if (mayHaveRun && linkFailure === null) {
      this.remove(call, failed(unanswered));
    } else {
      const isKnown = call.repeated && !mayHaveRun;
      this.remove(call, failed(isKnown ? this.didNotRun(call) : this.neverSent(linkFailure)));
    }
  }

  /** Ends the call that could not be sealed, or a subscriber's attempt if there is none. */
  failFirst(cause: unknown): void {
    const why = `${(cause as Error)?.message ?? cause}`;
    const call = this.queue[0];
    if (call === undefined) {
      this.cannotHear(`a session with ${this.agentId} could not be opened: ${why}`);
      return;
    }
    const text = `${call.method} could not be sealed: ${why}`;
    this.remove(call, failed(new CallError("BAD_ARGUMENT", text, { cause })));
  }

  /** Takes a waiting call out of the queue. */
  remove(call: Call, outcome: Outcome): void {
    this.queue = this.queue.filter((waiting) => waiting !== call);
    this.host.settle(call, outcome);
    this.leaveIfIdle();
  }

  /**
   * `fresh`: with another session token, so earlier bindings cannot be taken over; those of
   * migrating sessions ended with the link that we left ourselves.
   */
  linkOnline(fresh: boolean): void {
    this.linkUp = true;
    for (const session of this.sessions()) {
      if (fresh && !session.canMigrate) session.giveUp("the link is a new one");
      session.setLink(true);
      session.unsure = session.state === "open" && session.engaged === 0;
      // It binds the sid, without which the relay drops events, and its answer shows what was lost.
      if (session.state === "open" && (session.canMigrate || this.subscribed)) session.ping();
      else session.doubt();
      session.release();
    }
    this.retryNow();
    this.host.ready(this);
  }

  /** Another link, without a gap: a ping shows the relay the new route for answers and events. */
  linkMoved(): void {
    for (const session of this.sessions()) {
      if (session.state !== "open") continue;
      session.unsure = session.engaged === 0;
      if (!session.unsure || session.awaitsPong || this.subscribed) session.ping(true);
    }
  }

  /** The link before this one delivers nothing any more. */
  linkLeft(): void {
    for (const session of this.sessions()) session.stopWaiting();
  }

  linkOffline(): void {
    this.linkUp = false;
    for (const session of this.sessions()) {
      session.setLink(false);
      if (session.canMigrate) continue;
      // The keys stay valid after a lost link; what is in flight, a ping too, gets no answer.
      const isWaiting = session.engaged > 0 || session.awaitsPong;
      if (session.state !== "open" || isWaiting) session.giveUp("the link was lost");
    }
  }

  /**
   * The relay reports that the agent connected, possibly after a restart, which a ping will show.
   */
  agentOnline(): void {
    this.away.clear();
    this.retryNow();
    for (const session of this.sessions()) {
      if (session.state !== "open") continue;
      session.unsure = session.engaged === 0;
      if (!session.unsure || this.subscribed) session.ping();
      else session.giveUp("the agent reconnected");
    }
    this.host.ready(this);
  }

  /**
   * The relay reports that the agent's link is gone. If it stays offline, a ping checks on calls in
   * flight, which the relay then refuses; the agent may have crashed with the calls.
   */
  agentOffline(): void {
    const { state, engaged } = this.current;
    // Further calls would be sent in it, without the caller knowing whether they arrived.
    if (state === "open" && engaged === 0 && !this.subscribed)
      this.current.giveUp("the agent left");
    if (this.away.isSet) return;
    this.away.set(OFFLINE_GRACE_MS, () => {
      for (const session of this.sessions()) {
        if (session.state === "open" && session.engaged > 0) session.ping();
      }
    });
  }

  unproven(session: PeerSession): void {
    if (session !== this.current) return;
    const what = this.options.deviceKey === null ? "one, which this client lacks" : "another one";
    const text = `${this.agentId} was not proven: whoever answered has the secret, but not this client's device key (the device has ${what}, or it is an imitation)`;
    const waiting = this.queue;
    this.queue = [];
    for (const call of waiting) this.host.settle(call, failed(new CallError("UNPROVEN", text)));
    this.cannotHear(text);
  }

  /** A subscriber is told once why there is no session, and it is tried again later. */
  private cannotHear(reason: string): void {
    if (!this.subscribed) return;
    this.delayRetry(BACKOFF_MAX_MS);
    if (this.interrupted !== null) return;
    this.interrupted = reason;
    this.events.interrupted(reason);
  }

  relayError(session: PeerSession, code: string, text: string): void {
    if (code === "AGENT_OFFLINE" || code === "AGENT_NOT_FOUND") {
      this.unreachable(session, code, text);
    } else if (code === "UNKNOWN_SESSION") {
      session.rebind();
    } else if (code === "SID_IN_USE") {
      session.giveUp("the relay has bound its sid elsewhere");
    } else if (RESEND_LATER.includes(code)) {
      session.resendLater();
    } else {
      this.host.ports.log("warn", "the relay refused a packet", { code, agentId: this.agentId });
    }
  }

  /** Releases everything; the core has settled the calls. */
  close(): void {
    this.subscribed = false;
    this.linkUp = false;
    this.away.clear();
    this.retry.clear();
    this.queue = [];
    for (const session of this.sessions()) session.leave("the client ends");
  }

  /** Streams that have not ended. */
  get streams(): number {
    return this.sessions().reduce((sum, session) => sum + session.streams.count(), 0);
  }

  /** Holds back what its streams send. */
  hold(): void {
    for (const session of this.streaming()) session.hold();
  }

  /** Releases it if the link did not change after all. */
  release(): void {
    for (const session of this.sessions()) session.release();
  }

  /** Whether, as far as known, no packets of its streams are in flight. */
  quietSince(ms: number): boolean {
    return this.streaming().every((session) => session.quietSince(ms));
  }

  private streaming(): PeerSession[] {
    return this.sessions().filter((session) => session.streams.count() > 0);
  }

  private sessions(): PeerSession[] {
    return [this.current, ...this.retiring.keys()];
  }

  private makeSession(): PeerSession {
    const session = new PeerSession(this.options, this, this.host);
    session.setLink(this.linkUp);
    session.keep(this.subscribed);
    return session;
  }

  /**
   * Whether its events are the subscriber's: each goes to every session that the agent holds. Those
   * of one that is not open yet are not: if it never opens, nobody would say what came after them.
   */
  private counts(session: PeerSession): boolean {
    return session === this.hearing;
  }

  /** The agent's events arrive in the current session from now on. */
  private hear(): void {
    const before = this.hearing;
    if (before === this.current) return;
    this.hearing = this.current;
    this.hearingSince = this.host.ports.timer.now();
    if (before !== null) {
      this.endMove();
      this.moving = new MovingEvents(before, this.current);
      if (!before.ping(true)) this.endMove();
    }
    // Also of an attempt to move on that failed while the session before was open.
    const reason = this.interrupted;
    this.interrupted = null;
    if (reason !== null) this.events.reopened(reason);
  }

  /** A ping was answered: see MovingEvents. */
  private moved(session: PeerSession): void {
    const { moving } = this;
    if (moving === null || session.awaitsPong) return;
    if (session === moving.before && !moving.isComplete) {
      moving.isComplete = true;
      moving.after.ping(true);
    } else if (session === moving.after && moving.isComplete) this.endMove();
  }

  private endMove(): void {
    const { moving } = this;
    if (moving === null) return;
    this.moving = null;
    const { missing } = moving;
    if (missing > 0) this.events.gap(missing, "events");
    moving.before.keep(false);
    this.dismiss(moving.before);
  }

  /** Events are lost until the next session is open. */
  private stopHearing(reason: string): void {
    this.interrupted = reason;
    // A session that lasted does not count as a failed attempt.
    if (this.host.ports.timer.now() - this.hearingSince >= STABLE_SESSION_MS) this.failures = 0;
    this.hearing = null;
    this.events.interrupted(reason);
  }

  /**
   * New calls go to a new session. Calls in flight and streams end on the old one, whose events
   * count until the new one is open.
   */
  private moveOn(): void {
    const old = this.current;
    for (const oldest of this.retiring.keys()) {
      if (this.retiring.size >= MAX_RETIRING) oldest.leave("too many newer sessions followed");
      break;
    }
    const end = () => old.leave("a newer session followed it 24 hours ago");
    this.retiring.set(old, this.host.ports.timer.set(SESSION_RENEW_MS, end));
    this.current = this.makeSession();
    this.dismiss(old);
  }

  /** Ends a session that was moved on from, once nothing depends on it. */
  private dismiss(session: PeerSession): void {
    if (!this.retiring.has(session) || session === this.hearing) return;
    if (session === this.moving?.before) return;
    if (session.engaged === 0) session.leave("a newer session followed it");
  }

  /** It did not run, so it is made once more, in another session, as long as there is time. */
  private refusedAsLate(session: PeerSession, call: Call): void {
    const inTime = this.host.ports.timer.now() < call.deadline;
    if (call.repeated || call.orphaned || !inTime) {
      this.host.settle(call, failed(this.didNotRun(call)));
      return;
    }
    call.repeated = true;
    call.session = null;
    this.host.inFlight.delete(call);
    // Before those that were never sent, in the order in which they were sent.
    const first = this.queue.filter((waiting) => waiting.repeated);
    this.queue = [...first, call, ...this.queue.filter((waiting) => !waiting.repeated)];
    if (session === this.current) this.moveOn();
  }

  over(session: PeerSession, calls: readonly Call[], reason: string, byAgent: boolean): void {
    const { moving } = this;
    if (session === moving?.before) {
      this.endMove();
      // Its end, or an answer, would have shown whether something is missing.
      if (!byAgent && !moving.isComplete) {
        this.events.interrupted(reason);
        this.events.reopened(reason);
      }
    } else if (session === moving?.after) this.endMove();
    if (session === this.hearing) {
      this.stopHearing(reason);
      // At once, unless the agent drops it repeatedly because it has more listeners than room.
      const soon = this.host.ports.timer.now() - this.hearingSince < STABLE_SESSION_MS;
      const last = byAgent && session === this.current;
      if (last && this.subscribed && soon) this.delayRetry(DROPPED_CEILING_MS);
    }
    if (this.retiring.has(session)) {
      this.host.ports.timer.clear(this.retiring.get(session));
      this.retiring.delete(session);
      // One that the agent abandoned would open again by itself. This comes here again.
      session.giveUp(reason);
    }
    const again: Call[] = [];
    for (const call of calls) {
      if (call.settled) continue;
      if (call.idempotent && !call.orphaned) {
        call.session = null;
        call.mayHaveRun = true;
        this.host.inFlight.delete(call);
        again.push(call);
      } else {
        const text = `outcome of ${call.method} on ${this.agentId} unknown: ${reason}`;
        this.host.settle(call, failed(new CallError("OUTCOME_UNKNOWN", text)));
      }
    }
    this.queue.unshift(...again);
    this.host.ports.log("debug", "session over", { agentId: this.agentId, reason });
    this.leaveIfIdle();
    this.host.ready(this);
  }

  /** Nobody is waiting: an opening is not pursued. */
  private leaveIfIdle(): void {
    const needed = this.queue.length > 0 || this.subscribed;
    if (!needed && this.current.state === "opening") this.current.giveUp("nobody waits for it");
  }

  /**
   * Offline or not ours: fails queued calls at once, except those that wait for the agent; these
   * and a subscriber try again later.
   */
  private unreachable(
    session: PeerSession,
    code: "AGENT_OFFLINE" | "AGENT_NOT_FOUND",
    text: string,
  ): void {
    const error = (safe: boolean) =>
      new CallError(code, `${this.agentId}: ${text}`, {
        relayCode: code,
        retryable: code === "AGENT_OFFLINE" && safe,
      });
    const mayWait = (call: Call) => code === "AGENT_OFFLINE" && call.waitForAgent;
    const refused = this.queue.filter((call) => !mayWait(call));
    this.queue = this.queue.filter(mayWait);
    if (this.subscribed || this.queue.length > 0) this.delayRetry(BACKOFF_MAX_MS);
    for (const call of refused) this.host.settle(call, failed(error(true)));
    // With one packet in flight, the error is about it. With several, some may have been delivered.
    const only = session.onlyCall();
    if (only !== null && !(mayWait(only) && only.idempotent))
      this.host.settle(only, failed(error(only.idempotent)));
    session.giveUp(`the relay says ${code}`);
  }

  private delayRetry(ceilingMs: number): void {
    if (this.retry.isSet) return;
    const longestMs = doubled(RESUBSCRIBE_BASE_MS, this.failures, ceilingMs);
    const waitMs = jittered(longestMs, randomFraction(this.host.ports.random, 0));
    this.failures++;
    this.retry.set(waitMs, () => this.host.ready(this));
  }

  private retryNow(): void {
    if (!this.retry.isSet) return;
    this.retry.clear();
    this.host.ready(this);
  }

  private didNotRun({ method }: Call): CallError {
    const text = `timed out, did not run: ${this.agentId} says that ${method} came too late`;
    return new CallError("TIMED_OUT", text, { retryable: true });
  }

  private neverSent(linkFailure: CallError | null): CallError {
    if (linkFailure !== null) {
      return new CallError(linkFailure.code, linkFailure.message, {
        cause: linkFailure,
        retryable: linkFailure.retryable,
        relayCode: linkFailure.relayCode,
      });
    }
    if (this.retry.isSet && this.current.state === "idle") {
      const text = `${this.agentId} was offline until the call's deadline`;
      return new CallError("AGENT_OFFLINE", text, { retryable: true });
    }
    const turn = this.current.unsure ? "the agent did not answer" : "its turn did not come";
    const why =
      this.current.state === "open"
        ? turn
        : "no verified answer to the opening (is the agent_token right, and its version?)";
    const text = `the call was not sent to ${this.agentId} before its deadline: ${why}`;
    return new CallError("TIMED_OUT", text, { retryable: true });
  }
}
