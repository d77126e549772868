/**
 * A packet's text as the oracle and the attacker read it: deliberately not with protocol's own
 * parser, which is under test.
 */

export interface PacketText {
  readonly v: string;
  readonly sid: string;
  readonly seq: number;
  readonly p: string;
  /** `C`, the first part of the sid. */
  readonly first: string;
}

/** The fields, or null if the text is no packet in canonical form (seq a plain decimal). */
export const readPacket = (text: string): PacketText | null => {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return null;
  }
  if (typeof value !== "object" || value === null) return null;
  const { v, sid, seq, p, type } = value as { [key: string]: unknown };
  if (typeof type === "string") return null;
  if (typeof v !== "string" || typeof sid !== "string" || typeof p !== "string") return null;
  if (typeof seq !== "number" || !new RegExp(`"seq"\\s*:\\s*${seq}\\s*[,}]`).test(text))
    return null;
  return { v, sid, seq, p, first: sid.split(".")[0] as string };
};

export const writePacket = (packet: Omit<PacketText, "first">): string =>
  `{"v":"${packet.v}","sid":"${packet.sid}","seq":${packet.seq},"p":"${packet.p}"}`;

/** Identifies a seal: suite, session and place in it. */
export const placeOf = (packet: PacketText): string => `${packet.v}|${packet.sid}|${packet.seq}`;
