/**
 * The public keys whose releases this relay accepts. It holds no private key, so it can
 * withhold a release but not make one.
 */
import { createPublicKey, hash, type KeyObject, verify } from "node:crypto";
import {
  type ListedRelease,
  RELEASE_KEY_ID_DIGITS,
  type ReleaseSignature,
  releaseSigners,
  releaseText,
  type SignedRelease,
} from "@blindrelay/protocol/releases";

const KEY_BYTES = 32;

export interface ReleaseKeys {
  readonly count: number;
  /** The id of the key that made this signature (base64url) over the release; null if none did. */
  signer(release: SignedRelease, signature: string): string | null;
  /** The ids of the keys that made these signatures over the second text, each once. */
  signers(release: ListedRelease, signatures: readonly ReleaseSignature[]): readonly string[];
}

/** `texts`: Ed25519 public keys, 32 bytes as base64url. Throws a TypeError for any other text. */
export const releaseKeys = (texts: readonly string[]): ReleaseKeys => {
  const keys = texts.map((text) => ({ id: keyIdOf(text), key: readKey(text) }));
  const byId = new Map(keys.map(({ id, key }) => [id, key]));
  return {
    count: keys.length,
    signer: (release, signature) => {
      const text = Buffer.from(releaseText(release), "ascii");
      const bytes = Buffer.from(signature, "base64url");
      return keys.find(({ key }) => verify(null, text, key, bytes))?.id ?? null;
    },
    signers: (release, signatures) =>
      releaseSigners(release, signatures, [...byId.keys()], (id, text, signature) =>
        verify(
          null,
          Buffer.from(text, "ascii"),
          byId.get(id) as KeyObject,
          Buffer.from(signature, "base64url"),
        ),
      ),
  };
};

const readKey = (text: string): KeyObject => {
  if (Buffer.from(text, "base64url").length !== KEY_BYTES || !/^[A-Za-z0-9_-]{43}$/.test(text)) {
    throw new TypeError(`${text} is not an Ed25519 public key in base64url`);
  }
  return createPublicKey({ key: { kty: "OKP", crv: "Ed25519", x: text }, format: "jwk" });
};

const keyIdOf = (text: string): string =>
  hash("sha256", Buffer.from(text, "base64url")).slice(0, RELEASE_KEY_ID_DIGITS);
