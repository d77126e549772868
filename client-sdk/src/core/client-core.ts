/**
 * The client's core: one link, many agents, many concurrent calls. It routes received packets by
 * the first part of their sid, sends what the peers seal (the first time in an envelope, bare once
 * the relay knows the sid), stays within the relay's limits, and settles every call once.
 *
 * Pure, using ports: no clock, socket, randomness or promise of its own. See src/client.ts for the
 * API around it.
 */
import { MAX_BINDINGS_PER_CONNECTION, MAX_PLAINTEXT_BYTES } from "@blindrelay/protocol";
import { toBase64url } from "@blindrelay/protocol/crypto";
import { Alarm } from "@blindrelay/protocol/moving-link";
import {
  type AgentPresence,
  encodeEnvelope,
  firstPart,
  type MessageForClient,
  type RelayError,
} from "@blindrelay/protocol/wire";
import { CallError } from "../errors.ts";
import type { Ports, TimerPort } from "../ports.ts";
import { Bindings } from "./bindings.ts";
import {
  KNOWN_BINDINGS,
  MAX_IN_FLIGHT,
  MAX_QUEUED,
  MAX_TIMEOUT_MS,
  MIGRATION_RETRY_MS,
  OVERDUE_MS,
  PACE_BURST,
  PACE_PER_SECOND,
  RENEWAL_PACE_MS,
  STREAM_QUIET_MS,
  TOKEN_DRAIN_MS,
} from "./defaults.ts";
import { encodeRequest, failed, type Outcome, requestTail } from "./jsonrpc.ts";
import { RelayLink, type RelayLinkEvents, type RelayLinkOptions } from "./link.ts";
import { Pacer } from "./pacer.ts";
import { Peer, type PeerEvents, type PeerHost } from "./peer.ts";
import type { Call, PeerSession, PeerSessionOptions } from "./session.ts";

/** 96 random bits: an envelope's request_id must not be guessable (section 3). */
const REQUEST_ID_BYTES = 12;

const LAST_STREAM = 2 ** 31 - 1;

/** The relay's unproven word that an agent came or went. */
export interface Presence {
  readonly agentId: string;
  readonly online: boolean;
  /** ISO 8601, by the relay's clock; empty: it said none, or something longer. */
  readonly at: string;
}

export type LinkReport =
  | { readonly state: "online" }
  | { readonly state: "offline" | "refused"; readonly reason: CallError };

interface ClientCoreEvents {
  link(report: LinkReport): void;
  presence(presence: Presence): void;
}

interface CallRequest {
  readonly method: string;
  readonly params: unknown;
  readonly timeoutMs: number;
  readonly idempotent: boolean;
  /** See Call; defaults to false. */
  readonly waitForAgent?: boolean;
  /** See Call. */
  readonly sent?: (session: PeerSession) => void;
}

/** More than ISO 8601 needs: what a relay says is kept. */
const MAX_TIMESTAMP = 40;

export class ClientCore implements PeerHost, RelayLinkEvents {
  readonly ports: Ports;
  readonly inFlight = new Map<Call, number>();

  private readonly events: ClientCoreEvents;
  private readonly link: RelayLink;
  private readonly bindings = new Bindings(KNOWN_BINDINGS);
  private readonly pacer: Pacer;
  private readonly peers = new Set<Peer>();
  private readonly byAgent = new Map<string, Peer[]>();
  /** Every session that has a `C`, by its `C`. */
  private readonly owners = new Map<string, PeerSession>();
  private readonly calls = new Set<Call>();
  /** Peers that may have something to send, in the order of their turns. */
  private readonly pending = new Set<Peer>();
  private readonly pace: Alarm;
  /** When `pace` is due, while it is set. */
  private pumpAt = 0;
  private readonly drain: Alarm;
  /** Set while streams are held. */
  private readonly quiet: Alarm;
  private nextMigrationAt = 0;
  private pumping = false;
  private streamNumbers = 0;
  private ended: CallError | null = null;

