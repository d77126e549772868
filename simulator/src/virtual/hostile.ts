/**
 * A relay that attacks the packets it carries: decides the fate of each text in transit to a peer.
 */
import { getOrMake } from "../base/maps.ts";
import type { Stream } from "../base/random-streams.ts";
import type { Attack } from "../scenario/schema.ts";
import type { Meddler, Wire } from "./net.ts";

/** Packets of a run that are remembered for each peer. */
const REMEMBERED = 64;
const SEQ = /(\\?"seq\\?":)([0-9]+)/;

const isPacket = (text: string): boolean =>
  text.startsWith('{"v"') || text.startsWith('{"type":"relay"');

/** What a hostile relay has recorded since it started, as likely old packets as new ones. */
export class Records {
  private readonly drawsOf: (peerId: string) => Stream;
  private readonly peers = new Map<string, { draws: Stream; texts: string[]; seen: number }>();

  constructor(drawsOf: (peerId: string) => Stream) {
    this.drawsOf = drawsOf;
  }

  add(peerId: string, text: string): void {
    if (!isPacket(text)) return;
    const made = () => ({ draws: this.drawsOf(peerId), texts: [], seen: 0 });
    const peer = getOrMake(this.peers, peerId, made);
    peer.seen += 1;
    const at = peer.seen <= REMEMBERED ? peer.seen - 1 : peer.draws.below(peer.seen);
    if (at < REMEMBERED) peer.texts[at] = text;
  }

  of(peerId: string): readonly string[] {
    return this.peers.get(peerId)?.texts ?? [];
  }
}

/** `share`: of the packets, in parts of 2^32. `records`: what it may replay. */
export const hostile = (
  attack: Attack,
  share: number,
  records: Records | null,
  /** Per peer, so that attacks on it do not depend on which other peers there are. */
  drawsOf: (peerId: string) => Stream,
): Meddler => {
  const streams = new Map<string, Stream>();
  const kept = new Map<Wire, string>();
  return (wire, text) => {
    if (!isPacket(text)) return [text];
    const earlier = kept.get(wire);
    if (earlier !== undefined) {
      kept.delete(wire);
      return [text, earlier];
    }
    const draws = getOrMake(streams, wire.peer.id, drawsOf);
    if (draws.next() >= share) return [text];
    switch (attack) {
      case "drop":
        return [];
      case "duplicate":
        return [text, text];
      case "reorder":
        kept.set(wire, text);
        return [];
      case "replay": {
        const texts = records?.of(wire.peer.id) ?? [];
        return texts.length === 0 ? [text] : [text, texts[draws.below(texts.length)] as string];
      }
      case "forge":
        return [forged(text, 1 + draws.below(1000)), text];
    }
  };
};

/** The same packet with a later number, which its tag does not cover. */
const forged = (text: string, ahead: number): string =>
  text.replace(SEQ, (_, head: string, seq: string) => `${head}${Number(seq) + ahead}`);
