/**
 * One session with an agent and the calls in flight in it (section 2). The rules of sealing are in
 * protocol's ClientSession; this adds the client's other duties: JSON-RPC ids that belong to their
 * session, keep-alive pings, letting an idle session expire before the agent forgets it, and
 * sending a refused packet again byte for byte.
 */
import {
  CLIENT_KEEPALIVE_MS,
  FORWARD_RENEW_MS,
  SESSION_IDLE_MS,
  SESSION_RENEW_MS,
} from "@blindrelay/protocol";
import {
  asciiBytes,
  encodeJson,
  isForward,
  isObject,
  own,
  type Version,
} from "@blindrelay/protocol/crypto";
import { ForwardClientSession } from "@blindrelay/protocol/forward-client";
import { Alarm } from "@blindrelay/protocol/moving-link";
import {
  CLOSE_METHOD,
  CLOSE_NOTICE,
  type ClientEffect,
  ClientSession,
  DEFAULT_CLIENT_TIMINGS,
  FIRST_PING_ID,
} from "@blindrelay/protocol/session";
import { StreamTable } from "@blindrelay/protocol/streams";
import { CallError } from "../errors.ts";
import type { Ports } from "../ports.ts";
import {
  DOUBT_MS,
  MAX_STREAM_CHUNK,
  PING_TIMEOUT_MS,
  RESEND_BASE_MS,
  RESEND_CEILING_MS,
  SESSION_LAPSE_MS,
} from "./defaults.ts";
import { EarlyPackets } from "./early-packets.ts";
import { encodeRequest, isUnavailable, type Outcome, PING_TAIL, readSaid } from "./jsonrpc.ts";

/** The agent's count of events that it could not send in this session (section 2). */
const LOST_METHOD = "system.lost";

const FORGOTTEN = "the agent has forgotten it: nothing was sent for 2 minutes";

const ABANDONED = {
  otherAnswer: "the agent restarted",
  silence: "the agent fell silent",
  unproven: "the agent did not prove the session's keys",
};

/** What is missing: packets lost on the way, or events that were never sent. */
export type Missing = "packets" | "events";

/** A sealed request that waits for its answer. */
interface Outstanding {
  readonly text: string;
  readonly sentAt: number;
  /** Null: a keep-alive ping. */
  readonly call: Call | null;
}

/**
 * One call: queued, then carried by a session; settled exactly once. Its deadline does not depend
 * on sessions and links.
 */
export interface Call {
  readonly method: string;
  /** The request's text after its id. */
  readonly tail: string;
  /** May be executed twice; the SDK repeats only such calls. */
  readonly idempotent: boolean;
  /** Waits for an offline agent, until the deadline. */
  readonly waitForAgent: boolean;
  /** Called immediately with the session that it was sent in. */
  readonly sent: ((session: PeerSession) => void) | null;
  /** When it has timed out, by the client's clock. */
  readonly deadline: number;
  /** Made again after the agent refused it as too late. */
  repeated: boolean;
  /** Was in flight in a session that is over, and waits to be made again. */
  mayHaveRun: boolean;
  /** The session in which it is in flight; null while it waits. */
  session: PeerSession | null;
  settled: boolean;
  /** The caller left, but the packet was sent: its answer or deadline is still awaited. */
  orphaned: boolean;
  /** The deadline. */
  timer: unknown;
  done: (outcome: Outcome) => void;
}

/** The way of a session's packets. */
export interface PacketHost {
  readonly ports: Ports;
  /** Passes a packet to the relay. */
  send(session: PeerSession, text: string): void;
  /** The first part of a session's sid is now `first`; null: it has none. */
  renamed(session: PeerSession, before: string | null, first: string | null): void;
}

