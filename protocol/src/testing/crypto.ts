/**
 * Conformance of a suite and of the derivations: RFC 5869, RFC 4231, RFC 8439, RFC 3610 and the
 * known answers of the contract.
 *
 * [portable]
 */
import { hkdfExpand, hkdfExtract } from "../crypto/hkdf.ts";
import type { DirectionKeys } from "../crypto/packet.ts";
import { openPacket, parsePacket, sealPacket } from "../crypto/packet.ts";
import { pushProof, rekeyProof } from "../crypto/push-proof.ts";
import {
  deriveEpochSecret,
  deriveSignatureKey,
  extractPrk,
  signPayload,
} from "../crypto/secret-keys.ts";
import { deriveAgentPart, deriveSessionKeys, nextEpochSecret } from "../crypto/session-keys.ts";
import type { AeadKey, HmacKey, Suite } from "../crypto/suite.ts";
import type { AeadVersion, Version } from "../crypto/versions.ts";
import { aeadOf } from "../crypto/versions.ts";
import { asciiBytes, asciiText, toHex } from "../encoding/bytes.ts";
import { makeToken, readToken, tokenKind } from "../tokens.ts";
import type {
  AeadFile,
  ContractFile,
  ContractVector,
  HkdfCase,
  HkdfInput,
  HmacCase,
  PushCase,
  VectorFile,
} from "./files.ts";
import { expectSame, hex, throws } from "./report.ts";

// A separate function, because a closure over a loop's variable sees its last value on Espruino.
const expandThrows = (suite: Suite, prk: HmacKey, one: HkdfInput): boolean =>
  throws(() => hkdfExpand(suite, prk, hex(one.info), one.length));
const keyThrows = (suite: Suite, v: AeadVersion, length: number): boolean =>
  throws(() => suite.aeadKey(v, new Uint8Array(length)));

export const checkHkdf = (
  suite: Suite,
  file: VectorFile<HkdfCase, HkdfInput>,
  failures: string[],
): void => {
  for (const one of file.valid) {
    const prk = hkdfExtract(suite, hex(one.salt), hex(one.ikm));
    expectSame(failures, `hkdf: ${one.comment}: PRK`, toHex(prk), one.prk);
    const okm = hkdfExpand(suite, suite.hmacKey(prk), hex(one.info), one.length);
    expectSame(failures, `hkdf: ${one.comment}: OKM`, toHex(okm), one.okm);
  }
  for (const one of file.invalid) {
    const prk = suite.hmacKey(hkdfExtract(suite, hex(one.salt), hex(one.ikm)));
    expectSame(failures, `hkdf: ${one.comment}: refused`, expandThrows(suite, prk, one), true);
  }
};

export const checkHmac = (
  suite: Suite,
  file: VectorFile<HmacCase, never>,
  failures: string[],
): void => {
  for (const one of file.valid) {
    const mac = suite.hmac(suite.hmacKey(hex(one.key)), hex(one.data));
    expectSame(failures, `hmac: ${one.comment}: length`, mac.length, 32);
    expectSame(failures, `hmac: ${one.comment}`, toHex(mac).substring(0, one.mac.length), one.mac);
  }
};

export const checkPush = (
  suite: Suite,
  file: VectorFile<PushCase, never>,
  failures: string[],
): void => {
  for (const one of file.valid) {
    const proof =
      one.size === undefined
        ? rekeyProof(suite, one.push_key, one.agent_id, one.serial, one.sha256)
        : pushProof(suite, one.push_key, one.agent_id, one.serial, one.size, one.sha256);
    expectSame(failures, `push: ${one.comment}`, proof, one.proof);
  }
};

export const checkAead = (suite: Suite, file: AeadFile, failures: string[]): void => {
  const v = file.v as AeadVersion;
  for (const one of file.valid) {
    const where = `aead ${v}: ${one.comment}`;
    const key = suite.aeadKey(v, hex(one.key));
    const sealed = suite.seal(key, hex(one.nonce), hex(one.aad), hex(one.plaintext));
    expectSame(failures, `${where}: sealed`, toHex(sealed), one.sealed);
    const opened = suite.open(key, hex(one.nonce), hex(one.aad), hex(one.sealed));
    expectSame(failures, `${where}: opened`, opened && toHex(opened), one.plaintext);
  }
  for (const one of file.invalid) {
    const key = suite.aeadKey(v, hex(one.key));
    const opened = suite.open(key, hex(one.nonce), hex(one.aad), hex(one.sealed));
    expectSame(failures, `aead ${v}: ${one.comment}: opened`, opened && toHex(opened), null);
  }
  for (const length of [0, 16, 31, 33]) {
    const where = `aead ${v}: a key of ${length} bytes is refused`;
    expectSame(failures, where, keyThrows(suite, v, length), true);
  }
};

