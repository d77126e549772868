/**
 * A client's session with one agent (section 2). The client opens with a fresh random `C`, learns
 * `C.A` from a verified answer, confirms the session with a `system.ping`, and abandons `C`
 * permanently as soon as the agent verifiably answers with another `A` (it restarted, or forgot the
 * session).
 *
 *   idle --open--> opening --answer--> confirming --pong--> open
 *                     ^                    |                  |
 *                     |                 another answer, or silence
 *                     +------- waiting <---+------------------+
 *
 * Pure: commands, texts and a time in, effects out; `wakeAt` says when `timeout` has work.
 *
 * [portable]
 */
import type { Packet } from "../crypto/packet.ts";
import { openPacket, parsePacket, sealPacket } from "../crypto/packet.ts";
import { extractPrk } from "../crypto/secret-keys.ts";
import type { SessionKeys } from "../crypto/session-keys.ts";
import { deriveClientKeys, deriveSessionKeys } from "../crypto/session-keys.ts";
import type { HmacKey, Suite } from "../crypto/suite.ts";
import type { Version } from "../crypto/versions.ts";
import { toBase64url } from "../encoding/base64url.ts";
import { NO_BYTES } from "../encoding/bytes.ts";
import { isObject, jsonBytes, own, readJson } from "../encoding/json.ts";
import {
  MAX_PLAINTEXT_BYTES,
  MAX_SEQ,
  REOPEN_DELAY_MS,
  SESSION_RENEW_MS,
  SESSION_RENEW_PACKETS,
} from "../spec.ts";

export type ClientState = "idle" | "opening" | "confirming" | "open" | "waiting";
type ClientEvent = "open" | "answer" | "pong" | "otherAnswer" | "silence" | "due" | "giveUp";

/** Anything not in the table is a bug of ours and throws. */
const TABLE: {
  readonly [state in ClientState]: { readonly [event in ClientEvent]?: ClientState };
} = {
  idle: { open: "opening", giveUp: "idle" },
  opening: { answer: "confirming", giveUp: "idle" },
  confirming: { pong: "open", otherAnswer: "waiting", silence: "waiting", giveUp: "idle" },
  open: { otherAnswer: "waiting", giveUp: "idle" },
  waiting: { due: "opening", giveUp: "idle" },
};

/** Local timing, in milliseconds. */
export interface ClientTimings {
  /**
   * First wait before the same bytes are sent again; doubles each time. Each wait is up to half as
   * long again, at random, so that a crowd does not repeat in step.
   */
  readonly resendMs: number;
  readonly maxResendMs: number;
  /** How long the first ping may stay unanswered before this `C` is abandoned. */
  readonly confirmMs: number;
}

/** A second is longer than any usual round trip; after five, users tend to try again. */
export const DEFAULT_CLIENT_TIMINGS: ClientTimings = {
  resendMs: 1000,
  maxResendMs: 15000,
  confirmMs: 5000,
};

export interface ClientSessionOptions {
  readonly suite: Suite;
  /** Cryptographically strong. */
  readonly random: (length: number) => Uint8Array;
  readonly agentId: string;
  readonly agentToken: string;
  readonly version: Version;
  readonly timings: ClientTimings;
}

export type ClientRefusal = "malformed" | "version" | "foreign" | "replay" | "repeat" | "forged";

export type ClientEffect =
  /** Pass this packet to the relay. */
  | { readonly kind: "send"; readonly text: string }
  /**
   * The agent has proved its identity: calls may be sealed from now on. `gap`: packets lost before.
   */
  | { readonly kind: "opened"; readonly sid: string; readonly gap: number }
  /** A verified plaintext from the agent. `gap`: packets lost before it. */
  | { readonly kind: "message"; readonly plaintext: Uint8Array; readonly gap: number }
  /**
   * This `C` is abandoned: calls in flight on it have an unknown outcome. A new one opens by
   * itself, but not after `unproven`: whoever answered has the secret and not the device's key.
   */
  | { readonly kind: "abandoned"; readonly reason: "otherAnswer" | "silence" | "unproven" }
  | { readonly kind: "refused"; readonly reason: ClientRefusal };

