/**
 * Everything that the relay derives from its master key (section 1): persistent tokens, the key
 * that wraps TOTP secrets, the hashes of recovery codes, and the key that seals stored answers.
 * Persistent tokens are derived and not stored, so a copy of the database yields none, but login
 * and export can return them again.
 */
import {
  createCipheriv,
  createDecipheriv,
  createHmac,
  createSecretKey,
  hash,
  type KeyObject,
  randomBytes,
} from "node:crypto";
import { makeToken } from "@blindrelay/protocol";

export const MASTER_KEY_BYTES = 32;
const TOKEN_NONCE_BYTES = 16;
const GCM_NONCE_BYTES = 12;
const GCM_TAG_BYTES = 16;

export class Secrets {
  readonly #masterKey: KeyObject;
  readonly #wrapKey: KeyObject;
  readonly #answerKey: KeyObject;
  readonly #printKey: KeyObject;

  /** `masterKey`: 32 bytes, copied. Throws a RangeError for any other length. */
  constructor(masterKey: Uint8Array) {
    if (masterKey.length !== MASTER_KEY_BYTES) throw new RangeError("a master key has 32 bytes");
    this.#masterKey = createSecretKey(masterKey);
    this.#wrapKey = createSecretKey(this.#hmac("wrap/totp"));
    this.#answerKey = createSecretKey(this.#hmac("seal/answers"));
    this.#printKey = createSecretKey(this.#hmac("print/requests"));
  }

  /** Stored to detect another master key. Hex. */
  check(): string {
    return this.#hmac("check").toString("hex");
  }

  /** The persistent token of an account or agent for one issue; `nonce` is hex from `drawNonce`. */
  persistentToken(kind: "account" | "agent", id: string, nonce: string): string {
    return makeToken(kind, this.#hmac(`${kind}/${id}/${nonce}`));
  }

  /** The stored form of a recovery code. Keyed, because 50 bits alone could be searched. Hex. */
  recoveryHash(userId: string, code: string): string {
    return this.#hmac(`recovery/${userId}/${code}`).toString("hex");
  }

  /**
   * The stored form of a request that must be recognized later, and may contain a password. Hex.
   */
  requestPrint(request: string): string {
    return createHmac("sha256", this.#printKey).update(request, "utf8").digest("hex");
  }

  /** The stored form of a user name and an address that it has logged in from. Hex. */
  addressPrint(username: string, address: string): string {
    return createHmac("sha256", this.#printKey)
      .update(JSON.stringify(["address", username, address]), "utf8")
      .digest("hex");
  }

  /** Proves that this relay permits fetching a release until `expiryS`, Unix seconds. Hex. */
  ticketMac(releaseId: string, expiryS: number): string {
    return this.#hmac(`ticket/${releaseId}/${expiryS}`).toString("hex");
  }

  /** Wraps a TOTP secret for the store, bound to its user. */
  wrap(userId: string, secret: string): string {
    return seal(this.#wrapKey, userId, secret);
  }

  /** Throws if the text was not wrapped for this user under this key. */
  unwrap(userId: string, wrapped: string): string {
    return unseal(this.#wrapKey, userId, wrapped);
  }

  /** Seals an answer for the store, bound to what it answers. */
  seal(name: string, answer: string): string {
    return seal(this.#answerKey, name, answer);
  }

  /** Throws if the text was not sealed for this name under this key. */
  unseal(name: string, sealed: string): string {
    return unseal(this.#answerKey, name, sealed);
  }

  #hmac(text: string): Buffer {
    return createHmac("sha256", this.#masterKey).update(text, "ascii").digest();
  }
}

/** AES-256-GCM bound to a name: base64url of nonce, ciphertext and tag. */
const seal = (key: KeyObject, name: string, text: string): string => {
  const nonce = randomBytes(GCM_NONCE_BYTES);
  const cipher = createCipheriv("aes-256-gcm", key, nonce);
  cipher.setAAD(Buffer.from(name));
  const sealed = [nonce, cipher.update(text, "utf8"), cipher.final(), cipher.getAuthTag()];
  return Buffer.concat(sealed).toString("base64url");
};

const unseal = (key: KeyObject, name: string, sealed: string): string => {
  const bytes = Buffer.from(sealed, "base64url");
  const cipher = createDecipheriv("aes-256-gcm", key, bytes.subarray(0, GCM_NONCE_BYTES), {
    authTagLength: GCM_TAG_BYTES,
  });
  cipher.setAAD(Buffer.from(name));
  cipher.setAuthTag(bytes.subarray(-GCM_TAG_BYTES));
  return (
    cipher.update(bytes.subarray(GCM_NONCE_BYTES, -GCM_TAG_BYTES), undefined, "utf8") +
    cipher.final("utf8")
  );
};

/** A fresh nonce in hex, one for each issue of a persistent token. */
export const drawNonce = (): string => randomBytes(TOKEN_NONCE_BYTES).toString("hex");

/** A random token: sessions and logins are stored as a hash only and never shown again. */
export const drawToken = (kind: "session" | "login" | "key"): string =>
  makeToken(kind, randomBytes(32));

/** The only form in which a token is stored: hex SHA-256 of its text. */
export const hashToken = (token: string): string => hash("sha256", token);