/** A nonce that no packet has, so that the probe below uses none twice. */
const PROBE_NONCE = new Uint8Array(12);

/** Key handles are opaque, so two keys count as equal if they seal equally. */
const checkDirection = (
  suite: Suite,
  v: Version,
  where: string,
  keys: DirectionKeys,
  wanted: { readonly key: string; readonly iv: string },
  failures: string[],
): void => {
  const sealWith = (key: AeadKey): string =>
    toHex(suite.seal(key, PROBE_NONCE, asciiBytes("aad"), asciiBytes("plaintext")));
  expectSame(failures, `${where} iv`, toHex(keys.iv), wanted.iv);
  const expected = sealWith(suite.aeadKey(aeadOf(v), hex(wanted.key)));
  expectSame(failures, `${where} key`, sealWith(keys.key), expected);
};

/** Opens to the plaintext, and sealing the plaintext again gives the same text. */
const checkPacket = (
  suite: Suite,
  where: string,
  keys: DirectionKeys,
  text: string,
  plaintext: string,
  failures: string[],
): void => {
  const packet = parsePacket(text);
  if (packet === null) {
    failures.push(`${where}: refused`);
    return;
  }
  const opened = openPacket(suite, keys, packet);
  expectSame(failures, `${where}: opened`, opened && asciiText(opened), plaintext);
  const again = sealPacket(suite, keys, packet.v, packet.sid, packet.seq, asciiBytes(plaintext));
  expectSame(failures, `${where}: sealed`, again, text);
};

const checkVector = (suite: Suite, one: ContractVector, failures: string[]): void => {
  const v = one.v as Version;
  const where = `contract ${v}`;
  const prk = extractPrk(suite, one.agent_id, one.agent_token);
  const probe = asciiBytes("probe");
  const same = suite.hmac(suite.hmacKey(hex(one.prk)), probe);
  expectSame(failures, `${where}: PRK`, toHex(suite.hmac(prk, probe)), toHex(same));

  const epoch = deriveEpochSecret(
    suite,
    prk,
    one.boot_count,
    hex(one.device_random),
    one.serial_number,
  );
  expectSame(failures, `${where}: epoch secret`, toHex(epoch), one.epoch_secret);
  expectSame(failures, `${where}: A`, deriveAgentPart(suite, epoch, v, one.C), one.A);
  const next = toHex(nextEpochSecret(suite, epoch));
  expectSame(failures, `${where}: next epoch`, next, one.epoch_secret_after_first_data);

  const ofC = deriveSessionKeys(suite, prk, v, one.C);
  const ofSid = deriveSessionKeys(suite, prk, v, one.sid);
  const c = one.keys_of_C;
  const s = one.keys_of_sid;
  const direction = (name: string, keys: DirectionKeys, key: string, iv: string): void =>
    checkDirection(suite, v, `${where}: ${name}`, keys, { key: key, iv: iv }, failures);
  direction("C c2a", ofC.c2a, c.c2a_key, c.c2a_iv);
  direction("C a2c", ofC.a2c, c.a2c_key, c.a2c_iv);
  direction("sid c2a", ofSid.c2a, s.c2a_key, s.c2a_iv);
  direction("sid a2c", ofSid.a2c, s.a2c_key, s.a2c_iv);

  const packet = (name: string, keys: DirectionKeys, text: string, plaintext: string): void =>
    checkPacket(suite, `${where}: ${name}`, keys, text, plaintext, failures);
  packet("opening", ofC.c2a, one.opening, "");
  packet("answer", ofSid.a2c, one.answer, "");
  packet("data", ofSid.c2a, one.data.packet, one.data.plaintext);
  packet("reply", ofSid.a2c, one.reply.packet, one.reply.plaintext);
  const last = one.data_at_last_seq;
  packet("data at the last seq", ofSid.c2a, last.packet, last.plaintext);

  const signature = signPayload(suite, deriveSignatureKey(suite, prk), one.opening);
  expectSame(failures, `${where}: signature`, signature, one.signature_of_opening);
};

export const checkContract = (
  suite: Suite,
  file: ContractFile,
  has: (v: string) => boolean,
  failures: string[],
): void => {
  for (const one of file.tokens) {
    const kind = tokenKind(one.prefix);
    const made = kind === null ? null : makeToken(kind, hex(one.bytes));
    expectSame(failures, `contract: ${one.prefix} token`, made, one.token);
    expectSame(failures, `contract: ${one.prefix} token read`, readToken(one.token).ok, true);
  }
  for (const one of file.vectors) if (has(one.v)) checkVector(suite, one, failures);
};