  constructor(options: RelayLinkOptions, events: ClientCoreEvents) {
    this.ports = options.ports;
    this.events = events;
    this.pacer = new Pacer(PACE_PER_SECOND, PACE_BURST, options.ports.timer.now());
    this.pace = new Alarm(options.ports.timer);
    this.drain = new Alarm(options.ports.timer);
    this.quiet = new Alarm(options.ports.timer);
    this.link = new RelayLink(options, this);
  }

  start(): void {
    this.link.start();
  }

  /** Permanently ends the link; every call ends with CLOSED. */
  close(): void {
    if (this.link.state === "stopped") return;
    this.end(new CallError("CLOSED", "the client was closed"));
    this.link.stop();
  }

  addPeer(options: PeerSessionOptions, events: PeerEvents): Peer {
    const peer = new Peer(options, events, this);
    this.peers.add(peer);
    const others = this.byAgent.get(peer.agentId) ?? [];
    this.byAgent.set(peer.agentId, [...others, peer]);
    if (this.link.state === "online") peer.linkOnline(false);
    return peer;
  }

  /**
   * Accepts a call; `done` is called exactly once, and synchronously only if the call cannot be
   * accepted at all. Returns a function that aborts it, not to be called after `done`.
   */
  call(peer: Peer, request: CallRequest, done: (outcome: Outcome) => void): (why: unknown) => void {
    const built = requestTail(request.method, request.params);
    const refusal = built.ok
      ? this.refusal(built.tail, request.timeoutMs)
      : new CallError("BAD_ARGUMENT", built.error);
    if (refusal !== null || !built.ok) {
      done(failed(refusal as CallError));
      return () => undefined;
    }
    const call: Call = {
      method: request.method,
      tail: built.tail,
      idempotent: request.idempotent,
      waitForAgent: request.waitForAgent ?? false,
      sent: request.sent ?? null,
      deadline: this.ports.timer.now() + request.timeoutMs,
      repeated: false,
      mayHaveRun: false,
      session: null,
      settled: false,
      orphaned: false,
      timer: null,
      done,
    };
    this.calls.add(call);
    call.timer = this.ports.timer.set(request.timeoutMs, () => this.expire(peer, call));
    peer.add(call);
    return (why) => this.abort(peer, call, why);
  }

  /** A number that no other stream of this client has had. */
  streamNumber(): number {
    this.streamNumbers = (this.streamNumbers % LAST_STREAM) + 1;
    return this.streamNumbers;
  }

  /** Milliseconds until the relay's rate limit leaves room for another message; 0: now. */
  paceMs(): number {
    // The last requests of a session token are kept for what is not a stream's.
    if (this.link.renewal() === "now") return RENEWAL_PACE_MS;
    return this.pacer.waitMs(this.ports.timer.now());
  }

  get timer(): TimerPort {
    return this.ports.timer;
  }

  private refusal(tail: string, timeoutMs: unknown): CallError | null {
    // It also becomes the request's `expires`, which must be a number in JSON.
    if (!(typeof timeoutMs === "number" && timeoutMs >= 1 && timeoutMs <= MAX_TIMEOUT_MS)) {
      return new CallError("BAD_ARGUMENT", `timeoutMs must be 1 to ${MAX_TIMEOUT_MS}`);
    }
    if (this.ended !== null) return this.ended;
    if (this.calls.size - Math.min(this.inFlight.size, MAX_IN_FLIGHT) >= MAX_QUEUED) {
      return new CallError("BUSY", `${MAX_QUEUED} calls wait already`);
    }
    // The longest id and the longest `expires` that a session can reach.
    if (encodeRequest(2 ** 32, tail, 2 ** 33).length > MAX_PLAINTEXT_BYTES) {
      return new CallError("TOO_LARGE", `the call is over ${MAX_PLAINTEXT_BYTES} bytes as JSON`);
    }
    return null;
  }

  private expire(peer: Peer, call: Call): void {
    call.timer = null;
    peer.expired(call, this.link.state === "online" ? null : this.link.failure);
  }

  private abort(peer: Peer, call: Call, why: unknown): void {
    const outcome = failed(new CallError("ABORTED", `${call.method} was aborted`, { cause: why }));
    if (call.session === null) {
      peer.remove(call, outcome);
      return;
    }
    const { done } = call;
    call.orphaned = true;
    call.done = () => undefined;
    done(outcome);
  }