/** The session's peer. */
export interface PeerSessionEvents {
  /** Calls may be sent. */
  opened(session: PeerSession): void;
  answered(session: PeerSession, call: Call, outcome: Outcome): void;
  /** A keep-alive ping was answered. */
  alive(session: PeerSession): void;
  /** Its last stream has ended. */
  drained(session: PeerSession): void;
  event(session: PeerSession, event: string, data: unknown): void;
  /** This many packets of the agent never arrived, or it could not send this many events. */
  gap(session: PeerSession, count: number, of: Missing): void;
  /**
   * Its `C` was abandoned; these calls were in flight, oldest first. `byAgent`: the agent dropped
   * it.
   */
  over(session: PeerSession, calls: readonly Call[], reason: string, byAgent: boolean): void;
  /**
   * Whoever answered has the secret, but not the device's key; `over` follows. It is not tried
   * again by itself.
   */
  unproven(session: PeerSession): void;
  /** The relay's error about a packet of this session. */
  relayError(session: PeerSession, code: string, text: string): void;
}

export interface PeerSessionOptions {
  readonly agentId: string;
  readonly agentToken: string;
  readonly version: Version;
  /** The public half of the device's pinned key, under "3" and "4"; null: none is known. */
  readonly deviceKey: Uint8Array | null;
  /**
   * A new session replaces it after this long; undefined: 24 h, or 1 h under "3" and "4" where
   * X25519 is native.
   */
  readonly renewAfterMs?: number | undefined;
}

export class PeerSession {
  readonly agentId: string;
  readonly peer: PeerSessionEvents;
  readonly streams: StreamTable;
  /** Also get this session's notifications, whether or not they are a subscriber's events. */
  readonly notices = new Set<(event: string, data: unknown) => void>();
  /** Bytes of the packets in flight. */
  bytesInFlight = 0;
  /** Waiting before refused packets are sent again; later packets would overtake them. */
  holding = false;
  /**
   * The link changed, or the agent reconnected, while the session was idle. The agent may have
   * dropped it since, and the outcome of a call would be unknown, so a ping goes first.
   */
  unsure = false;
  /** The relay has lost the binding; no packet of the agent has arrived since. */
  private rebinding = false;

  private readonly ports: Ports;
  private readonly host: PacketHost;
  private readonly session: ClientSession;
  private readonly renewAfterMs: number;
  /** When the answer to its first ping came; `expires` counts from here. */
  private openedAt = 0;
  private leaptBefore = 0;
  /** By JSON-RPC id, and so in the order of seq. */
  private readonly outstanding = new Map<number, Outstanding>();
  private nextId = FIRST_PING_ID + 1;
  private name: string | null = null;
  private subscribed = false;
  private linkUp = true;
  /**
   * Packets of streams, held while the link changes; null: they are sent. Limited by the agent's
   * credit.
   */
  private held: string[] | null = null;
  private heardAt = 0;
  /** Keep-alive pings in flight. */
  private pings = 0;
  /** What overtook earlier packets while the link changed. */
  private readonly early: EarlyPackets;
  /** When the latest packet was sent, and the latest that the agent is known to have accepted. */
  private sentAt = 0;
  private acceptedAt = 0;
  /** When the agent was last asked whether it still has the session. */
  private doubtedAt = 0;
  private resends = 0;
  /** Whether it was sent again before the wait is over: a relay may ask for that without end. */
  private hurried = false;
  private resending = false;
  private readonly holdAlarm: Alarm;
  private readonly alarm: Alarm;
  private alarmAt = Number.POSITIVE_INFINITY;

  constructor(options: PeerSessionOptions, peer: PeerSessionEvents, host: PacketHost) {
    this.agentId = options.agentId;
    this.peer = peer;
    this.ports = host.ports;
    this.host = host;
    this.holdAlarm = new Alarm(host.ports.timer);
    this.alarm = new Alarm(host.ports.timer);
    const { version, deviceKey } = options;
    const { x25519 } = host.ports;
    const often = isForward(version) && x25519.isNative;
    this.renewAfterMs = options.renewAfterMs ?? (often ? FORWARD_RENEW_MS : SESSION_RENEW_MS);
    this.streams = new StreamTable({
      maxChunk: MAX_STREAM_CHUNK,
      notify: (method, params) =>
        this.notify(`{"jsonrpc":"2.0","method":"${method}","params":${encodeJson(params)}}`),
      drained: () => peer.drained(this),
    });
    this.early = new EarlyPackets(host.ports.timer, () => this.stopWaiting());
    const ofSession = {
      suite: host.ports.suite,
      random: host.ports.random,
      agentId: options.agentId,
      agentToken: options.agentToken,
      version,
      timings: DEFAULT_CLIENT_TIMINGS,
    };
    this.session = isForward(version)
      ? new ForwardClientSession(ofSession, { x25519, deviceKey })
      : new ClientSession(ofSession);
  }

