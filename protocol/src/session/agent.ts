/**
 * The agent's side of every session (section 2): it answers openings without keeping state, stores
 * a session on the first verified packet of a `C.A` that it would derive itself, and never seals
 * under a nonce twice.
 *
 * This is safe after a reboot because `A` is derived from an epoch secret that no earlier start
 * shares (boot count), and within a start because an epoch remembers what it stored: no stored
 * session's `A` is ever derived again. So a recorded packet can only lead to an answer with an `A`
 * that was never used for data, and the recorder lacks the secret to continue.
 *
 * Pure: text and a time in, a verdict out. Synchronous, so packets are handled one after another
 * from the first check to the moved mark, as the contract requires.
 *
 * [portable]
 */
import type { Packet } from "../crypto/packet.ts";
import { openPacket, parsePacket, sealPacket } from "../crypto/packet.ts";
import { deriveEpochSecret, extractPrk } from "../crypto/secret-keys.ts";
import type { SessionKeys } from "../crypto/session-keys.ts";
import {
  deriveAgentPart,
  deriveClientKeys,
  deriveSessionKeys,
  nextEpochSecret,
} from "../crypto/session-keys.ts";
import type { HmacKey, Suite } from "../crypto/suite.ts";
import type { Version } from "../crypto/versions.ts";
import { asciiBytes, equalTexts, NO_BYTES } from "../encoding/bytes.ts";
import {
  MAX_PLAINTEXT_BYTES,
  MAX_SEQ,
  SESSION_IDLE_MS,
  SESSION_MAX_AGE_MS,
  SID_PART_LENGTH,
} from "../spec.ts";
import { Buckets, FIRSTS, FORGERIES, LOOKUPS, OPENINGS } from "./buckets.ts";
import { CLOSE_NOTICE } from "./closing.ts";

/** Local limits; boards use smaller ones. */
export interface AgentSessionLimits {
  /**
   * Sessions held at once; the one idle for longest is dropped when another is stored. Also: how
   * many packets wait while too many are forged.
   */
  readonly maxSessions: number;
  /** Whether memory allows another session; absent: always. */
  readonly hasRoom?: () => boolean;
  /** Rate and burst of each kind of work that a peer without the secret can cause. */
  readonly unheldPerSecond: number;
  readonly unheldBurst: number;
  /**
   * Sessions that one epoch stores. A crowd of twice as many is served in one round trip; three
   * times as many digests are kept.
   */
  readonly epochSessions: number;
}

/** Enough for a busy agent on Node; a flood of openings costs it about 2 % of a core. */
export const DEFAULT_AGENT_LIMITS: AgentSessionLimits = {
  maxSessions: 64,
  unheldPerSecond: 200,
  unheldBurst: 400,
  epochSessions: 128,
};

export interface AgentSessionsOptions {
  readonly suite: Suite;
  readonly agentId: string;
  readonly agentToken: string;
  /** From the configuration that holds `agentToken`, never from the relay. */
  readonly version: Version;
  /** Raised, flushed and read back before this object is constructed. */
  readonly bootCount: number;
  /** 16 bytes, mixed in but never relied on. */
  readonly deviceRandom: Uint8Array;
  readonly serialNumber: string | null;
  readonly limits: AgentSessionLimits;
}

/**
 * Why a packet was dropped without an answer. `malformed`, `version`, `replay` and `rate` are
 * detected before any cryptography; `forged` is a tag that did not verify.
 */
export type RefusalReason = "malformed" | "version" | "replay" | "rate" | "forged";

