/**
 * The packet of section 2, `{"v","sid","seq","p"}`: read strictly before any cryptography, sealed
 * and opened with a nonce and AAD that bind it to its session, direction and place.
 *
 *   nonce = iv XOR (4 zero bytes || seq as unsigned 64-bit big-endian)
 *   AAD   = v || "|" || sid || "|" || decimal seq
 *   p     = base64url(ciphertext || 16-byte tag), no padding
 *
 * [portable]
 */
import {
  base64urlPart,
  fromBase64url,
  isBase64urlText,
  toBase64url,
} from "../encoding/base64url.ts";
import { asciiBytes } from "../encoding/bytes.ts";
import { decodeJson, isObject } from "../encoding/json.ts";
import { rawMember } from "../encoding/raw-member.ts";
import {
  EMPTY_P_LENGTH,
  MAX_MESSAGE_BYTES,
  MAX_PLAINTEXT_BYTES,
  MAX_SEQ,
  MAX_SID_PART_LENGTH,
  NONCE_BYTES,
  SID_PART_LENGTH,
  TAG_BYTES,
} from "../spec.ts";
import { FIELD_P, FIELD_SEQ } from "../wire/names.ts";
import { decodePacket, encodePacket } from "../wire/packet.ts";
import type { AeadKey, Suite } from "./suite.ts";
import type { Version } from "./versions.ts";
import { aeadOf, isVersion } from "./versions.ts";

/** A key and an IV. */
export const DIRECTION_BYTES = 44;

/** One direction of a session: its AEAD key and the IV that the nonce is made from. */
export interface DirectionKeys {
  readonly key: AeadKey;
  /** 12 bytes. */
  readonly iv: Uint8Array;
}

/** `okm`: begins with key and IV. Here, because an agent makes them for each packet. */
export const makeDirection = (suite: Suite, v: Version, okm: Uint8Array): DirectionKeys => ({
  key: suite.aeadKey(aeadOf(v), okm.subarray(0, 32)),
  iv: okm.subarray(32, DIRECTION_BYTES),
});

/** A packet of the right form; nothing is verified yet. */
export interface Packet {
  readonly v: Version;
  readonly sid: string;
  readonly seq: number;
  /** Ciphertext || tag, at least 16 bytes. */
  readonly sealed: Uint8Array;
  /** `C`, the client's part of the sid: 22 characters. */
  readonly first: string;
  /** `A`, the agent's part, without the dot; null for an opening. */
  readonly second: string | null;
}

const P_HEAD = `,"${FIELD_P}":"`;

/**
 * Reads a packet's text. Refuses (null) everything that section 2 refuses before any cryptography
 * and that can be detected without knowing the reader's role.
 */
export const parsePacket = (text: string): Packet | null => {
  if (text.length > MAX_MESSAGE_BYTES) return null;
  const begin = text.indexOf(P_HEAD) + P_HEAD.length;
  const end = text.length - 2;
  // If `p` comes last, the rest is read without it: a board has no memory for copies of it.
  const isLast =
    text.indexOf('"', begin) === end && text.charAt(end + 1) === "}" && text.indexOf("\\") < 0;
  const rest = isLast ? `${text.substring(0, begin)}"}` : text;
  const value = decodeJson(rest);
  const fields = isObject(value) ? decodePacket(value) : null;
  if (fields === null) return null;
  const v = fields.v;
  const sid = fields.sid;
  const seq = fields.seq;
  const p = fields.p;
  const length = isLast ? end - begin : p.length;
  if (!isVersion(v)) return null;
  if (!(seq >= 0 && seq <= MAX_SEQ) || Math.floor(seq) !== seq) return null;

  const dot = sid.indexOf(".");
  const first = dot < 0 ? sid : sid.substring(0, dot);
  const second = dot < 0 ? null : sid.substring(dot + 1);
  if (first.length !== SID_PART_LENGTH || !isBase64urlText(first)) return null;
  if (second !== null) {
    if (second.length < 1 || second.length > MAX_SID_PART_LENGTH) return null;
    if (!isBase64urlText(second)) return null;
  }
  if (second === null && seq !== 0) return null;
  // Openings and answers contain only a tag.
  if (seq === 0 && length !== EMPTY_P_LENGTH) return null;
  if (length < EMPTY_P_LENGTH || length > ((MAX_PLAINTEXT_BYTES + TAG_BYTES) * 4) / 3 + 1)
    return null;
  const sealed = isLast ? base64urlPart(text, begin, end) : fromBase64url(p);
  if (sealed === null) return null;
  // Canonical decimal only: what String() returns for an integer up to 2^32 - 1. A text in our own
  // form always has that, so only other texts are searched.
  if (encodePacket(v, sid, seq, p) !== rest && rawMember(rest, FIELD_SEQ) !== String(seq))
    return null;
  return { v: v, sid: sid, seq: seq, sealed: sealed, first: first, second: second };
};

const makeNonce = (iv: Uint8Array, seq: number): Uint8Array => {
  const nonce = new Uint8Array(NONCE_BYTES);
  nonce.set(iv, 0);
  // seq is below 2^32, so of its 8 bytes the upper 4 are zero.
  nonce[8] = (nonce[8] as number) ^ (seq >>> 24);
  nonce[9] = (nonce[9] as number) ^ ((seq >>> 16) & 255);
  nonce[10] = (nonce[10] as number) ^ ((seq >>> 8) & 255);
  nonce[11] = (nonce[11] as number) ^ (seq & 255);
  return nonce;
};

const makeAad = (v: Version, sid: string, seq: number): Uint8Array =>
  asciiBytes(`${v}|${sid}|${seq}`);

/**
 * Seals a plaintext into a packet's text. `seq`: an integer from 0 to 2^32 - 1 never used before
 * with these keys, which the session ensures.
 */
export const sealPacket = (
  suite: Suite,
  keys: DirectionKeys,
  v: Version,
  sid: string,
  seq: number,
  plaintext: Uint8Array,
): string => {
  const aad = makeAad(v, sid, seq);
  const p = toBase64url(suite.seal(keys.key, makeNonce(keys.iv, seq), aad, plaintext));
  return encodePacket(v, sid, seq, p);
};

/** The plaintext of a packet, or null if its tag does not verify with these keys. */
export const openPacket = (suite: Suite, keys: DirectionKeys, packet: Packet): Uint8Array | null =>
  suite.open(
    keys.key,
    makeNonce(keys.iv, packet.seq),
    makeAad(packet.v, packet.sid, packet.seq),
    packet.sealed,
  );
