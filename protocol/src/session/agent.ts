/**
 * The agent's side of every session (section 2): it answers openings without keeping state, stores
 * a session on the first verified packet of a `C.A` that it would derive itself in this epoch, and
 * never seals under a nonce twice.
 *
 * This is safe after a reboot because `A` is derived from an epoch secret that no earlier start and
 * no stored session shares (boot count; "one epoch, one session"). So a recorded packet can only
 * lead to an answer with an `A` that was never used for data, and the recorder lacks the secret to
 * continue.
 *
 * Pure: text and a time in, a verdict out. Synchronous, so packets are handled one after another
 * from the first check to the moved mark, as the contract requires.
 *
 * [portable]
 */
import type { SessionKeys } from "../crypto/keys.ts";
import {
  deriveAgentPart,
  deriveClientKeys,
  deriveSessionKeys,
  nextEpochSecret,
} from "../crypto/keys.ts";
import type { Packet } from "../crypto/packet.ts";
import { openPacket, parsePacket, sealPacket } from "../crypto/packet.ts";
import { deriveEpochSecret, extractPrk } from "../crypto/secret-keys.ts";
import type { HmacKey, Suite, Version } from "../crypto/suite.ts";
import { asciiBytes, equalTexts, NO_BYTES } from "../encoding/bytes.ts";
import { MAX_PLAINTEXT_BYTES, MAX_SEQ, SESSION_IDLE_MS, SID_PART_LENGTH } from "../spec.ts";
import { CLOSE_NOTICE } from "./closing.ts";

/** Local limits; boards use smaller ones. */
export interface AgentSessionLimits {
  /**
   * Sessions held at once; the one idle for longest is dropped before another opening is answered.
   */
  readonly maxSessions: number;
  /** Whether memory allows another session; absent: always. */
  readonly hasRoom?: () => boolean;
  /** Packets with unknown sids for which cryptography is used, per second and in a burst. */
  readonly unheldPerSecond: number;
  readonly unheldBurst: number;
}