export type AgentVerdict =
  /** Send `text` back in the form (bare or enveloped) of the received packet. */
  | { readonly kind: "answer"; readonly text: string }
  /**
   * A verified plaintext. `gap`: packets of this session lost before it. `fresh`: the first one.
   * `ageMs`: since the session was stored. Before anything else, send `farewell` to the session
   * that was dropped to make room (null: none was). `reply`, under "3" and "4": the packet to send
   * for the session's first one, whose plaintext is not for the program.
   */
  | {
      readonly kind: "message";
      readonly sid: string;
      readonly plaintext: Uint8Array;
      readonly gap: number;
      readonly fresh: boolean;
      readonly ageMs: number;
      readonly farewell: Farewell | null;
      readonly reply?: string;
    }
  /** Too many were forged: `resume` will tell what becomes of it. */
  | { readonly kind: "waits" }
  | { readonly kind: "refused"; readonly reason: RefusalReason };

/** A sealed `system.close`, the last packet of a session that the agent no longer holds. */
export interface Farewell {
  readonly sid: string;
  readonly text: string;
}

export interface HeldSession {
  readonly sid: string;
  readonly first: string;
  /** As bytes only in SmallAgentSessions. */
  keys: SessionKeys | Uint8Array;
  /** Last seq accepted from the client; 0 while the session is answered but not stored. */
  received: number;
  /** Last seq sealed for the client. */
  sent: number;
  acceptedAt: number;
  storedAt: number;
}

/** What an `A` is derived from, and what became of it. */
export interface Epoch {
  readonly secret: Uint8Array;
  /** Sessions that it may still store. */
  room: number;
  /** Digests of each `A` that it stored, one after another: a board has no room for a list. */
  spent: string;
}

/**
 * Characters of a digest, 36 bits of an HMAC. A false hit costs a client a round trip, and nothing
 * else.
 */
const DIGEST_LENGTH = 6;

/**
 * How long a session that was just opened is kept for its first call, where memory is short. Of
 * several clients at once a slow board hears every opening first.
 */
const FIRST_CALL_MS = 10_000;
/** The same after each message: its call may run, and the next may have arrived. */
const NEXT_CALL_MS = 500;

const digestOf = (part: string): string => part.substring(0, DIGEST_LENGTH);

export class AgentSessions {
  // `declare`, because Espruino cannot parse a field without a value; this erases to nothing.
  declare suite: Suite;
  declare version: Version;
  declare limits: AgentSessionLimits;
  declare prk: HmacKey;
  /** The current epoch, and the one before it while that may store sessions. */
  declare epochs: Epoch[];
  declare sessions: HeldSession[];
  /**
   * The last one answered in this epoch and not stored: its first packet usually follows at once.
   */
  declare answered: HeldSession | null;
  declare lapsed: string[];
  declare buckets: Buckets;
  /** Packets of held sids that wait for a token, in order. */
  declare delayed: string[];
  declare counters: {
    accepted: number;
    answered: number;
    /** Lost packets, according to the gaps. */
    gaps: number;
    malformed: number;
    version: number;
    replay: number;
    rate: number;
    forged: number;
  };

  constructor(options: AgentSessionsOptions) {
    this.suite = options.suite;
    this.version = options.version;
    this.limits = options.limits;
    this.prk = extractPrk(options.suite, options.agentId, options.agentToken);
    const secret = deriveEpochSecret(
      options.suite,
      this.prk,
      options.bootCount,
      options.deviceRandom,
      options.serialNumber,
    );
    this.epochs = [{ secret: secret, room: options.limits.epochSessions, spent: "" }];
    this.sessions = [];
    this.answered = null;
    this.lapsed = [];
    this.buckets = new Buckets(options.limits.unheldPerSecond, options.limits.unheldBurst);
    this.delayed = [];
    this.counters = {
      accepted: 0,
      answered: 0,
      gaps: 0,
      malformed: 0,
      version: 0,
      replay: 0,
      rate: 0,
      forged: 0,
    };
  }