  get state(): "idle" | "opening" | "open" {
    const state = this.session.state;
    return state === "idle" || state === "open" ? state : "opening";
  }

  /** The first part of its sid, by which the relay and the core find it. */
  get first(): string | null {
    return this.session.first();
  }

  /** Whether the relay may not know its sid, so that packets are sent in envelopes. */
  get unbound(): boolean {
    return this.rebinding || this.session.sid() === null;
  }

  get inFlight(): number {
    return this.outstanding.size - this.pings;
  }

  /** Whether a ping is unanswered; they are answered in order. */
  get awaitsPong(): boolean {
    return this.pings > 0;
  }

  /** Calls in flight and open streams, which would be cut off by its end. */
  get engaged(): number {
    return this.inFlight + this.streams.count();
  }

  get renewalDue(): boolean {
    const now = this.ports.timer.now();
    if (this.session.renewalDue(now)) return true;
    return this.state === "open" && now - this.openedAt >= this.renewAfterMs;
  }

  /** Idle for so long that the agent may have forgotten it. */
  get lapsed(): boolean {
    return this.engaged === 0 && this.ports.timer.now() - this.acceptedAt >= SESSION_LAPSE_MS;
  }

  /** Begins with a fresh `C`. Only allowed while idle. */
  open(): void {
    const now = this.ports.timer.now();
    try {
      this.apply(this.session.open(now), now);
    } catch (cause) {
      // The suite's; nothing was sent.
      this.session.giveUp();
      throw cause;
    }
  }

  /** Abandons its `C` permanently; calls in flight are passed to `over`. Harmless in any state. */
  giveUp(reason: string): void {
    this.session.giveUp();
    this.end(reason);
    this.follow();
  }

  /**
   * The same, and tells the agent, so that it need not hold the session any longer: for a session
   * that is no longer needed while the agent can still receive.
   */
  leave(reason: string): void {
    // An agent that has forgotten it would mistake the notice for an opening.
    const held = this.ports.timer.now() - this.acceptedAt < SESSION_IDLE_MS;
    if (held && this.linkUp && this.state === "open") {
      const packet = this.session.seal(asciiBytes(CLOSE_NOTICE));
      if (packet !== null) this.host.send(this, packet);
    }
    this.giveUp(reason);
  }

  /** Seals and sends a call; false if the session cannot take it. */
  send(call: Call): boolean {
    call.session = this;
    if (this.request(call.tail, call)) {
      call.sent?.(this);
      return true;
    }
    call.session = null;
    return false;
  }

  /** The call in flight, if its packet is the only one. */
  onlyCall(): Call | null {
    if (this.outstanding.size !== 1) return null;
    for (const { call } of this.outstanding.values()) return call;
    return null;
  }

  /**
   * Checks that the agent is alive; a restarted one answers with another session. False if the
   * session cannot do this. Refused packets are sent first, byte for byte: the agent accepts them
   * now, but not after a later packet. Nothing else is repeated, because it may be what made the
   * agent end its link. `again`: even if one is in flight, to show the relay another link.
   */
  ping(again = false): boolean {
    const before = this.outstanding.size;
    if (this.resends > 0 && (again || !this.hurried)) {
      this.hurried = true;
      this.resend();
    }
    // While the relay refuses packets it would refuse the ping too, or let it overtake them.
    if (this.holding && before > 0) return true;
    this.doubt();
    if ((this.pings === 0 || again) && this.request(PING_TAIL, null)) this.pings++;
    this.follow();
    return this.pings > 0;
  }