  settle(call: Call, outcome: Outcome): void {
    if (call.settled) return;
    call.settled = true;
    if (call.timer !== null) this.ports.timer.clear(call.timer);
    call.timer = null;
    this.calls.delete(call);
    this.inFlight.delete(call);
    call.done(outcome);
  }

  /** Sends waiting calls, one for each agent in turn, so that none starves another. */
  private pump(): void {
    if (this.pumping || this.ended !== null) return;
    this.pumping = true;
    for (const peer of this.pending) {
      if (this.link.state !== "online" || this.link.isMoving) break;
      if (this.renewToken()) {
        // Another link may come only once the one that was left is gone, which nobody tells here.
        this.pumpIn(RENEWAL_PACE_MS);
        break;
      }
      const now = this.ports.timer.now();
      const waitMs = Math.max(this.crowdedMs(now), this.pacer.waitMs(now));
      if (waitMs > 0) {
        this.pumpIn(waitMs);
        break;
      }
      this.pending.delete(peer);
      // Added again, it is behind the others, and this loop reaches it there.
      try {
        if (peer.step()) this.pending.add(peer);
      } catch (cause) {
        // Of the suite, such as an engine without its cipher. The next call gets its own chance.
        peer.failFirst(cause);
        this.pending.add(peer);
      }
    }
    this.pumping = false;
  }

  /**
   * How long too many calls are in flight, unless one ends. Those that are long overdue count no
   * more: agents that have lost their power must not hold up the others.
   */
  private crowdedMs(now: number): number {
    let awaited = this.inFlight.size;
    if (awaited < MAX_IN_FLIGHT) return 0;
    for (const sentAt of this.inFlight.values()) {
      const leftMs = sentAt + OVERDUE_MS - now;
      if (leftMs > 0) return leftMs;
      awaited -= 1;
      if (awaited < MAX_IN_FLIGHT) break;
    }
    return 0;
  }

  private streaming(): boolean {
    for (const peer of this.peers) if (peer.streams > 0) return true;
    return false;
  }

  /** Or sooner: what is awaited may have come meanwhile, so that only the pace is left. */
  private pumpIn(ms: number): void {
    const at = this.ports.timer.now() + ms;
    if (this.pace.isSet && this.pumpAt <= at) return;
    this.pumpAt = at;
    this.pace.set(ms, () => this.pump());
  }

  /**
   * Fetches a fresh session token if one is due, on a second link. Relays that cannot do that get
   * it between two calls if possible, otherwise new calls wait for those in flight, for a limited
   * time. True: send nothing.
   */
  private renewToken(): boolean {
    const due = this.link.renewal();
    if (due === "no") return false;
    if (this.link.renewBeside()) return due === "now";
    if (this.streaming()) {
      this.migrateLink(due);
      return due === "now";
    }
    if (due === "soon" && this.inFlight.size > 0) return false;
    if (this.inFlight.size === 0) {
      this.link.renew();
    } else if (!this.drain.isSet) {
      this.drain.set(TOKEN_DRAIN_MS, () => this.link.renew());
    }
    return true;
  }

  /**
   * With an older relay nothing may be in flight while the links change: a packet lost between the
   * two ends a stream. So streams are held until both sides have drained.
   */
  private migrateLink(due: "soon" | "now"): void {
    const now = this.ports.timer.now();
    if (this.quiet.isSet || (due === "soon" && now < this.nextMigrationAt)) return;
    this.awaitQuiet(now);
  }

  private awaitQuiet(sinceMs: number): void {
    for (const peer of this.peers) peer.hold();
    this.quiet.set(STREAM_QUIET_MS, () => {
      const now = this.ports.timer.now();
      const quiet =
        this.inFlight.size === 0 &&
        [...this.peers].every((peer) => peer.quietSince(now - STREAM_QUIET_MS));
      const late = now - sinceMs >= TOKEN_DRAIN_MS;
      if (quiet || (late && this.link.renewal() === "now")) this.link.renew();
      else if (!late) this.awaitQuiet(sinceMs);
      else {
        this.nextMigrationAt = now + MIGRATION_RETRY_MS;
        for (const peer of this.peers) peer.release();
      }
    });
  }