  /** Decides what to do with a packet's text. `now`: milliseconds of a monotonic clock. */
  receive(text: string, now: number): AgentVerdict {
    const packet = parsePacket(text);
    if (packet === null) return this.refuse("malformed");
    if (packet.v !== this.version) return this.refuse("version");
    const second = packet.second;
    // Agent parts of ours have one length, and only an agent sends seq 0 of a `C.A`.
    if (second !== null && (second.length !== SID_PART_LENGTH || packet.seq === 0)) {
      return this.refuse("malformed");
    }
    this.forgetOver(now);
    const held = this.find(packet.sid);
    if (held === null) return this.receiveUnheld(packet, now);
    if (packet.seq <= held.received) return this.refuse("replay");
    if (this.delayed.length > 0 || this.buckets.readyAt(FORGERIES) > now) {
      if (this.delayed.length >= this.limits.maxSessions) return this.refuse("rate");
      this.delayed.push(text);
      return { kind: "waits" };
    }
    return this.receiveHeld(packet, held, null, now);
  }

  /** The verdict on the packet that has waited longest; null while it has to wait. */
  resume(now: number): AgentVerdict | null {
    if (this.delayed.length === 0 || this.buckets.readyAt(FORGERIES) > now) return null;
    // Those behind it wait for its verdict.
    const behind = this.delayed;
    const text = behind.shift() as string;
    this.delayed = [];
    const verdict = this.receive(text, now);
    this.delayed = behind;
    return verdict;
  }

  /**
   * Seals a plaintext (at most 47,000 bytes) for a session; returns null if the session is not held
   * (any more) or has used up its numbers. The caller queues the text at once and never asks for
   * the same packet again: a used seq is never sealed twice.
   */
  seal(sid: string, plaintext: Uint8Array): string | null {
    if (plaintext.length > MAX_PLAINTEXT_BYTES) throw new Error("plaintext over 47,000 bytes");
    const held = this.find(sid);
    if (held === null || held.sent >= MAX_SEQ) return null;
    return this.sealWith(held, ++held.sent, plaintext);
  }

  /** Forgets a session because its client has left. */
  close(sid: string): void {
    const held = this.find(sid);
    if (held !== null) this.forget(this.sessions.indexOf(held));
  }

  /**
   * Forgets sessions that were idle too long or are too old. Returns all sids forgotten since the
   * last call, including those forgotten by receive.
   */
  expire(now: number): string[] {
    this.forgetOver(now);
    const lapsed = this.lapsed;
    this.lapsed = [];
    return lapsed;
  }

  /** When expire or resume has work to do; null while no session is held. */
  nextExpiry(): number | null {
    let next = this.delayed.length > 0 ? this.buckets.readyAt(FORGERIES) : Infinity;
    for (const session of this.sessions) next = Math.min(next, this.endOf(session));
    return next === Infinity ? null : next;
  }

  /**
   * Final: forgets every session and the epochs, so that no memory image contains them, and refuses
   * all packets (as `rate`) without any cryptography.
   */
  end(): void {
    this.sessions = [];
    this.delayed = [];
    this.answered = null;
    for (const epoch of this.epochs) epoch.secret.fill(0);
    this.buckets = new Buckets(1, 0);
  }

  /** When the last packet of a session was verified; null if the session is not held. */
  heardAt(sid: string): number | null {
    const held = this.find(sid);
    return held === null ? null : held.acceptedAt;
  }

  has(sid: string): boolean {
    return this.find(sid) !== null;
  }

  held(): string[] {
    return this.sessions.map((session) => session.sid);
  }

  /**
   * A separate function, so that a board has freed these keys when it derives those of the answer.
   */
  private verifies(packet: Packet): boolean {
    const keys = deriveClientKeys(this.suite, this.prk, this.version, packet.sid);
    return openPacket(this.suite, keys, packet) !== null;
  }

  protected open(held: HeldSession, packet: Packet): Uint8Array | null {
    return openPacket(this.suite, (held.keys as SessionKeys).c2a, packet);
  }