/** The JSON-RPC id of the first ping; calls of the same session use other ids. */
export const FIRST_PING_ID = 1;
const FIRST_PING = { jsonrpc: "2.0", id: FIRST_PING_ID, method: "system.ping" };

const isPong = (plaintext: Uint8Array): boolean => {
  const message = readJson(plaintext);
  return (
    isObject(message) &&
    own(message, "id") === FIRST_PING_ID &&
    own(message, "method") === undefined
  );
};

export class ClientSession {
  // `declare`, because Espruino cannot parse a field without a value; this erases to nothing.
  declare suite: Suite;
  declare random: (length: number) => Uint8Array;
  declare version: Version;
  declare timings: ClientTimings;
  declare prk: HmacKey;
  declare state: ClientState;
  /** `C`, while there is one. */
  declare c: string | null;
  /** `C.A`, once a verified answer named it. */
  declare fullSid: string | null;
  declare keys: SessionKeys | null;
  declare sent: number;
  declare received: number;
  declare openedAt: number;
  /** The opening or first ping that is unanswered and may be sent again byte for byte. */
  declare unanswered: string | null;
  declare resendAt: number;
  declare resendMs: number;
  /** End of `confirming` or of `waiting`. */
  declare deadline: number;

  constructor(options: ClientSessionOptions) {
    this.suite = options.suite;
    this.random = options.random;
    this.version = options.version;
    this.timings = options.timings;
    this.prk = extractPrk(options.suite, options.agentId, options.agentToken);
    this.state = "idle";
    this.c = null;
    this.fullSid = null;
    this.keys = null;
    this.sent = 0;
    this.received = 0;
    this.openedAt = 0;
    this.unanswered = null;
    this.resendAt = 0;
    this.resendMs = 0;
    this.deadline = 0;
  }

  /** Begins a session with a fresh `C`. Only allowed from idle. */
  open(now: number): ClientEffect[] {
    this.move("open");
    return this.sendOpening(now);
  }

  /** Abandons `C` permanently and stays idle until `open`. Harmless in any state. */
  giveUp(): void {
    this.move("giveUp");
    this.forget();
  }

  /** Handles a packet's text. */
  receive(text: string, now: number): ClientEffect[] {
    const packet = parsePacket(text);
    if (packet === null || packet.second === null) return this.refuse("malformed");
    if (packet.v !== this.version) return this.refuse("version");
    if (this.c === null || packet.first !== this.c) return this.refuse("foreign");
    if (packet.sid === this.fullSid) return this.receiveData(packet);
    return packet.seq === 0 ? this.receiveAnswer(packet, now) : this.refuse("foreign");
  }

  /** Does what is due. Late, early or extra calls are harmless. */
  timeout(now: number): ClientEffect[] {
    if (this.state === "waiting" && now >= this.deadline) {
      this.move("due");
      return this.sendOpening(now);
    }
    if (this.state === "confirming" && now >= this.deadline) return this.abandon("silence", now);
    if (this.unanswered !== null && now >= this.resendAt) {
      this.resendIn(Math.min(this.resendMs * 2, this.timings.maxResendMs), now);
      return [{ kind: "send", text: this.unanswered }];
    }
    return [];
  }

  /** When timeout has work; null while nothing is awaited. */
  wakeAt(): number | null {
    if (this.state === "waiting") return this.deadline;
    if (this.state === "confirming") return Math.min(this.deadline, this.resendAt);
    return this.state === "opening" ? this.resendAt : null;
  }

  /**
   * Seals a plaintext (at most 47,000 bytes); returns null unless the session is open. The caller
   * passes the text on at once, and may send it again only byte for byte.
   */
  seal(plaintext: Uint8Array): string | null {
    if (plaintext.length > MAX_PLAINTEXT_BYTES) throw new Error("plaintext over 47,000 bytes");
    return this.state === "open" && this.sent < MAX_SEQ ? this.sealNext(plaintext) : null;
  }

