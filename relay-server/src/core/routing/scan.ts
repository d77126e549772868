/**
 * Recognises a bare packet (section 2) without parsing JSON: exactly the text that our SDKs write
 * (`encodePacket` of protocol/src/wire), up to the last byte. For any other text, even one with an
 * extra space, the result is null, and `decodeForRelay` decides. Both always agree.
 */
import { bindablePart, type PacketHead } from "@blindrelay/protocol/wire";

const ascii = (text: string): Uint8Array => Uint8Array.from(text, (char) => char.charCodeAt(0));

const BEFORE_V = ascii('{"v":"');
const BEFORE_SID = ascii('","sid":"');
const BEFORE_SEQ = ascii('","seq":');
const BEFORE_P = ascii(',"p":"');
const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const CLOSING_BRACE = 0x7d;
const ZERO = 0x30;
const NINE = 0x39;
/** An integer of up to this many digits is exact. */
const MAX_SEQ_DIGITS = 15;
/** Limit for everything before `seq`, which is kept for each link: our SDKs need 70. */
const MAX_HEAD_BYTES = 192;

/** The header fields of a packet, and its bytes up to `seq`. */
export interface ScannedPacket extends PacketHead {
  readonly head: Uint8Array;
}

/**
 * `text`: ASCII without control characters. `last`: the result for the link's previous packet. Most
 * packets have the same head and get the same result: this creates no string for them, and tables
 * are searched with a string that they know (V8 first has to hash a fresh one).
 */
export const scanPacket = (text: Uint8Array, last: ScannedPacket | null): ScannedPacket | null => {
  const packet = last !== null && startsWith(text, last.head, 0) ? last : scanHead(text);
  // Without a backslash, the text between two quotes is the JSON string's value.
  const found = packet !== null && isRest(text, packet.head.length) && !text.includes(BACKSLASH);
  return found ? packet : null;
};

const scanHead = (text: Uint8Array): ScannedPacket | null => {
  if (!startsWith(text, BEFORE_V, 0)) return null;
  const endOfV = text.indexOf(QUOTE, BEFORE_V.length);
  if (endOfV < 0 || !startsWith(text, BEFORE_SID, endOfV)) return null;
  const sidAt = endOfV + BEFORE_SID.length;
  const endOfSid = text.indexOf(QUOTE, sidAt);
  if (endOfSid < 0 || !startsWith(text, BEFORE_SEQ, endOfSid)) return null;
  const end = endOfSid + BEFORE_SEQ.length;
  if (end > MAX_HEAD_BYTES) return null;
  const head = new Uint8Array(text.subarray(0, end)); // copied: `text` is a view of a chunk
  const sid = String.fromCharCode(...text.subarray(sidAt, endOfSid));
  return { kind: "packet", sid, first: bindablePart(sid), requestId: null, head };
};

/** Whether `seq`, `p` and nothing else follow. */
const isRest = (text: Uint8Array, from: number): boolean => {
  let at = from;
  while (isDigit(text[at])) at += 1;
  const digits = at - from;
  if (digits === 0 || digits > MAX_SEQ_DIGITS || (text[from] === ZERO && digits > 1)) return false;
  if (!startsWith(text, BEFORE_P, at)) return false;
  const endOfP = text.indexOf(QUOTE, at + BEFORE_P.length);
  return endOfP === text.length - 2 && text[endOfP + 1] === CLOSING_BRACE;
};

const isDigit = (byte: number | undefined): boolean =>
  byte !== undefined && byte >= ZERO && byte <= NINE;

const startsWith = (text: Uint8Array, part: Uint8Array, at: number): boolean => {
  if (text.length - at < part.length) return false;
  for (let i = 0; i < part.length; i++) {
    if (text[at + i] !== part[i]) return false;
  }
  return true;
};