  protected sealWith(held: HeldSession, seq: number, plaintext: Uint8Array): string {
    return sealPacket(
      this.suite,
      (held.keys as SessionKeys).a2c,
      this.version,
      held.sid,
      seq,
      plaintext,
    );
  }

  /** `epoch`: the one that stores the session with this packet; null: it is held. */
  private receiveHeld(
    packet: Packet,
    held: HeldSession,
    epoch: Epoch | null,
    now: number,
  ): AgentVerdict {
    // Check, open, mark: a forged packet changes nothing.
    const plaintext = this.open(held, packet);
    if (plaintext === null) {
      if (epoch === null) this.buckets.take(FORGERIES, now);
      return this.refuse("forged");
    }
    const gap = packet.seq - held.received - 1;
    let farewell: Farewell | null = null;
    if (epoch !== null) {
      if (this.sessions.length > 0 && !this.hasPlace()) {
        const idlest = this.idlest(now);
        if (idlest < 0) {
          this.buckets.giveBack(FIRSTS);
          return this.refuse("rate");
        }
        farewell = this.dismiss(idlest);
      }
      this.store(held, epoch, now);
    }
    held.received = packet.seq;
    held.acceptedAt = now;
    this.counters.accepted++;
    this.counters.gaps += gap;
    return {
      kind: "message",
      // The session's own copy of the sid, so that a board stores it only once.
      sid: held.sid,
      plaintext: plaintext,
      gap: gap,
      fresh: epoch !== null,
      ageMs: now - held.storedAt,
      farewell: farewell,
    };
  }

  /** An opening, or a packet of a session not held. */
  protected receiveUnheld(packet: Packet, now: number): AgentVerdict {
    let epoch: Epoch | null = null;
    // A second session for a held C is never stored.
    if (packet.second !== null && this.findFirst(packet.first) === null) {
      if (!this.buckets.take(LOOKUPS, now)) return this.refuse("rate");
      epoch = this.epochOf(packet);
    }
    if (!this.buckets.take(epoch === null ? OPENINGS : FIRSTS, now)) return this.refuse("rate");
    if (epoch !== null) {
      return this.receiveHeld(packet, this.unstored(packet.first, packet.sid), epoch, now);
    }
    return this.verifies(packet) ? this.answer(packet.first) : this.refuse("forged");
  }

  /** The epoch that may store the packet's session: its `A` is from there, and not spent. */
  epochOf(packet: Packet): Epoch | null {
    const part = packet.second as string;
    for (const epoch of this.epochs) {
      if (
        epoch.spent.indexOf(digestOf(part)) < 0 &&
        equalTexts(part, this.part(epoch, packet.first))
      )
        return epoch;
    }
    return null;
  }

  /** Marks the session's C as spent, and holds the session. */
  private store(session: HeldSession, epoch: Epoch, now: number): void {
    this.buckets.giveBack(FIRSTS);
    epoch.spent += digestOf(session.sid.substring(SID_PART_LENGTH + 1));
    epoch.room--;
    if (session === this.answered) this.answered = null;
    if (epoch.room === 0) {
      if (epoch === this.epochs[0]) this.moveEpoch();
      else this.eraseBefore();
    }
    session.storedAt = now;
    this.sessions.push(session);
  }

  /** Begins the next epoch; the one before the current one is over. */
  private moveEpoch(): void {
    const current = this.epochs[0] as Epoch;
    const room = this.limits.epochSessions;
    this.eraseBefore();
    current.room = room;
    const secret = nextEpochSecret(this.suite, current.secret);
    this.epochs = [{ secret: secret, room: room, spent: "" }, current];
    this.answered = null;
  }

  /** From here on no `A` of the epoch before the current one is known. */
  private eraseBefore(): void {
    if (this.epochs.length > 1) (this.epochs.pop() as Epoch).secret.fill(0);
  }

