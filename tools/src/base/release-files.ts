/** Artifacts and keys of releases on this machine: hashes, signatures, checks. */
import {
  createHash,
  createPrivateKey,
  createPublicKey,
  generateKeyPairSync,
  type KeyObject,
  sign,
  verify,
} from "node:crypto";
import { createReadStream, readFileSync } from "node:fs";
import { Failure } from "@blindrelay/protocol/command-line";
import { decodeText } from "@blindrelay/protocol/parse-json";
import {
  type ListedRelease,
  listedReleaseText,
  RELEASE_KEY_ID_DIGITS,
  type ReleaseSignature,
  releaseSigners,
  releaseText,
  type SignedRelease,
} from "@blindrelay/protocol/releases";
import { failing } from "./failing.ts";
import { makeWholeFile } from "./whole-file.ts";

/** Size and SHA-256 of a file, read as a stream. Throws a Failure (usage) if it cannot be read. */
export const measure = async (path: string): Promise<{ size: number; sha256: string }> => {
  const hash = createHash("sha256");
  let size = 0;
  try {
    for await (const chunk of createReadStream(path)) {
      hash.update(chunk);
      size += chunk.length;
    }
  } catch (error) {
    throw new Failure("usage", `cannot read ${path}: ${(error as Error).message}`, error);
  }
  if (size === 0) throw new Failure("usage", `${path} is empty`);
  return { size, sha256: hash.digest("hex") };
};

/** A new signing key in its own file (PEM, 0600). Throws a Failure (usage) if one is there. */
export const makeKey = (path: string): { public_key: string; key_id: string } => {
  const { publicKey, privateKey } = generateKeyPairSync("ed25519");
  const pem = privateKey.export({ type: "pkcs8", format: "pem" }).toString();
  failing("usage", `cannot make ${path}: `, () => makeWholeFile(path, pem));
  return describeKey(publicKey);
};

/** The private key in a PEM file. Throws a Failure (usage) if there is no Ed25519 key. */
export const readSigningKey = (path: string): KeyObject => {
  const key = readFile(path, createPrivateKey);
  if (key.asymmetricKeyType === "ed25519") return key;
  throw new Failure("usage", `${path} is not an Ed25519 key: make one with release keygen`);
};

/** Base64url of a signature over the first text. */
export const signRelease = (release: SignedRelease, key: KeyObject): string =>
  signText(releaseText(release), key);

/** A signature over the second text. */
export const signListed = (release: ListedRelease, key: KeyObject): ReleaseSignature => ({
  key_id: describeKey(createPublicKey(key)).key_id,
  signature: signText(listedReleaseText(release), key),
});

const signText = (text: string, key: KeyObject): string =>
  sign(null, Buffer.from(text, "ascii"), key).toString("base64url");

/** Whether one of the public keys signed the first text. */
export const isSignedBy = (
  release: SignedRelease,
  signature: string,
  keys: readonly KeyObject[],
): boolean => keys.some((key) => verifyText(releaseText(release), signature, key));

/** How many of the public keys signed the second text; a key that is given twice is one. */
export const countSigners = (
  release: ListedRelease,
  signatures: readonly ReleaseSignature[],
  keys: readonly KeyObject[],
): number => {
  const byId = new Map(keys.map((key) => [describeKey(key).key_id, key]));
  return releaseSigners(release, signatures, [...byId.keys()], (id, text, signature) =>
    verifyText(text, signature, byId.get(id) as KeyObject),
  ).length;
};

const verifyText = (text: string, signature: string, key: KeyObject): boolean =>
  verify(null, Buffer.from(text, "ascii"), key, Buffer.from(signature, "base64url"));

/** A public key given as base64url, or as a PEM file of it or of its private key. */
export const readPublicKey = (text: string): KeyObject => {
  if (/^[A-Za-z0-9_-]{43}$/.test(text)) {
    return createPublicKey({ key: { kty: "OKP", crv: "Ed25519", x: text }, format: "jwk" });
  }
  const key = readFile(text, createPublicKey);
  if (key.asymmetricKeyType === "ed25519") return key;
  throw new Failure("usage", `${text} is not an Ed25519 key`);
};

const describeKey = (key: KeyObject): { public_key: string; key_id: string } => {
  const publicKey = key.export({ format: "jwk" }).x as string;
  const hash = createHash("sha256").update(Buffer.from(publicKey, "base64url")).digest("hex");
  return { public_key: publicKey, key_id: hash.slice(0, RELEASE_KEY_ID_DIGITS) };
};

const readFile = (path: string, read: (text: Buffer) => KeyObject): KeyObject => {
  try {
    return read(Buffer.from(decodeText(readFileSync(path))));
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    const isText = !(error instanceof SyntaxError);
    const reason = isText ? "it contains no PEM key" : error.message;
    const why = code === "ENOENT" ? "file not found" : reason;
    throw new Failure("usage", `cannot take a key from ${path}: ${why}`, error);
  }
};