  /** Whether it is time to replace the session with a new one. */
  renewalDue(now: number): boolean {
    return (
      this.state === "open" &&
      (this.sent >= SESSION_RENEW_PACKETS || now - this.openedAt >= SESSION_RENEW_MS)
    );
  }

  /** `C`, the part of the sid that the relay binds; null when idle or waiting. */
  first(): string | null {
    return this.c;
  }

  /** `C.A`; null before the answer. */
  sid(): string | null {
    return this.fullSid;
  }

  /** The unanswered opening or ping, to be repeated after a lost link is back. */
  outstanding(): string | null {
    return this.unanswered;
  }

  /** What to send when the agent may have forgotten the session; null: its next packet tells. */
  inDoubt(): string | null {
    return null;
  }

  sendOpening(now: number): ClientEffect[] {
    const c = toBase64url(this.random(16));
    const keys = deriveClientKeys(this.suite, this.prk, this.version, c);
    this.c = c;
    return this.awaitAnswer(sealPacket(this.suite, keys, this.version, c, 0, NO_BYTES), now);
  }

  /** The keys of a sid's first packets. */
  deriveKeys(sid: string): SessionKeys {
    return deriveSessionKeys(this.suite, this.prk, this.version, sid);
  }

  /** What seq 1 says. */
  firstPlaintext(): Uint8Array {
    return jsonBytes(FIRST_PING);
  }

  receiveAnswer(packet: Packet, now: number): ClientEffect[] {
    const keys = this.deriveKeys(packet.sid);
    if (openPacket(this.suite, keys.a2c, packet) === null) return this.refuse("forged");
    if (this.state !== "opening") return this.abandon("otherAnswer", now);
    this.move("answer");
    this.fullSid = packet.sid;
    this.keys = keys;
    this.openedAt = now;
    this.deadline = now + this.timings.confirmMs;
    return this.awaitAnswer(this.sealNext(this.firstPlaintext()), now);
  }

  receiveData(packet: Packet): ClientEffect[] {
    if (packet.seq === 0) return this.refuse("repeat");
    if (packet.seq <= this.received) return this.refuse("replay");
    const plaintext = openPacket(this.suite, (this.keys as SessionKeys).a2c, packet);
    if (plaintext === null) return this.refuse("forged");
    const gap = packet.seq - this.received - 1;
    this.received = packet.seq;
    if (this.state === "confirming" && isPong(plaintext)) {
      this.move("pong");
      this.unanswered = null;
      return [{ kind: "opened", sid: packet.sid, gap: gap }];
    }
    return [{ kind: "message", plaintext: plaintext, gap: gap }];
  }

  abandon(reason: "otherAnswer" | "silence", now: number): ClientEffect[] {
    this.move(reason);
    this.forget();
    this.deadline = now + this.fraction() * REOPEN_DELAY_MS;
    return [{ kind: "abandoned", reason: reason }];
  }

  awaitAnswer(text: string, now: number): ClientEffect[] {
    this.unanswered = text;
    this.resendIn(this.timings.resendMs, now);
    return [{ kind: "send", text: text }];
  }

  resendIn(ms: number, now: number): void {
    this.resendMs = ms;
    this.resendAt = now + ms + (this.fraction() * ms) / 2;
  }

  /** From 0 to 1, at random. */
  fraction(): number {
    const bytes = this.random(2);
    return ((bytes[0] as number) * 256 + (bytes[1] as number)) / 65536;
  }

  sealNext(plaintext: Uint8Array): string {
    this.sent++;
    return sealPacket(
      this.suite,
      (this.keys as SessionKeys).c2a,
      this.version,
      this.fullSid as string,
      this.sent,
      plaintext,
    );
  }

  refuse(reason: ClientRefusal): ClientEffect[] {
    return [{ kind: "refused", reason: reason }];
  }

  forget(): void {
    this.c = null;
    this.fullSid = null;
    this.keys = null;
    this.sent = 0;
    this.received = 0;
    this.unanswered = null;
  }

  move(event: ClientEvent): void {
    const next = TABLE[this.state][event];
    if (next === undefined) throw new Error(`client session: ${event} in state ${this.state}`);
    this.state = next;
  }
}