  /** Asks whether the agent still has it, where it would not answer the session's own packets. */
  doubt(): void {
    const opening = this.linkUp ? this.session.inDoubt() : null;
    if (opening === null) return;
    this.doubtedAt = this.ports.timer.now();
    this.host.send(this, opening);
  }

  /** Holds back what streams send, so that both sides drain. */
  hold(): void {
    this.held ??= [];
  }

  /** Sends what was held back. */
  release(): void {
    const { held } = this;
    if (held === null) return;
    this.held = null;
    for (const text of held) {
      if (!this.notify(text)) this.streams.fail("the session does not carry it any more");
    }
  }

  /** Whether it may migrate to another link: as far as known, none of its packets is in flight. */
  get canMigrate(): boolean {
    return this.held !== null && this.state === "open" && this.outstanding.size === 0;
  }

  /** The same, and nothing has arrived since. */
  quietSince(ms: number): boolean {
    return this.canMigrate && this.heardAt <= ms;
  }

  /** Sets whether the session is kept alive while it is idle. */
  keep(subscribed: boolean): void {
    this.subscribed = subscribed;
    this.follow();
  }

  setLink(up: boolean): void {
    this.linkUp = up;
    this.rebinding = false;
    this.follow();
  }

  /** Handles a packet whose sid has our `C` as first part. `early`: see RelayLinkEvents. */
  receive(text: string, early = false): void {
    this.heardAt = this.ports.timer.now();
    // What arrives now was sealed long ago.
    if (this.isForgotten(this.heardAt)) this.giveUp(FORGOTTEN);
    if (early && this.early.hold(text, this.session.sid(), this.session.received)) return;
    this.accept(text);
    this.acceptNext();
  }

  /** Nothing earlier comes any more: gaps among what waits are losses. */
  stopWaiting(): void {
    for (const text of this.early.takeAll()) this.accept(text);
  }

  private acceptNext(): void {
    for (;;) {
      const text = this.early.take(this.session.received + 1);
      if (text === null) return;
      this.accept(text);
    }
  }

  private accept(text: string): void {
    const now = this.ports.timer.now();
    this.apply(this.session.receive(text, now), now);
  }

  /** Sends the same bytes at once, in envelopes: the relay has lost the binding. */
  rebind(): void {
    this.streams.fail("the relay lost a packet");
    if (this.rebinding) return;
    this.rebinding = true;
    this.resend();
  }

  /**
   * Sends the same bytes after a wait, until the calls' deadlines: the relay could not deliver
   * them.
   */
  resendLater(): void {
    this.streams.fail("the relay lost a packet");
    const waits = this.outstanding.size > 0 || this.session.outstanding() !== null;
    if (this.resending || !waits) return;
    this.resending = true;
    this.holding = true;
    this.hurried = false;
    const waitMs = Math.min(RESEND_BASE_MS * 2 ** this.resends, RESEND_CEILING_MS);
    this.resends++;
    this.holdAlarm.set(waitMs, () => {
      this.resending = false;
      this.resend();
      // The relay may refuse again; after this long it would have done so.
      this.holdAlarm.set(waitMs, () => this.goOn());
    });
  }

  private goOn(): void {
    this.stopHolding();
    if (this.state === "open") this.peer.opened(this);
  }

  private stopHolding(): void {
    this.holdAlarm.clear();
    this.holding = false;
    this.resending = false;
  }

  private resend(): void {
    const opening = this.session.outstanding();
    if (opening !== null) this.host.send(this, opening);
    this.sentAt = this.ports.timer.now();
    for (const { text } of this.outstanding.values()) this.host.send(this, text);
  }

