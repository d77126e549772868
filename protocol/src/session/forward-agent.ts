/**
 * The agent's side of sessions under suites "3" and "4" (section 2b). Openings and answers are
 * those of "1" and "2"; a session's first packet brings the client's public value, and its answer
 * the agent's, so that only a client that has shown this epoch's `A` can make an agent multiply.
 *
 * Nothing that is left after a session's end, here or on the medium, leads to its keys: the seed
 * was replaced before it was used, `dh` moves whenever a session is stored, and the exchanged
 * values are overwritten as soon as the keys are made.
 *
 * [portable]
 */
import type { HandshakeKeys, X25519, X25519Pair } from "../crypto/forward-keys.ts";
import {
  deriveAgentPrivate,
  deriveDataKeys,
  deriveHandshakeKeys,
  deriveStart,
  EXCHANGE_SEQ,
  nextDh,
} from "../crypto/forward-keys.ts";
import type { Packet } from "../crypto/packet.ts";
import { sealPacket } from "../crypto/packet.ts";
import type { SessionKeys } from "../crypto/session-keys.ts";
import { concatBytes, NO_BYTES } from "../encoding/bytes.ts";
import { KEY_BYTES, TAG_BYTES } from "../spec.ts";
import type { AgentSessionsOptions, AgentVerdict, Epoch, HeldSession } from "./agent.ts";
import { AgentSessions } from "./agent.ts";

export interface ForwardAgentOptions {
  readonly x25519: X25519;
  /** 32 bytes, from before this start: `raiseBootCount` has stored the next one. Overwritten. */
  readonly seed: Uint8Array;
  /** The private half of the device's pinned key, 32 bytes; null: it has none. */
  readonly deviceKey: Uint8Array | null;
}

interface Agreed {
  readonly keys: SessionKeys;
  readonly reply: string;
}

export class ForwardAgentSessions extends AgentSessions {
  declare private readonly x25519: X25519;
  declare private readonly device: X25519Pair | null;
  declare private dh: Uint8Array;
  /** With the packet that is being received. */
  declare private agreed: Agreed | null;

  constructor(options: AgentSessionsOptions, forward: ForwardAgentOptions) {
    super(options);
    this.x25519 = forward.x25519;
    this.device = forward.deviceKey === null ? null : forward.x25519.pair(forward.deviceKey);
    const plain = this.epochs[0] as Epoch;
    const start = deriveStart(options.suite, forward.seed, plain.secret);
    plain.secret.fill(0);
    this.epochs = [{ secret: start.epoch, room: plain.room, spent: "" }];
    this.dh = start.dh;
    this.agreed = null;
  }

  override end(): void {
    super.end();
    this.dh.fill(0);
  }

  protected override receiveUnheld(packet: Packet, now: number): AgentVerdict {
    // Their keys went with their session.
    if (packet.seq > EXCHANGE_SEQ) return this.refuse("replay");
    if (packet.seq === EXCHANGE_SEQ) {
      if (packet.sealed.length !== KEY_BYTES + TAG_BYTES) return this.refuse("malformed");
      // Before any multiplication that could not be used.
      if (this.sessions.length > 0 && !this.hasPlace() && this.idlest(now) < 0) {
        return this.refuse("rate");
      }
    }
    const verdict = super.receiveUnheld(packet, now);
    const agreed = this.agreed;
    this.agreed = null;
    return verdict.kind === "message"
      ? Object.assign(verdict, { reply: this.begin(verdict.sid, agreed as Agreed) })
      : verdict;
  }

  protected override keysOf(sid: string): SessionKeys {
    return deriveHandshakeKeys(this.suite, this.prk, this.version, sid);
  }

  /** A session's first packet is opened, and answered, before the session is stored. */
  protected override open(held: HeldSession, packet: Packet): Uint8Array | null {
    const plaintext = super.open(held, packet);
    if (plaintext === null || held.received > 0) return plaintext;
    this.agreed = this.agree(held.sid, held.keys as HandshakeKeys, plaintext);
    return this.agreed === null ? null : NO_BYTES;
  }

  /** Null if an exchanged value is zero. */
  private agree(sid: string, handshake: HandshakeKeys, x: Uint8Array): Agreed | null {
    const suite = this.suite;
    const own = deriveAgentPrivate(suite, this.dh, this.version, sid, x);
    const pair = this.x25519.pair(own);
    own.fill(0);
    const shared = pair.shared(x);
    const pinned = this.device === null ? null : this.device.shared(x);
    const y = pair.publicKey();
    pair.end();
    if (shared === null || (this.device !== null && pinned === null)) return null;
    const exchange = { x: x, y: y, shared: shared, pinned: pinned };
    const keys = deriveDataKeys(suite, this.version, sid, handshake.chain, exchange);
    const plaintext = concatBytes(y, keys.confirm);
    return {
      keys: { c2a: keys.c2a, a2c: keys.a2c },
      reply: sealPacket(suite, handshake.a2c, this.version, sid, EXCHANGE_SEQ, plaintext),
    };
  }

  /** The session is stored: from here on only its own keys count. */
  private begin(sid: string, agreed: Agreed): string {
    const session = this.find(sid) as HeldSession;
    session.keys = agreed.keys;
    session.sent = EXCHANGE_SEQ;
    const dh = this.dh;
    this.dh = nextDh(this.suite, dh);
    dh.fill(0);
    return agreed.reply;
  }

  /** For a stored session the keys of the answer are gone, and derived again. */
  protected override answer(first: string): AgentVerdict {
    const held = this.findFirst(first);
    if (held === null) return super.answer(first);
    this.counters.answered++;
    const sid = held.sid;
    const keys = deriveHandshakeKeys(this.suite, this.prk, this.version, sid);
    keys.chain.fill(0);
    return {
      kind: "answer",
      text: sealPacket(this.suite, keys.a2c, this.version, sid, 0, NO_BYTES),
    };
  }
}
