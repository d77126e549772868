/** X25519 on Node: node:crypto, which takes a raw value only inside its DER frame (RFC 8410). */
import { createPrivateKey, createPublicKey, diffieHellman, type KeyObject } from "node:crypto";
import type { X25519 } from "../crypto/forward-keys.ts";

const PRIVATE_FRAME = Buffer.from("302e020100300506032b656e04220420", "hex");
const PUBLIC_FRAME = Buffer.from("302a300506032b656e032100", "hex");

const framed = (frame: Buffer, value: Uint8Array): Buffer => {
  if (value.length !== 32) throw new RangeError("X25519 takes values of 32 bytes");
  return Buffer.concat([frame, value]);
};

const privateKeyOf = (value: Uint8Array): KeyObject => {
  const key = framed(PRIVATE_FRAME, value);
  try {
    return createPrivateKey({ key, format: "der", type: "pkcs8" });
  } finally {
    key.fill(0);
  }
};

/** Stateless, and may be shared. Throws a RangeError for a value that is not 32 bytes. */
export const nodeX25519: X25519 = {
  isNative: true,
  publicKey: (privateKey) =>
    createPublicKey(privateKeyOf(privateKey))
      .export({ format: "der", type: "spki" })
      .subarray(PUBLIC_FRAME.length),
  shared: (privateKey, publicKey) => {
    const own = privateKeyOf(privateKey);
    const other = createPublicKey({
      key: framed(PUBLIC_FRAME, publicKey),
      format: "der",
      type: "spki",
    });
    try {
      return diffieHellman({ privateKey: own, publicKey: other });
    } catch {
      return null; // OpenSSL refuses a result of zero
    }
  },
};
