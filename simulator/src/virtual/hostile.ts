/**
 * A relay that attacks the packets it carries: decides the fate of each text in transit to a peer.
 */
import type { Stream } from "../random-streams.ts";
import type { Meddler, Wire } from "./net.ts";

export type Attack = "drop" | "duplicate" | "reorder" | "replay" | "forge";

/** Old packets remembered for each peer. */
const REMEMBERED = 64;
const SEQ = /(\\?"seq\\?":)([0-9]+)/;

const isPacket = (text: string): boolean =>
  text.startsWith('{"v"') || text.startsWith('{"type":"relay"');

/** `share`: of the packets, in parts of 2^32. */
export const hostile = (
  attack: Attack,
  share: number,
  /** Per peer, so that attacks on it do not depend on which other peers there are. */
  drawsOf: (peerId: string) => Stream,
): Meddler => {
  const streams = new Map<string, Stream>();
  const old = new Map<string, string[]>();
  const kept = new Map<Wire, string>();
  return (wire, text) => {
    if (!isPacket(text)) return [text];
    if (attack === "replay") remember(old, wire.peer.id, text);
    const earlier = kept.get(wire);
    if (earlier !== undefined) {
      kept.delete(wire);
      return [text, earlier];
    }
    let draws = streams.get(wire.peer.id);
    if (draws === undefined) {
      draws = drawsOf(wire.peer.id);
      streams.set(wire.peer.id, draws);
    }
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
        const texts = old.get(wire.peer.id) as string[];
        return [text, texts[draws.below(texts.length)] as string];
      }
      case "forge":
        return [forged(text, 1 + draws.below(1000)), text];
    }
  };
};

const remember = (old: Map<string, string[]>, who: string, text: string): void => {
  const texts = old.get(who);
  if (texts === undefined) old.set(who, [text]);
  else if (texts.length < REMEMBERED) texts.push(text);
  else texts[(text.length * 31 + texts.length) % REMEMBERED] = text;
};

/** The same packet with a later number, which its tag does not cover. */
const forged = (text: string, ahead: number): string =>
  text.replace(SEQ, (_, head: string, seq: string) => `${head}${Number(seq) + ahead}`);
