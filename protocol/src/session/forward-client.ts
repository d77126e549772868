/**
 * A client's session under suites "3" and "4" (section 2b): seq 1 carries public values instead of
 * the first ping and its answer, and everything after it is under keys that no later thief of the
 * secret can derive.
 *
 * [portable]
 */
import type { HandshakeKeys, X25519, X25519Pair } from "../crypto/forward-keys.ts";
import {
  CONFIRM_BYTES,
  deriveDataKeys,
  deriveHandshakeKeys,
  EXCHANGE_SEQ,
} from "../crypto/forward-keys.ts";
import type { Packet } from "../crypto/packet.ts";
import { openPacket } from "../crypto/packet.ts";
import type { SessionKeys } from "../crypto/session-keys.ts";
import { equalBytes, NO_BYTES } from "../encoding/bytes.ts";
import { KEY_BYTES, TAG_BYTES } from "../spec.ts";
import type { ClientEffect, ClientSessionOptions } from "./client.ts";
import { ClientSession } from "./client.ts";

export interface ForwardClientOptions {
  readonly x25519: X25519;
  /** The public half of the device's pinned key, 32 bytes; null: none is known. */
  readonly deviceKey: Uint8Array | null;
}

/** The agent's public value and its proof. */
const ANSWER_BYTES = KEY_BYTES + CONFIRM_BYTES;

export class ForwardClientSession extends ClientSession {
  declare private readonly x25519: X25519;
  declare private readonly deviceKey: Uint8Array | null;
  /** Both halves of the value of seq 1, while that is unanswered. */
  declare private pair: X25519Pair | null;
  declare private offered: Uint8Array;
  /** Sent again while the session is in doubt. */
  declare private opening: string | null;

  constructor(options: ClientSessionOptions, forward: ForwardClientOptions) {
    super(options);
    this.x25519 = forward.x25519;
    this.deviceKey = forward.deviceKey;
    this.pair = null;
    this.offered = NO_BYTES;
    this.opening = null;
  }

  override sendOpening(now: number): ClientEffect[] {
    const effects = super.sendOpening(now);
    this.opening = this.unanswered;
    return effects;
  }

  /** An agent that has forgotten the session says nothing to its packets, but answers this anew. */
  override inDoubt(): string | null {
    return this.state === "open" ? this.opening : null;
  }

  override deriveKeys(sid: string): SessionKeys {
    return deriveHandshakeKeys(this.suite, this.prk, this.version, sid);
  }

  override firstPlaintext(): Uint8Array {
    const own = this.random(KEY_BYTES);
    this.pair = this.x25519.pair(own);
    own.fill(0);
    this.offered = this.pair.publicKey();
    return this.offered;
  }

  override receiveData(packet: Packet): ClientEffect[] {
    if (this.state !== "confirming") return super.receiveData(packet);
    if (packet.seq === 0) return this.refuse("repeat");
    if (packet.seq !== EXCHANGE_SEQ || packet.sealed.length !== ANSWER_BYTES + TAG_BYTES) {
      return this.refuse("malformed");
    }
    const handshake = this.keys as HandshakeKeys;
    const plaintext = openPacket(this.suite, handshake.a2c, packet);
    if (plaintext === null) return this.refuse("forged");
    const keys = this.agreed(handshake, packet.sid, plaintext);
    if (keys === null) {
      this.giveUp();
      return [{ kind: "abandoned", reason: "unproven" }];
    }
    this.keys = keys;
    this.received = EXCHANGE_SEQ;
    this.unanswered = null;
    this.move("pong");
    return [{ kind: "opened", sid: packet.sid, gap: 0 }];
  }

  override forget(): void {
    this.endPair();
    this.opening = null;
    super.forget();
  }

  private endPair(): void {
    if (this.pair !== null) this.pair.end();
    this.pair = null;
  }

  /** The keys from seq 2 on, if the agent has proved that it has them too. */
  private agreed(handshake: HandshakeKeys, sid: string, plaintext: Uint8Array): SessionKeys | null {
    const y = plaintext.slice(0, KEY_BYTES);
    const pair = this.pair as X25519Pair;
    const shared = pair.shared(y);
    const pinned = this.deviceKey === null ? null : pair.shared(this.deviceKey);
    this.endPair();
    if (shared === null || (this.deviceKey !== null && pinned === null)) return null;
    const exchange = { x: this.offered, y, shared, pinned };
    const keys = deriveDataKeys(this.suite, this.version, sid, handshake.chain, exchange);
    if (!equalBytes(keys.confirm, plaintext.subarray(KEY_BYTES))) return null;
    return { c2a: keys.c2a, a2c: keys.a2c };
  }
}
