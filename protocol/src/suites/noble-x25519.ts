/**
 * X25519 where there is no native one: the audited @noble curves. Only the ladder is loaded: the
 * tables of ed25519.js would take half a megabyte of an embedded engine's heap.
 */
import { pow } from "@noble/curves/abstract/modular.js";
import { montgomery } from "@noble/curves/abstract/montgomery.js";
import type { X25519 } from "../crypto/forward-keys.ts";

/** 2^255 - 19. */
const P = 2n ** 255n - 19n;

const curve = montgomery({
  P,
  type: "x25519",
  adjustScalarBytes: (bytes: Uint8Array) => {
    bytes[0] = (bytes[0] as number) & 248;
    bytes[31] = ((bytes[31] as number) & 127) | 64;
    return bytes;
  },
  powPminus2: (x) => pow(x, P - 2n, P),
});

const checked = (value: Uint8Array): Uint8Array => {
  if (value.length !== 32) throw new RangeError("X25519 takes values of 32 bytes");
  return value;
};

/** Stateless, and may be shared. Throws a RangeError for a value that is not 32 bytes. */
export const nobleX25519: X25519 = {
  isNative: false,
  pair: (privateKey) => {
    // A slice of a Buffer would be a view.
    const own = Uint8Array.from(checked(privateKey));
    return {
      publicKey: () => curve.scalarMultBase(own),
      shared: (publicKey) => {
        checked(publicKey);
        try {
          return curve.scalarMult(own, publicKey);
        } catch {
          return null; // noble refuses a result of zero
        }
      },
      end: () => own.fill(0),
    };
  },
};
