/**
 * An agent's sessions where memory is short: their keys are kept as bytes, and a suite's handles
 * are made for each packet. They take five times as much (on XS), and longer than a packet to make
 * on Node.
 *
 * [portable]
 */
import type { Packet } from "../crypto/packet.ts";
import { DIRECTION_BYTES, makeDirection, openPacket, sealPacket } from "../crypto/packet.ts";
import { expandSession } from "../crypto/session-keys.ts";
import type { HeldSession } from "./agent.ts";
import { AgentSessions } from "./agent.ts";

export class SmallAgentSessions extends AgentSessions {
  protected override keysOf(sid: string): Uint8Array {
    return expandSession(this.suite, this.prk, this.version, sid, 2 * DIRECTION_BYTES);
  }

  protected override open(held: HeldSession, packet: Packet): Uint8Array | null {
    const c2a = makeDirection(this.suite, this.version, held.keys as Uint8Array);
    return openPacket(this.suite, c2a, packet);
  }

  protected override sealWith(held: HeldSession, seq: number, plaintext: Uint8Array): string {
    const okm = (held.keys as Uint8Array).subarray(DIRECTION_BYTES);
    const a2c = makeDirection(this.suite, this.version, okm);
    return sealPacket(this.suite, a2c, this.version, held.sid, seq, plaintext);
  }
}