  private request(tail: string, call: Call | null): boolean {
    const id = this.nextId;
    // None for a ping: it does nothing that could be too late.
    const expires = call === null ? null : this.expiry(call);
    const text = this.session.seal(encodeRequest(id, tail, expires));
    if (text === null) return false;
    this.nextId++;
    this.sentAt = this.ports.timer.now();
    this.outstanding.set(id, { text, sentAt: this.sentAt, call });
    this.bytesInFlight += text.length;
    this.host.send(this, text);
    this.follow();
    return true;
  }

  /** If the clock was only set, the agent has not seen that time: too early beats too late. */
  private expiry({ deadline }: Call): number {
    const leapt = this.leapt() - this.leaptBefore;
    return Math.max(0, Math.floor(deadline - this.openedAt - leapt));
  }

  private leapt(): number {
    return this.ports.timer.leapt?.() ?? 0;
  }

  /** Nothing was sent for so long that the agent has forgotten it, as while this machine slept. */
  private isForgotten(now: number): boolean {
    return this.state === "open" && now - this.sentAt >= SESSION_IDLE_MS;
  }

  /** Sends a notification: it has no answer and is not sent again. */
  private notify(text: string): boolean {
    if (this.held !== null) {
      this.held.push(text);
      return true;
    }
    // What waits to be sent again has lower numbers, and would be refused after this one.
    if (!this.linkUp || this.state !== "open" || this.holding) return false;
    const packet = this.session.seal(asciiBytes(text));
    if (packet === null) return false;
    this.sentAt = this.ports.timer.now();
    this.host.send(this, packet);
    this.follow();
    return true;
  }

  private apply(effects: readonly ClientEffect[], now: number): void {
    for (const effect of effects) {
      if (effect.kind === "send") {
        this.sentAt = now;
        this.rename();
        this.host.send(this, effect.text);
      } else if (effect.kind === "opened") {
        this.openedAt = now;
        this.leaptBefore = this.leapt();
        this.acceptedAt = this.sentAt;
        this.rebinding = false;
        this.resends = 0;
        this.stopHolding();
        if (effect.gap > 0) this.peer.gap(this, effect.gap, "packets");
        this.peer.opened(this);
      } else if (effect.kind === "message") {
        this.rebinding = false;
        if (effect.gap > 0) {
          this.streams.fail("packets were lost");
          this.peer.gap(this, effect.gap, "packets");
        }
        this.read(effect.plaintext);
      } else if (effect.kind === "abandoned") {
        if (effect.reason === "unproven") this.peer.unproven(this);
        this.end(ABANDONED[effect.reason]);
      } else {
        this.ports.log("debug", "packet refused", { reason: effect.reason });
      }
    }
    this.follow();
  }

  private read(plaintext: Uint8Array): void {
    const said = readSaid(plaintext);
    if (said.kind === "event") {
      if (said.event === CLOSE_METHOD) this.droppedByAgent();
      else if (said.event === LOST_METHOD) this.eventsLost(said.data);
      else if (said.event.startsWith("stream.")) this.streams.receive(said.event, said.data);
      else {
        for (const notice of [...this.notices]) notice(said.event, said.data);
        this.peer.event(this, said.event, said.data);
      }
    }
    if (said.kind === "lost event") {
      this.ports.log("warn", `an event was dropped: it has ${said.why}`);
      this.peer.gap(this, 1, "events");
    }
    if (said.kind !== "answer") return;
    const answered = this.outstanding.get(said.id);
    if (answered === undefined) return;
    this.outstanding.delete(said.id);
    this.bytesInFlight -= answered.text.length;
    this.acceptedAt = Math.max(this.acceptedAt, answered.sentAt);
    this.resends = 0;
    this.unsure = false;
    if (answered.call === null) {
      this.pings--;
      this.peer.alive(this);
    } else this.peer.answered(this, answered.call, judged(said.outcome, answered.call));
    if (this.holding && this.outstanding.size === 0) this.goOn();
  }

  /** It had no link, or a full queue, when they happened. */
  private eventsLost(data: unknown): void {
    const count = isObject(data) ? own(data, "events") : undefined;
    if (Number.isSafeInteger(count) && (count as number) > 0) {
      this.peer.gap(this, count as number, "events");
    }
  }

