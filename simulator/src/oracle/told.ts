/**
 * Nothing is left unsaid: a packet that the relay does not deliver is answered with an error, and a
 * client is told when an agent of its account comes or goes. Judged at the relay's own end of each
 * link, so that no fault of a network excuses it.
 */
import type { ObservedWire } from "./relay.ts";

/** Longer than a look-up, a queue or a drain takes. */
const PACKET_US = 60_000_000;
const AGENT = /"agent_id":"([^"]+)"/;
/** Before a packet's sid: in the packet or an error, and in the payload of an envelope. */
const BARE = '"sid":"';
const ESCAPED = '\\"sid\\":\\"';
/** The packets in transit that are remembered, at most. */
const MAX_PACKETS = 20_000;

interface Sent {
  readonly wire: ObservedWire;
  readonly atUs: number;
}

interface Reader {
  readonly userId: string;
  readonly sinceUs: number;
  readonly told: Map<string, boolean>;
}

export interface Sides {
  readonly userId: string;
  readonly isAgent: boolean;
}

/** An agent's state at the relay, sampled. */
interface Presence {
  online: boolean;
  /** The sample before it changed. */
  changedUs: number;
  /** Samples since. */
  samples: number;
}

export class ToldOracle {
  private readonly violate: (what: string) => void;
  private readonly delivered: (from: ObservedWire) => void;
  /** By sid, those of clients and those of agents. */
  private readonly ofClients = new Map<string, Sent>();
  private readonly ofAgents = new Map<string, Sent>();
  private readonly readers = new Map<ObservedWire, Reader>();
  private readonly agents = new Map<string, Presence>();
  private lookedUs = 0;

  /** `delivered`: told of clients' packets that reach an agent. */
  constructor(violate: (what: string) => void, delivered: (from: ObservedWire) => void) {
    this.violate = violate;
    this.delivered = delivered;
  }

  /** A text arrived at the relay, on an intact link. */
  received(wire: ObservedWire, text: string, { isAgent }: Sides, nowUs: number): void {
    if (!isPacket(text)) return;
    const sid = sidIn(text);
    const packets = isAgent ? this.ofAgents : this.ofClients;
    if (sid === null || packets.size >= MAX_PACKETS) return;
    // The oldest one without an answer: packets of one session are handled in order.
    if (!packets.has(sid)) packets.set(sid, { wire, atUs: nowUs });
  }

  /** A text that the relay sends. */
  sent(wire: ObservedWire, text: string, { userId, isAgent }: Sides, nowUs: number): void {
    if (isPacket(text)) {
      const sid = sidIn(text) ?? "";
      const from = isAgent ? this.ofClients.get(sid)?.wire : undefined;
      if (from !== undefined) this.delivered(from);
      (isAgent ? this.ofClients : this.ofAgents).delete(sid);
    } else if (text.startsWith('{"type":"error"')) {
      (isAgent ? this.ofAgents : this.ofClients).delete(sidIn(text) ?? "");
    } else if (text.startsWith('{"type":"agent_status"')) {
      const isOnline = text.includes('"online":true') || text.includes('"status":"online"');
      this.readers.get(wire)?.told.set(AGENT.exec(text)?.[1] ?? "", isOnline);
    } else if (!isAgent && text.startsWith('{"type":"auth_response"')) {
      if (text.includes('"status":"failed"')) return;
      this.readers.set(wire, { userId, sinceUs: nowUs, told: new Map() });
    }
  }

  /**
   * `agents`: id, account and whether the relay has a link of it. `isOpen`: whether a link is open
   * at the relay and not full.
   */
  look(
    agents: Iterable<readonly [id: string, userId: string, online: boolean]>,
    isOpen: (wire: ObservedWire) => boolean,
    nowUs: number,
  ): void {
    for (const packets of [this.ofClients, this.ofAgents]) {
      for (const [sid, { wire, atUs }] of packets) {
        if (!isOpen(wire)) packets.delete(sid);
        else if (nowUs - atUs > PACKET_US) {
          packets.delete(sid);
          this.violate(`${wire.who()} sent a packet that was neither delivered nor refused`);
        }
      }
    }
    for (const wire of this.readers.keys()) if (!isOpen(wire)) this.readers.delete(wire);
    for (const [id, userId, online] of agents) this.lookAt(id, userId, online, nowUs);
    this.lookedUs = nowUs;
  }

  private lookAt(id: string, userId: string, online: boolean, nowUs: number): void {
    const known = this.agents.get(id);
    if (known === undefined || known.online !== online) {
      this.agents.set(id, { online, changedUs: this.lookedUs, samples: 0 });
      return;
    }
    known.samples += 1;
    // Told in the meantime; the second sample is long after the change.
    if (known.samples !== 1 || nowUs < known.changedUs) return;
    for (const [wire, reader] of this.readers) {
      if (reader.userId !== userId || reader.sinceUs > known.changedUs) continue;
      const told = reader.told.get(id);
      // Without news, an agent is what it was: offline at first.
      if (told === online || (told === undefined && !online && known.changedUs === 0)) continue;
      this.violate(`${wire.who()} was not told that ${id} is ${online ? "online" : "offline"}`);
    }
  }
}

const isPacket = (text: string): boolean =>
  text.startsWith('{"v"') || text.startsWith('{"type":"relay"');

const sidIn = (text: string): string | null => {
  const isEnvelope = text.startsWith('{"type":"relay"');
  const before = isEnvelope ? ESCAPED : BARE;
  const found = text.indexOf(before);
  if (found < 0) return null;
  const start = found + before.length;
  return text.substring(start, text.indexOf(isEnvelope ? "\\" : '"', start));
};
