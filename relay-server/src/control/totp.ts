/**
 * One-time codes (RFC 6238: SHA-1, 6 digits, 30 s), and the recovery codes that replace them.
 */
import { randomBytes } from "node:crypto";
import { generateSecret, generateURI, verifySync } from "otplib";

const ISSUER = "blindrelay";
const STEP_S = 30;
const SECRET_BYTES = 20; // RFC 4226 section 4: as long as the HMAC's hash
const RECOVERY_CODES = 10;
const RECOVERY_ALPHABET = "abcdefghijkmnpqrstuvwxyz23456789"; // 32 characters without lookalikes

/** A random secret as base32. */
export const drawTotpSecret = (): string => generateSecret({ length: SECRET_BYTES });

/** What an authenticator app reads from a QR code. */
export const otpauthUri = (username: string, secret: string): string =>
  generateURI({ issuer: ISSUER, label: username, secret });

export const totpStepAt = (nowMs: number): number => Math.floor(nowMs / 1000 / STEP_S);

/**
 * A code as it is compared: apps show it with a space in the middle, people type recovery codes
 * without the hyphen, and Japanese keyboards have digits of their own.
 */
export const readCode = (given: string): string => {
  const code = given
    .normalize("NFKC")
    .replace(/[\s\u200b\p{Pd}]/gu, "")
    .toLowerCase();
  return code.length === 10 ? `${code.slice(0, 5)}-${code.slice(5)}` : code;
};

/** The step that a code belongs to, at most one from the current one; null for a wrong code. */
export const totpStep = (secret: string, code: string, nowMs: number): number | null => {
  if (!/^[0-9]{6}$/.test(code)) return null;
  const result = verifySync({
    secret,
    token: code,
    epoch: Math.floor(nowMs / 1000),
    epochTolerance: STEP_S,
  });
  return result.valid && "timeStep" in result ? result.timeStep : null;
};

/** Ten random codes of 50 bits, as `xxxxx-xxxxx`. */
export const drawRecoveryCodes = (): string[] =>
  Array.from({ length: RECOVERY_CODES }, recoveryCode);

const recoveryCode = (): string => {
  const letters = Array.from(randomBytes(10), (byte) => RECOVERY_ALPHABET.charAt(byte % 32));
  return `${letters.slice(0, 5).join("")}-${letters.slice(5).join("")}`;
};