  /** The agent needed its place. */
  private droppedByAgent(): void {
    this.session.giveUp();
    this.end("the agent closed the session to make room", true);
  }

  /** Everything known about this `C` is void. */
  private end(reason: string, byAgent = false): void {
    const calls: Call[] = [];
    for (const { call } of this.outstanding.values()) if (call !== null) calls.push(call);
    this.outstanding.clear();
    this.bytesInFlight = 0;
    this.nextId = FIRST_PING_ID + 1;
    this.unsure = false;
    this.pings = 0;
    this.early.clear();
    this.held = null;
    this.rebinding = false;
    this.resends = 0;
    this.stopHolding();
    this.rename();
    this.streams.fail(reason);
    this.peer.over(this, calls, reason, byAgent);
  }

  private rename(): void {
    const before = this.name;
    this.name = this.first;
    if (before !== this.name) this.host.renamed(this, before, this.name);
  }

  /** When `wake` has work. */
  private dueAt(): number {
    return Math.min(this.pingDueAt(), this.doubtAt());
  }

  /** After 5 s without an answer, then after twice as long each time. */
  private doubtAt(): number {
    if (!this.linkUp || this.session.inDoubt() === null) return Number.POSITIVE_INFINITY;
    for (const { sentAt } of this.outstanding.values()) {
      const waited = this.doubtedAt - sentAt;
      return waited < DOUBT_MS ? sentAt + DOUBT_MS : this.doubtedAt + waited;
    }
    return Number.POSITIVE_INFINITY;
  }

  private pingDueAt(): number {
    const sessionAt = this.session.wakeAt() ?? Number.POSITIVE_INFINITY;
    if (this.state !== "open") return sessionAt;
    const ping = this.pingSentAt();
    if (ping !== null) return ping + PING_TIMEOUT_MS;
    const wanted = this.linkUp && (this.subscribed || this.engaged > 0);
    if (!wanted) return this.acceptedAt + SESSION_LAPSE_MS;
    // A stream's packets are not answered one by one, so sending them proves nothing.
    const since = this.streams.count() > 0 ? this.acceptedAt : this.sentAt;
    return since + CLIENT_KEEPALIVE_MS;
  }

  private pingSentAt(): number | null {
    if (this.pings === 0) return null;
    for (const { call, sentAt } of this.outstanding.values()) if (call === null) return sentAt;
    return null;
  }

  private wake(): void {
    const now = this.ports.timer.now();
    this.apply(this.session.timeout(now), now);
    if (now >= this.doubtAt()) this.doubt();
    if (this.state !== "open" || now < this.pingDueAt()) return;
    if (this.linkUp && this.isForgotten(now)) {
      this.giveUp(FORGOTTEN);
      return;
    }
    if (this.pings > 0) this.leave("the agent does not answer a ping");
    else if (this.lapsed) this.leave("idle for too long");
    else if (!this.ping()) this.giveUp("it has used up its numbers");
  }

  /** Keeps one timer at or before `dueAt`; waking too early is harmless. */
  private follow(): void {
    this.rename();
    const dueAt = this.dueAt();
    if (dueAt >= this.alarmAt && dueAt !== Number.POSITIVE_INFINITY) return;
    this.alarm.clear();
    this.alarmAt = dueAt;
    if (dueAt === Number.POSITIVE_INFINITY) return;
    this.alarm.set(Math.max(0, dueAt - this.ports.timer.now()), () => {
      this.alarmAt = Number.POSITIVE_INFINITY;
      this.wake();
      this.follow();
    });
  }
}

/** For an idempotent call, the error that the device is unavailable becomes retryable. */
const judged = (outcome: Outcome, call: Call): Outcome => {
  if (outcome.ok || !call.idempotent) return outcome;
  const { remote, message } = outcome.error;
  if (remote === undefined || !isUnavailable(remote, true)) return outcome;
  return { ok: false, error: new CallError("REMOTE", message, { remote, retryable: true }) };
};
