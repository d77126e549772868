/**
 * X25519 on Node: node:crypto, which takes raw values only in newer versions, and otherwise inside
 * their DER frames (RFC 8410), at twice the price.
 */
import {
  createPrivateKey,
  createPublicKey,
  diffieHellman,
  type JsonWebKeyInput,
  type KeyObject,
} from "node:crypto";
import type { X25519 } from "../crypto/forward-keys.ts";

const PRIVATE_FRAME = Buffer.from("302e020100300506032b656e04220420", "hex");
const PUBLIC_FRAME = Buffer.from("302a300506032b656e032100", "hex");

/** Not in node:crypto's types yet. */
const rawKey = (format: string, key: Uint8Array): JsonWebKeyInput =>
  ({ key, format, asymmetricKeyType: "x25519" }) as unknown as JsonWebKeyInput;

const hasRaw = (() => {
  try {
    createPrivateKey(rawKey("raw-private", Buffer.alloc(32, 1)));
    return true;
  } catch {
    return false;
  }
})();

const checked = (value: Uint8Array): Uint8Array => {
  if (value.length !== 32) throw new RangeError("X25519 takes values of 32 bytes");
  return value;
};

const privateKeyOf = (value: Uint8Array): KeyObject => {
  if (hasRaw) return createPrivateKey(rawKey("raw-private", checked(value)));
  const key = Buffer.concat([PRIVATE_FRAME, checked(value)]);
  try {
    return createPrivateKey({ key, format: "der", type: "pkcs8" });
  } finally {
    key.fill(0);
  }
};

const publicKeyOf = (value: Uint8Array): KeyObject => {
  if (hasRaw) return createPublicKey(rawKey("raw-public", checked(value)));
  const key = Buffer.concat([PUBLIC_FRAME, checked(value)]);
  return createPublicKey({ key, format: "der", type: "spki" });
};

const exported = (key: KeyObject): Uint8Array =>
  hasRaw
    ? (key as unknown as { export(how: object): Buffer }).export({ format: "raw-public" })
    : key.export({ format: "der", type: "spki" }).subarray(PUBLIC_FRAME.length);

/** Stateless, and may be shared. Throws a RangeError for a value that is not 32 bytes. */
export const nodeX25519: X25519 = {
  isNative: true,
  pair: (privateKey) => {
    const own = privateKeyOf(privateKey);
    return {
      publicKey: () => exported(createPublicKey(own)),
      shared: (publicKey) => {
        const other = publicKeyOf(publicKey);
        try {
          return diffieHellman({ privateKey: own, publicKey: other });
        } catch {
          return null; // OpenSSL refuses a result of zero
        }
      },
      end: () => undefined, // OpenSSL overwrites it when the handle is collected
    };
  },
};
