/** A suite and an X25519 that tell every secret that they are given, or make. */
import type { Suite, X25519 } from "@blindrelay/protocol/crypto";

/** `derived`: a key of an HMAC; `sealing`: of packets; the other two are X25519's. */
export type Kind = "private" | "shared" | "derived" | "sealing";
export type Tell = (kind: Kind, secret: Uint8Array) => void;

export const tellingSuite = (plain: Suite, tell: Tell): Suite => ({
  ...plain,
  hmacKey: (key) => {
    tell("derived", key);
    return plain.hmacKey(key);
  },
  aeadKey: (v, key) => {
    tell("sealing", key);
    return plain.aeadKey(v, key);
  },
});

export const tellingX25519 = (plain: X25519, tell: Tell): X25519 => ({
  ...plain,
  pair: (privateKey) => {
    tell("private", privateKey);
    const pair = plain.pair(privateKey);
    return {
      ...pair,
      shared: (other) => {
        const shared = pair.shared(other);
        if (shared !== null) tell("shared", shared);
        return shared;
      },
    };
  },
});
