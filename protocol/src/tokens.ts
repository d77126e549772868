/**
 * The secrets of section 1: `prefix || base62(32 bytes), 43 digits || base62(CRC-32 of what
 * precedes it), 6 digits`. The prefix reveals a misplaced secret, and the checksum a mistyped one,
 * before any look-up.
 *
 * [portable]
 */
import { asciiBytes } from "./encoding/bytes.ts";
import { crc32 } from "./encoding/crc32.ts";

export type TokenKind = "account" | "agent" | "session" | "login" | "key" | "e2e" | "push";

export const TOKEN_PREFIXES: { readonly [kind in TokenKind]: string } = {
  account: "acct_",
  agent: "agt_",
  session: "sess_",
  login: "login_",
  key: "key_",
  e2e: "e2e_",
  push: "push_",
};

/** What to call each kind in an error message. */
export const TOKEN_NAMES: { readonly [kind in TokenKind]: string } = {
  account: "an account token (acct_)",
  agent: "an agent relay token (agt_)",
  session: "a session token (sess_)",
  login: "a login access token (login_)",
  key: "an access key (key_)",
  e2e: "an end-to-end secret (e2e_)",
  push: "a push key (push_)",
};

const KINDS: readonly TokenKind[] = ["account", "agent", "session", "login", "key", "e2e", "push"];
const DIGITS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
const BODY_DIGITS = 43;
const CHECKSUM_DIGITS = 6;

/**
 * A regular expression (source) that finds all blindrelay secrets in a text, for secret scanners.
 */
export const TOKEN_PATTERN = "\\b(?:acct|agt|sess|login|key|e2e|push)_[0-9A-Za-z]{49}\\b";

/**
 * Big-endian bytes as base62, padded on the left to `digits`. Long division, because boards lack
 * BigInt.
 */
const toBase62 = (bytes: Uint8Array, digits: number): string => {
  const rest = new Uint8Array(bytes.length);
  rest.set(bytes, 0);
  let text = "";
  for (let d = 0; d < digits; d++) {
    let remainder = 0;
    for (let i = 0; i < rest.length; i++) {
      const value = remainder * 256 + (rest[i] as number);
      rest[i] = Math.floor(value / 62);
      remainder = value % 62;
    }
    text = DIGITS.charAt(remainder) + text;
  }
  return text;
};

/**
 * Base62 digits as 32 big-endian bytes; null if a character is not a digit or the number is too
 * large.
 */
const fromBase62 = (text: string): Uint8Array | null => {
  const bytes = new Uint8Array(32);
  for (let d = 0; d < text.length; d++) {
    let carry = DIGITS.indexOf(text.charAt(d));
    if (carry < 0) return null;
    for (let i = 31; i >= 0; i--) {
      carry += (bytes[i] as number) * 62;
      bytes[i] = carry & 255;
      carry = carry >> 8;
    }
    if (carry !== 0) return null;
  }
  return bytes;
};

const checksum = (text: string): string => {
  const crc = crc32(asciiBytes(text));
  const bytes = new Uint8Array(4);
  bytes[0] = crc >>> 24;
  bytes[1] = (crc >>> 16) & 255;
  bytes[2] = (crc >>> 8) & 255;
  bytes[3] = crc & 255;
  return toBase62(bytes, CHECKSUM_DIGITS);
};

/** Makes a token of a kind from 32 bytes. Throws for any other length. */
export const makeToken = (kind: TokenKind, bytes: Uint8Array): string => {
  if (bytes.length !== 32) throw new Error("a token is made from 32 bytes");
  const text = TOKEN_PREFIXES[kind] + toBase62(bytes, BODY_DIGITS);
  return text + checksum(text);
};

/** The kind named by a text's prefix, whether or not the rest is valid; null for other texts. */
export const tokenKind = (text: string): TokenKind | null => {
  for (const kind of KINDS) {
    const prefix = TOKEN_PREFIXES[kind];
    if (text.substring(0, prefix.length) === prefix) return kind;
  }
  return null;
};

export type TokenReading =
  | { readonly ok: true; readonly kind: TokenKind; readonly bytes: Uint8Array }
  | { readonly ok: false; readonly kind: TokenKind | null; readonly reason: "form" | "checksum" };

/** Identifies a token and checks its form and checksum. Nothing is trimmed. */
export const readToken = (text: string): TokenReading => {
  const kind = tokenKind(text);
  if (kind === null) return { ok: false, kind: null, reason: "form" };
  const prefix = TOKEN_PREFIXES[kind];
  const checkAt = prefix.length + BODY_DIGITS;
  if (text.length !== checkAt + CHECKSUM_DIGITS) return { ok: false, kind: kind, reason: "form" };
  const bytes = fromBase62(text.substring(prefix.length, checkAt));
  if (bytes === null) return { ok: false, kind: kind, reason: "form" };
  if (text.substring(checkAt) !== checksum(text.substring(0, checkAt))) {
    return { ok: false, kind: kind, reason: "checksum" };
  }
  return { ok: true, kind: kind, bytes: bytes };
};

/**
 * Why a text is not a secret of the `expected` kind, as a sentence that names both kinds but never
 * the secret; null if form and checksum are valid.
 */
export const tokenProblem = (text: string, expected: TokenKind): string | null => {
  const reading = readToken(text);
  if (reading.ok && reading.kind === expected) return null;
  const wanted = TOKEN_NAMES[expected];
  if (reading.ok) return `expected ${wanted}, got ${TOKEN_NAMES[reading.kind]}`;
  if (reading.kind === expected) {
    return reading.reason === "checksum"
      ? `the checksum of this ${TOKEN_PREFIXES[expected]} secret is wrong: it was mistyped or cut`
      : `this ${TOKEN_PREFIXES[expected]} secret has the wrong length or characters`;
  }
  return reading.kind === null
    ? `expected ${wanted}`
    : `expected ${wanted}, got something that begins like ${TOKEN_NAMES[reading.kind]}`;
};
