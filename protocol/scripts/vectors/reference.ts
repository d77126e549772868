/**
 * A second, independent implementation of section 2, directly on node:crypto and BigInt: the
 * vectors are made with this one and checked against the other, so that neither checks itself.
 */
import {
  type CipherGCMTypes,
  createCipheriv,
  createHmac,
  hkdfSync,
} from "node:crypto";
import { crc32 } from "node:zlib";

export type Bytes = Uint8Array;
export type Direction = "c2a" | "a2c";

export const toHex = (bytes: Bytes): string => Buffer.from(bytes).toString("hex");
export const fromHex = (text: string): Buffer => Buffer.from(text, "hex");
export const base64url = (bytes: Bytes): string => Buffer.from(bytes).toString("base64url");

const hmac = (key: Bytes, data: Bytes | string): Buffer =>
  createHmac("sha256", key).update(data).digest();

/** ciphertext || tag of suite `v`; suite "2" uses the first 16 bytes of the key. */
export const sealWith = (
  v: string,
  key: Bytes,
  nonce: Bytes,
  aad: Bytes,
  plaintext: Bytes,
): Buffer => {
  const name = v === "1" ? "chacha20-poly1305" : "aes-128-ccm";
  const used = v === "1" ? key : key.subarray(0, 16);
  const cipher = createCipheriv(name as CipherGCMTypes, used, nonce, { authTagLength: 16 });
  cipher.setAAD(aad, { plaintextLength: plaintext.length });
  return Buffer.concat([cipher.update(plaintext), cipher.final(), cipher.getAuthTag()]);
};

export interface Identity {
  readonly agentId: string;
  readonly agentToken: string;
}

const salt = (identity: Identity): Buffer => Buffer.from(`blindrelay|${identity.agentId}`);

/** A packet's text: what either side seals under `sid` with `seq`. */
export const packet = (
  identity: Identity,
  v: string,
  direction: Direction,
  sid: string,
  seq: number,
  plaintext: string,
): string => {
  const info = `session|${v}|${sid}`;
  const okm = new Uint8Array(hkdfSync("sha256", identity.agentToken, salt(identity), info, 88));
  const half = direction === "c2a" ? okm.subarray(0, 44) : okm.subarray(44);
  const nonce = Buffer.from(half.subarray(32));
  nonce.writeBigUInt64BE(nonce.readBigUInt64BE(4) ^ BigInt(seq), 4);
  const aad = Buffer.from(`${v}|${sid}|${seq}`);
  const p = base64url(sealWith(v, half.subarray(0, 32), nonce, aad, Buffer.from(plaintext)));
  return JSON.stringify({ v, sid, seq, p });
};

/** The epoch secret of a start. */
export const epochSecret = (
  identity: Identity,
  bootCount: number,
  deviceRandom: string,
  serialNumber: string | null,
): Buffer => {
  const prk = hmac(salt(identity), identity.agentToken);
  const serial = serialNumber === null ? "" : `|${serialNumber}`;
  return hmac(prk, `epoch|${bootCount}|${deviceRandom}${serial}`);
};

/** The epoch secret after one more session was stored. */
export const nextEpoch = (secret: Bytes): Buffer => hmac(secret, "next");

/** `A` for a `C`. */
export const agentPart = (secret: Bytes, v: string, c: string): string =>
  base64url(hmac(secret, `sid|${v}|${c}`).subarray(0, 16));

const DIGITS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

const base62 = (number: bigint, digits: number): string => {
  let text = "";
  for (let rest = number; rest > 0n; rest /= 62n) text = DIGITS.charAt(Number(rest % 62n)) + text;
  return text.padStart(digits, "0");
};

/** A text with the six digits of its checksum. */
export const withChecksum = (text: string): string => text + base62(BigInt(crc32(text)), 6);

export const token = (prefix: string, bytes: Bytes): string =>
  withChecksum(prefix + base62(BigInt(`0x${toHex(bytes)}`), 43));

/** Bytes that look random but are always the same. */
export const filler = (label: string, length: number): Buffer =>
  Buffer.from(hkdfSync("sha256", label, "", "blindrelay vectors", Math.max(length, 1))).subarray(
    0,
    length,
  );
