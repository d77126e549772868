/** Derivations from the master key (section 1), compared with explicit HMAC-SHA256. */
import { createHmac } from "node:crypto";
import { makeToken, readToken } from "@blindrelay/protocol";
import { expect, test } from "vitest";
import { drawNonce, drawToken, hashToken, Secrets } from "./secrets.ts";

const KEY = Uint8Array.from({ length: 32 }, (_, i) => i);
const NONCE = "000102030405060708090a0b0c0d0e0f";

test("a persistent token is HMAC-SHA256(master key, kind/id/nonce) in the token form", () => {
  const secrets = new Secrets(KEY);
  const expected = createHmac("sha256", KEY).update(`agent/pump-7/${NONCE}`).digest();
  expect(secrets.persistentToken("agent", "pump-7", NONCE)).toBe(makeToken("agent", expected));
  const other = secrets.persistentToken("account", "pump-7", NONCE);
  expect(readToken(other)).toMatchObject({ ok: true, kind: "account" });
  expect(other.slice(5)).not.toBe(secrets.persistentToken("agent", "pump-7", NONCE).slice(4));
});

test("another master key has a different check value", () => {
  const other = Uint8Array.from(KEY);
  other[31] = 0;
  expect(new Secrets(other).check()).not.toBe(new Secrets(KEY).check());
  expect(new Secrets(KEY).check()).toBe(new Secrets(Uint8Array.from(KEY)).check());
});

test.each([31, 33, 0])("a key of %i bytes is refused", (length) => {
  expect(() => new Secrets(new Uint8Array(length))).toThrow(RangeError);
});

test("a wrapped secret opens only for its user and only unmodified, and never looks the same", () => {
  const secrets = new Secrets(KEY);
  const wrapped = secrets.wrap("ada", "SECRET");
  expect(secrets.unwrap("ada", wrapped)).toBe("SECRET");
  expect(secrets.wrap("ada", "SECRET")).not.toBe(wrapped);
  expect(() => secrets.unwrap("bob", wrapped)).toThrow();
  expect(() => secrets.unwrap("ada", wrapped.slice(0, -2))).toThrow();
  const flipped = Buffer.from(wrapped, "base64url");
  flipped[14]! ^= 1;
  expect(() => secrets.unwrap("ada", flipped.toString("base64url"))).toThrow();
});

test("recovery codes are hashed per user", () => {
  const secrets = new Secrets(KEY);
  expect(secrets.recoveryHash("ada", "a")).not.toBe(secrets.recoveryHash("bob", "a"));
});

test("random nonces and tokens differ, and are stored as SHA-256 of their text", () => {
  expect(drawNonce()).toMatch(/^[0-9a-f]{32}$/);
  expect(drawNonce()).not.toBe(drawNonce());
  expect(drawToken("session")).not.toBe(drawToken("session"));
  expect(hashToken("abc")).toBe("ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
});
