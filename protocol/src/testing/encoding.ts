/**
 * Conformance of what a runtime's lenient built-ins would get wrong: base64url, JSON, tokens.
 *
 * [portable]
 */
import { fromBase64url, toBase64url } from "../encoding/base64url.ts";
import { toHex } from "../encoding/bytes.ts";
import { encodeJson, readJson } from "../encoding/json.ts";
import type { TokenKind } from "../tokens.ts";
import { makeToken, readToken } from "../tokens.ts";
import type {
  Base64urlCase,
  JsonCase,
  JsonInput,
  TextInput,
  TokenCase,
  TokenRefusal,
  VectorFile,
} from "./files.ts";
import { expectSame, hex } from "./report.ts";

export const checkBase64url = (
  file: VectorFile<Base64urlCase, TextInput>,
  failures: string[],
): void => {
  for (const one of file.valid) {
    const where = `base64url: ${one.comment}`;
    expectSame(failures, `${where}: written`, toBase64url(hex(one.bytes)), one.text);
    const bytes = fromBase64url(one.text);
    expectSame(failures, `${where}: read`, bytes && toHex(bytes), one.bytes);
  }
  for (const one of file.invalid) {
    const bytes = fromBase64url(one.text);
    expectSame(failures, `base64url: ${one.comment}`, bytes && toHex(bytes), null);
  }
};

export const checkJson = (file: VectorFile<JsonCase, JsonInput>, failures: string[]): void => {
  for (const one of file.valid) {
    const text = encodeJson(readJson(hex(one.bytes)));
    // Espruino writes the digits of escapes in upper case.
    const lower = text === undefined ? text : text.toLowerCase();
    expectSame(failures, `json: ${one.comment}`, lower, one.json.toLowerCase());
  }
  for (const one of file.invalid) {
    expectSame(failures, `json: ${one.comment}`, readJson(hex(one.bytes)), undefined);
  }
};

export const checkTokens = (
  file: VectorFile<TokenCase, TokenRefusal>,
  failures: string[],
): void => {
  for (const one of file.valid) {
    const where = `tokens: ${one.comment}`;
    const made = makeToken(one.kind as TokenKind, hex(one.bytes));
    expectSame(failures, `${where}: made`, made, one.token);
    const reading = readToken(one.token);
    expectSame(failures, `${where}: kind`, reading.kind, one.kind);
    expectSame(failures, `${where}: bytes`, reading.ok && toHex(reading.bytes), one.bytes);
  }
  for (const one of file.invalid) {
    const where = `tokens: ${one.comment}`;
    const reading = readToken(one.token);
    expectSame(failures, `${where}: kind`, reading.kind, one.kind);
    expectSame(failures, `${where}: reason`, reading.ok ? "none" : reading.reason, one.reason);
  }
};