  /**
   * Step 2: answers with `C.A` of the session held for this C, else of this epoch. Always the same
   * bytes.
   */
  protected answer(first: string): AgentVerdict {
    const held = this.findFirst(first);
    const session = held === null ? this.offer(first) : held;
    this.counters.answered++;
    return { kind: "answer", text: this.sealWith(session, 0, NO_BYTES) };
  }

  /** The session that a C not held may have in this epoch. */
  private offer(first: string): HeldSession {
    if (this.answered !== null && this.answered.first === first) return this.answered;
    // First, because a board cannot hold two sessions that are answered and not stored.
    this.answered = null;
    let part = this.part(this.epochs[0] as Epoch, first);
    // No stored session's `A` is ever derived again.
    if ((this.epochs[0] as Epoch).spent.indexOf(digestOf(part)) >= 0) {
      this.moveEpoch();
      part = this.part(this.epochs[0] as Epoch, first);
    }
    const session = this.unstored(first, `${first}.${part}`);
    this.answered = session;
    return session;
  }

  /** `A` for a C in an epoch. */
  private part(epoch: Epoch, first: string): string {
    return deriveAgentPart(this.suite, epoch.secret, this.version, first);
  }

  protected unstored(first: string, sid: string): HeldSession {
    const answered = this.answered;
    if (answered !== null && answered.sid === sid) return answered;
    return {
      sid: sid,
      first: first,
      keys: this.keysOf(sid),
      received: 0,
      sent: 0,
      acceptedAt: 0,
      storedAt: 0,
    };
  }

  /** Those that a session begins with. */
  protected keysOf(sid: string): SessionKeys | Uint8Array {
    return deriveSessionKeys(this.suite, this.prk, this.version, sid);
  }

  protected refuse(reason: RefusalReason): AgentVerdict {
    this.counters[reason]++;
    return { kind: "refused", reason: reason };
  }

  protected hasPlace(): boolean {
    const limits = this.limits;
    if (this.sessions.length >= limits.maxSessions) return false;
    return limits.hasRoom === undefined || limits.hasRoom();
  }

  /**
   * The session to drop for another: the one idle for longest. Where memory is short, none that
   * waits for its first call or calls right now: of many clients at once, each would throw out the
   * one before it. -1: there is none, so the new client has to repeat its packet.
   */
  protected idlest(now: number): number {
    const full = this.sessions.length >= this.limits.maxSessions;
    let idlest = -1;
    let since = Infinity;
    for (let i = 0; i < this.sessions.length; i++) {
      const session = this.sessions[i] as HeldSession;
      const at = session.acceptedAt;
      const keptMs = session.received < 2 ? FIRST_CALL_MS : NEXT_CALL_MS;
      if (at >= since || (!full && now - at < keptMs)) continue;
      idlest = i;
      since = at;
    }
    return idlest;
  }

  /** Drops a session for another one. */
  private dismiss(index: number): Farewell | null {
    const sid = (this.sessions[index] as HeldSession).sid;
    const text = this.seal(sid, asciiBytes(CLOSE_NOTICE));
    this.forget(index);
    return text === null ? null : { sid: sid, text: text };
  }

  /** Whatever arrives, a session ends when it is idle or old. */
  private endOf(session: HeldSession): number {
    return Math.min(session.acceptedAt + SESSION_IDLE_MS, session.storedAt + SESSION_MAX_AGE_MS);
  }

  private forgetOver(now: number): void {
    for (let i = this.sessions.length - 1; i >= 0; i--) {
      if (this.endOf(this.sessions[i] as HeldSession) <= now) this.forget(i);
    }
  }

  private forget(index: number): void {
    this.lapsed.push((this.sessions[index] as HeldSession).sid);
    this.sessions.splice(index, 1);
  }

  protected find(sid: string): HeldSession | null {
    for (const session of this.sessions) if (session.sid === sid) return session;
    return null;
  }

  protected findFirst(first: string): HeldSession | null {
    for (const session of this.sessions) if (session.first === first) return session;
    return null;
  }
}