/** Enough for a busy agent on Node; a flood of openings costs it about 2 % of a core. */
export const DEFAULT_AGENT_LIMITS: AgentSessionLimits = {
  maxSessions: 64,
  unheldPerSecond: 200,
  unheldBurst: 400,
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
  /**
   * Send `text` back in the form (bare or enveloped) of the received packet; before it, send
   * `farewell` to the session that was dropped to make room (null: none was).
   */
  | { readonly kind: "answer"; readonly text: string; readonly farewell: Farewell | null }
  /**
   * A verified plaintext. `gap`: packets of this session lost before it. `fresh`: the first one.
   */
  | {
      readonly kind: "message";
      readonly sid: string;
      readonly plaintext: Uint8Array;
      readonly gap: number;
      readonly fresh: boolean;
    }
  | { readonly kind: "refused"; readonly reason: RefusalReason };

/** A sealed `system.close`, the last packet of a session that the agent no longer holds. */
export interface Farewell {
  readonly sid: string;
  readonly text: string;
}

interface HeldSession {
  readonly sid: string;
  readonly first: string;
  readonly keys: SessionKeys;
  /** Last seq accepted from the client; 0 while the session is answered but not stored. */
  received: number;
  /** Last seq sealed for the client. */
  sent: number;
  acceptedAt: number;
}

export class AgentSessions {
  // `declare`, because Espruino cannot parse a field without a value; this erases to nothing.
  declare suite: Suite;
  declare version: Version;
  declare limits: AgentSessionLimits;
  declare prk: HmacKey;
  declare epochSecret: Uint8Array;
  declare sessions: HeldSession[];
  /**
   * The last one answered in this epoch and not stored: its first packet usually follows at once.
   */
  declare answered: HeldSession | null;
  declare lapsed: string[];
  declare unheldTokens: number;
  declare unheldAt: number;
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
    this.epochSecret = deriveEpochSecret(
      options.suite,
      this.prk,
      options.bootCount,
      options.deviceRandom,
      options.serialNumber,
    );
    this.sessions = [];
    this.answered = null;
    this.lapsed = [];
    this.unheldTokens = options.limits.unheldBurst;
    this.unheldAt = 0;
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
    this.forgetIdle(now);
    const held = this.find(packet.sid);
    return held === null ? this.receiveUnheld(packet, now) : this.receiveHeld(packet, held, now);
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
    held.sent++;
    return sealPacket(this.suite, held.keys.a2c, this.version, sid, held.sent, plaintext);
  }

  /** Forgets a session because its client has left. */
  close(sid: string): void {
    const held = this.find(sid);
    if (held !== null) this.forget(this.sessions.indexOf(held));
  }

  /**
   * Forgets sessions that were idle too long. Returns all sids forgotten since the last call,
   * including those forgotten by receive.
   */
  expire(now: number): string[] {
    this.forgetIdle(now);
    const lapsed = this.lapsed;
    this.lapsed = [];
    return lapsed;
  }

  /** When expire has work to do; null while no session is held. */
  nextExpiry(): number | null {
    let next: number | null = null;
    for (const session of this.sessions) {
      const due = session.acceptedAt + SESSION_IDLE_MS;
      if (next === null || due < next) next = due;
    }
    return next;
  }

  /**
   * Final: forgets every session and the epoch, so that no memory image contains them, and refuses
   * all packets (as `rate`) without any cryptography.
   */
  end(): void {
    this.sessions = [];
    this.answered = null;
    this.epochSecret.fill(0);
    this.limits = { maxSessions: 0, unheldPerSecond: 0, unheldBurst: 0 };
    this.unheldTokens = 0;
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
  verifies(packet: Packet): boolean {
    const keys = deriveClientKeys(this.suite, this.prk, this.version, packet.sid);
    return openPacket(this.suite, keys, packet) !== null;
  }

  receiveHeld(packet: Packet, held: HeldSession, now: number): AgentVerdict {
    // Check, open, mark: a forged packet changes nothing.
    if (packet.seq <= held.received) return this.refuse("replay");
    const plaintext = openPacket(this.suite, held.keys.c2a, packet);
    if (plaintext === null) return this.refuse("forged");
    const gap = packet.seq - held.received - 1;
    const fresh = held.received === 0;
    if (fresh) {
      // One epoch, one session: what was answered in this epoch can never be stored again.
      this.epochSecret = nextEpochSecret(this.suite, this.epochSecret);
      this.answered = null;
      // There is a place: room was made when this epoch's `A` was answered, and nothing was stored
      // since.
      this.sessions.push(held);
    }
    held.received = packet.seq;
    held.acceptedAt = now;
    this.counters.accepted++;
    this.counters.gaps += gap;
    // The session's own copy of the sid, so that a board stores it only once.
    return { kind: "message", sid: held.sid, plaintext: plaintext, gap: gap, fresh: fresh };
  }

  /** An opening, or a packet of a session not held. */
  receiveUnheld(packet: Packet, now: number): AgentVerdict {
    if (!this.admit(now)) return this.refuse("rate");
    const first = packet.first;
    // A second session for a held C is never stored.
    const storable = packet.second !== null && this.findFirst(first) === null;
    if (storable && equalTexts(packet.sid, this.nextSid(first))) {
      return this.receiveHeld(packet, this.unstored(first, packet.sid), now);
    }
    return this.verifies(packet) ? this.answer(first) : this.refuse("forged");
  }

  /**
   * Step 2: answers with `C.A` of the session held for this C, else of this epoch. Always the same
   * bytes.
   */
  answer(first: string): AgentVerdict {
    const held = this.findFirst(first);
    // Before looking for room: a board cannot hold two sessions that are answered and not stored.
    if (held === null && this.answered !== null && this.answered.first !== first)
      this.answered = null;
    const farewell = held === null ? this.makePlace() : null;
    const session = held === null ? this.unstored(first, this.nextSid(first)) : held;
    if (held === null) this.answered = session;
    this.counters.answered++;
    return {
      kind: "answer",
      text: sealPacket(this.suite, session.keys.a2c, this.version, session.sid, 0, NO_BYTES),
      farewell: farewell,
    };
  }

  /** The `C.A` of this epoch for a C. */
  nextSid(first: string): string {
    const answered = this.answered;
    return answered !== null && answered.first === first
      ? answered.sid
      : `${first}.${deriveAgentPart(this.suite, this.epochSecret, this.version, first)}`;
  }

  unstored(first: string, sid: string): HeldSession {
    const answered = this.answered;
    if (answered !== null && answered.sid === sid) return answered;
    const keys = deriveSessionKeys(this.suite, this.prk, this.version, sid);
    return { sid: sid, first: first, keys: keys, received: 0, sent: 0, acceptedAt: 0 };
  }

  refuse(reason: RefusalReason): AgentVerdict {
    this.counters[reason]++;
    return { kind: "refused", reason: reason };
  }

  /** A token bucket, so that packets with unknown sids cannot cause unbounded cryptography. */
  admit(now: number): boolean {
    const gained = ((now - this.unheldAt) * this.limits.unheldPerSecond) / 1000;
    this.unheldTokens = Math.min(this.limits.unheldBurst, this.unheldTokens + Math.max(0, gained));
    this.unheldAt = now;
    if (this.unheldTokens < 1) return false;
    this.unheldTokens--;
    return true;
  }

  /** Drops the session idle for longest if there is no room for another one. */
  makePlace(): Farewell | null {
    const count = this.sessions.length;
    if (count === 0) return null;
    const limits = this.limits;
    const full = count >= limits.maxSessions;
    if (!full && (limits.hasRoom === undefined || limits.hasRoom())) return null;
    let idlest = 0;
    for (let i = 1; i < count; i++) {
      const candidate = this.sessions[i] as HeldSession;
      if (candidate.acceptedAt < (this.sessions[idlest] as HeldSession).acceptedAt) idlest = i;
    }
    const sid = (this.sessions[idlest] as HeldSession).sid;
    const text = this.seal(sid, asciiBytes(CLOSE_NOTICE));
    this.forget(idlest);
    return text === null ? null : { sid: sid, text: text };
  }

  forgetIdle(now: number): void {
    for (let i = this.sessions.length - 1; i >= 0; i--) {
      if (now - (this.sessions[i] as HeldSession).acceptedAt >= SESSION_IDLE_MS) this.forget(i);
    }
  }

  forget(index: number): void {
    this.lapsed.push((this.sessions[index] as HeldSession).sid);
    this.sessions.splice(index, 1);
  }

  find(sid: string): HeldSession | null {
    for (const session of this.sessions) if (session.sid === sid) return session;
    return null;
  }

  findFirst(first: string): HeldSession | null {
    for (const session of this.sessions) if (session.first === first) return session;
    return null;
  }
}
