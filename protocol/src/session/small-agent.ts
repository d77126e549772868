/**
 * An agent's sessions where memory is short: their keys are kept as bytes, and a suite's handles
 * are made for each packet. They take five times as much (on XS), and longer than a packet to make
 * on Node.
 *
 * [portable]
 */
import { expandSession } from "../crypto/keys.ts";
import type { DirectionKeys } from "../crypto/packet.ts";
import { DIRECTION_BYTES, makeDirection } from "../crypto/packet.ts";
import type { HeldSession } from "./agent.ts";
import { AgentSessions } from "./agent.ts";

export class SmallAgentSessions extends AgentSessions {
  protected override keysOf(sid: string): Uint8Array {
    return expandSession(this.suite, this.prk, this.version, sid, 2 * DIRECTION_BYTES);
  }

  protected override toAgent(held: HeldSession): DirectionKeys {
    return makeDirection(this.suite, this.version, held.keys as Uint8Array);
  }

  protected override toClient(held: HeldSession): DirectionKeys {
    const okm = held.keys as Uint8Array;
    return makeDirection(this.suite, this.version, okm.subarray(DIRECTION_BYTES));
  }
}
