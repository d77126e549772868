/**
 * The packet (section 2) as a text: bare on a link, or the payload of an envelope. The peers check
 * whether it is valid (crypto/packet.ts); the relay reads only its `sid`.
 *
 * [portable]
 */
import { own, ownString } from "../encoding/json.ts";
import { MAX_SID_PART_LENGTH } from "../spec.ts";
import { FIELD_P, FIELD_SEQ, FIELD_SID, FIELD_TYPE, FIELD_V } from "./names.ts";

/** The fields of a packet; checked only for presence. */
export interface PacketFields {
  readonly v: string;
  readonly sid: string;
  /** A number, not yet an integer. */
  readonly seq: number;
  /** base64url of ciphertext || tag. */
  readonly p: string;
}

/** A packet with the fields in our order. All texts are ASCII without quotes or backslashes. */
export const encodePacket = (v: string, sid: string, seq: number, p: string): string =>
  `{"${FIELD_V}":"${v}","${FIELD_SID}":"${sid}","${FIELD_SEQ}":${seq},"${FIELD_P}":"${p}"}`;

/**
 * The four fields of a packet; null if one is missing or of another type, or if it has a `type`.
 */
export const decodePacket = (fields: object): PacketFields | null => {
  const v = ownString(fields, FIELD_V);
  const sid = ownString(fields, FIELD_SID);
  const seq = own(fields, FIELD_SEQ);
  const p = ownString(fields, FIELD_P);
  if (v === undefined || sid === undefined || typeof seq !== "number" || p === undefined)
    return null;
  return ownString(fields, FIELD_TYPE) === undefined ? { v: v, sid: sid, seq: seq, p: p } : null;
};

/** Whether `seq` is an integer; 1e999 is read as infinity, which is not. */
export const isWhole = (seq: number): boolean => seq % 1 === 0;

/** The first part of a sid, which the relay binds: everything before the first dot. */
export const firstPart = (sid: string): string => {
  const dot = sid.indexOf(".");
  return dot < 0 ? sid : sid.substring(0, dot);
};

/** Whether a text has 1 to `max` characters: code points, as in JSON Schema. */
export const hasCharacters = (text: string, max: number): boolean =>
  text.length >= 1 &&
  text.length <= 2 * max &&
  (text.length <= max || text.replace(/[\ud800-\udbff][\udc00-\udfff]/g, "x").length <= max);

/** The first part of a sid if the relay can bind it (1 to 64 characters), else null. */
export const bindablePart = (sid: string): string | null => {
  const first = firstPart(sid);
  return hasCharacters(first, MAX_SID_PART_LENGTH) ? first : null;
};
