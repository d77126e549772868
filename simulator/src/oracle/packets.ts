/**
 * What an agent must do with packets, observed from outside: accept each at most once and in order,
 * over all its starts; and accept what its client sealed for an open session, whatever else is sent
 * in between.
 */
import type { AgentVerdict } from "@blindrelay/protocol/session";
import { Recent } from "./recent.ts";

/** The number of sessions, and of packets in transit, that are remembered: the most recent. */
const SESSIONS = 150_000;
const UNDER_WAY = 50_000;

/** A packet's first member is its version, and none of its members is an object. */
const PACKET = /\{"v":[^{}]*\}/;
const SID = /"sid":"([^"]+)"/;
const SEQ = /"seq":([0-9]+)/;

export class PacketOracle {
  private readonly violate: (oracle: "once" | "delivery", what: string) => void;
  /** Highest seq accepted, by agent and sid. */
  private readonly marks = new Recent<number>(SESSIONS);
  /** Packets that clients sealed and no agent has accepted yet: place -> packet. */
  private readonly underWay = new Recent<string>(UNDER_WAY);
  /** Texts that the network changed, in whatever part. */
  private readonly changed = new Recent<true>(UNDER_WAY);

  constructor(violate: (oracle: "once" | "delivery", what: string) => void) {
    this.violate = violate;
  }

  /** A client passes a packet to its link: `text` bare, or in an envelope. */
  sent(text: string): void {
    const packet = readPacket(text);
    if (packet === null || packet.seq === 0) return;
    this.underWay.set(`${packet.sid}|${packet.seq}`, packet.text);
  }

  corrupted(text: string): void {
    this.changed.set(text, true);
  }

  /**
   * An agent's verdict on a text. `place`: `v|sid|seq` of the opened packet; `isHeld`: whether its
   * session was held before.
   */
  received(
    agentId: string,
    text: string,
    verdict: AgentVerdict,
    place: string,
    isHeld: (sid: string) => boolean,
  ): void {
    if (verdict.kind === "message") {
      const [, sid, number] = place.split("|") as [string, string, string];
      const seq = Number(number);
      const key = `${agentId}|${sid}`;
      const mark = this.marks.get(key) ?? -1;
      if (seq <= mark) this.violate("once", `${agentId} accepted ${sid} seq ${seq} after ${mark}`);
      this.marks.set(key, seq);
      this.underWay.delete(`${sid}|${seq}`);
      return;
    }
    if (verdict.kind !== "refused" || this.changed.get(text)) return;
    const packet = readPacket(text);
    if (packet === null || !isHeld(packet.sid)) return;
    if (this.underWay.get(`${packet.sid}|${packet.seq}`) !== packet.text) return;
    const mark = this.marks.get(`${agentId}|${packet.sid}`) ?? -1;
    if (packet.seq > mark) {
      this.violate(
        "delivery",
        `${agentId} refused (${verdict.reason}) ${packet.sid} seq ${packet.seq}, which its client sealed; ${mark} was the last accepted`,
      );
    }
  }
}

/** The packet in a text, bare or as the payload of an envelope. */
const readPacket = (text: string): { sid: string; seq: number; text: string } | null => {
  const bare = text.includes('\\"sid\\"') ? text.replaceAll("\\", "") : text;
  const packet = PACKET.exec(bare)?.[0] ?? "";
  const sid = SID.exec(packet)?.[1];
  const seq = SEQ.exec(packet)?.[1];
  return sid === undefined || seq === undefined ? null : { sid, seq: Number(seq), text: packet };
};