  send(session: PeerSession, text: string): void {
    if (this.link.state !== "online") return;
    const first = session.first as string;
    this.pacer.spend(this.ports.timer.now());
    // With more sessions than bindings, one may be dropped before its answer comes: then only a
    // request_id still leads here.
    const fits = this.owners.size <= MAX_BINDINGS_PER_CONNECTION;
    if (fits && this.bindings.use(first) && !session.unbound) {
      this.link.sendRequest(text);
    } else {
      this.bindings.add(first);
      const requestId = toBase64url(this.ports.random(REQUEST_ID_BYTES));
      this.link.sendRequest(encodeEnvelope(text, session.agentId, requestId));
    }
    // Streams and subscribers do not send by the pump, but keep-alives at least pass here.
    const due = this.link.renewal();
    if (due !== "no" && !this.link.renewBeside() && this.streaming()) this.migrateLink(due);
  }

  received(message: MessageForClient, early: boolean): void {
    if (message.kind === "packet") {
      this.bindings.use(message.first);
      const owner = this.owners.get(message.first);
      owner?.receive(message.text, early);
    } else if (message.kind === "agentStatus") {
      this.receivePresence(message);
    } else if (message.kind === "error") {
      this.receiveError(message);
    }
  }

  renamed(session: PeerSession, before: string | null, first: string | null): void {
    if (before !== null) this.owners.delete(before);
    if (first !== null) this.owners.set(first, session);
  }

  ready(peer: Peer): void {
    this.pending.add(peer);
    this.pump();
  }

  streamsOver(): void {
    this.pump();
  }

  private receivePresence(status: AgentPresence): void {
    const { agentId, online } = status;
    for (const peer of this.byAgent.get(agentId) ?? []) {
      if (online) peer.agentOnline();
      else peer.agentOffline();
    }
    // Not cut: an engine may keep the whole text of which another is a part.
    const at = status.timestamp.length > MAX_TIMESTAMP ? "" : status.timestamp;
    this.events.presence({ agentId, online, at });
  }

  private receiveError(message: RelayError): void {
    const { code, error, sid } = message;
    if (sid === null) {
      this.ports.log("warn", "the relay reports an error", { code, error });
      return;
    }
    // Only a session's current C counts: errors about an abandoned one arrive too late to matter.
    const owner = this.owners.get(firstPart(sid));
    owner?.peer.relayError(owner, code, error);
  }

  online(fresh: boolean): void {
    this.bindings.clear();
    for (const peer of this.peers) peer.linkOnline(fresh);
    this.events.link({ state: "online" });
  }

  /** Sessions and calls continue; the relay learns their new route from the next packets. */
  moved(): void {
    for (const peer of this.peers) peer.linkMoved();
  }

  /** The new node has none of the old one's bindings. */
  moving(): void {
    this.bindings.clear();
  }

  settled(): void {
    this.pump();
  }

  isDrained(): boolean {
    return this.inFlight.size === 0;
  }

  left(): void {
    for (const peer of this.peers) peer.linkLeft();
  }

  offline(reason: CallError): void {
    this.stopDraining();
    for (const peer of this.peers) peer.linkOffline();
    this.events.link({ state: "offline", reason });
  }

  refused(reason: CallError): void {
    this.end(reason);
    this.events.link({ state: "refused", reason });
  }

  private end(reason: CallError): void {
    this.ended = reason;
    this.stopDraining();
    this.pace.clear();
    for (const call of this.calls) {
      const isMade = call.session !== null || call.mayHaveRun;
      const error =
        isMade && reason.code !== "CLOSED"
          ? new CallError("OUTCOME_UNKNOWN", reason.message, {
              cause: reason,
              retryable: call.idempotent,
            })
          : reason;
      this.settle(call, failed(error));
    }
    for (const peer of this.peers) peer.close();
  }

  private stopDraining(): void {
    this.drain.clear();
    this.quiet.clear();
  }
}
