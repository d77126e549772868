/**
 * Encrypts the secrets of a profile with a passphrase: scrypt (RFC 7914) and ChaCha20-Poly1305 (RFC
 * 8439), with the plain members as AAD. Each write uses a new salt and nonce.
 */
import { createCipheriv, createDecipheriv, randomBytes, scryptSync } from "node:crypto";

export interface SealedText {
  readonly kdf: "scrypt";
  readonly n: number;
  /** base64url, like the other two. */
  readonly salt: string;
  readonly nonce: string;
  /** Ciphertext || tag. */
  readonly data: string;
}

/** 64 MiB and a tenth of a second for each guess. */
const N = 65_536;
const R = 8;
const MAX_N = 1_048_576;
const TAG_BYTES = 16;

const keyOf = (passphrase: string, salt: Uint8Array, n: number): Buffer =>
  // Normalized, because keyboards write an umlaut in two ways.
  scryptSync(passphrase.normalize("NFC"), salt, 32, { N: n, r: R, p: 1, maxmem: 256 * n * R });

export const sealText = (text: string, passphrase: string, aad: string): SealedText => {
  const salt = randomBytes(16);
  const nonce = randomBytes(12);
  const cipher = createCipheriv("chacha20-poly1305", keyOf(passphrase, salt, N), nonce, {
    authTagLength: TAG_BYTES,
  });
  const plaintext = Buffer.from(text, "utf8");
  cipher.setAAD(Buffer.from(aad), { plaintextLength: plaintext.length });
  const data = Buffer.concat([cipher.update(plaintext), cipher.final(), cipher.getAuthTag()]);
  const [saltText, nonceText, dataText] = [salt, nonce, data].map((bytes) =>
    bytes.toString("base64url"),
  ) as [string, string, string];
  return { kdf: "scrypt", n: N, salt: saltText, nonce: nonceText, data: dataText };
};

/** The text, or null if the passphrase is wrong or the file is damaged. */
export const openText = (sealed: SealedText, passphrase: string, aad: string): string | null => {
  const [salt, nonce, data] = [sealed.salt, sealed.nonce, sealed.data].map((text) =>
    Buffer.from(text, "base64url"),
  ) as [Buffer, Buffer, Buffer];
  if (!(sealed.n > 1 && sealed.n <= MAX_N) || data.length < TAG_BYTES) return null;
  try {
    const key = keyOf(passphrase, salt, sealed.n);
    const decipher = createDecipheriv("chacha20-poly1305", key, nonce, {
      authTagLength: TAG_BYTES,
    });
    const length = data.length - TAG_BYTES;
    decipher.setAAD(Buffer.from(aad), { plaintextLength: length });
    decipher.setAuthTag(data.subarray(length));
    return Buffer.concat([decipher.update(data.subarray(0, length)), decipher.final()]).toString();
  } catch {
    return null;
  }
};
