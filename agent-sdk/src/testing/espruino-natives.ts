/**
 * Espruino's built-ins on top of Node's, and as lenient as the originals (docs/espruino.md):
 * `crypto` for the suite, and the globals that natives.ts uses.
 */
import { createCipheriv, createHash } from "node:crypto";
import { crc32 } from "node:zlib";
import type { EspruinoCrypto } from "../espruino/board.ts";

/** An ArrayBuffer of its own, as natives return. */
const bufferOf = (bytes: Uint8Array): ArrayBuffer => {
  const copy = new ArrayBuffer(bytes.length);
  new Uint8Array(copy).set(bytes);
  return copy;
};

const hash = (name: string, data: string | Uint8Array): ArrayBuffer =>
  bufferOf(
    createHash(name)
      .update(typeof data === "string" ? Buffer.from(data, "latin1") : data)
      .digest(),
  );

/** `require("crypto")` of a board with all natives. */
export const espruinoCrypto = (): Required<EspruinoCrypto> => ({
  SHA1: (text) => hash("sha1", text),
  SHA256: (data) => hash("sha256", data),
  AES: {
    encrypt: (data, key, { mode, iv }) => {
      const name = `aes-${key.length * 8}-${mode.toLowerCase()}`;
      const cipher = createCipheriv(name, key, mode === "ECB" ? null : (iv ?? new Uint8Array(16)));
      cipher.setAutoPadding(false);
      return bufferOf(Buffer.concat([cipher.update(data), cipher.final()]));
    },
  },
});

const ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/** Characters outside the alphabet count as zero bits, and missing padding is accepted. */
const atob = (text: string): string => {
  let bytes = "";
  let held = 0;
  let bits = 0;
  for (const char of text.replace(/=+$/, "")) {
    held = ((held << 6) | Math.max(0, ALPHABET.indexOf(char))) & 0xffff;
    bits += 6;
    if (bits >= 8) {
      bits -= 8;
      bytes += String.fromCharCode((held >> bits) & 255);
    }
  }
  return bytes;
};

const btoa = (data: string | Uint8Array): string =>
  (typeof data === "string" ? Buffer.from(data, "latin1") : Buffer.from(data)).toString("base64");

/** The globals, by name. */
export const espruinoGlobals = () => ({
  atob,
  btoa,
  E: {
    toUint8Array: (text: string) => new Uint8Array(Buffer.from(text, "latin1")),
    CRC32: (bytes: Uint8Array) => crc32(bytes),
  },
});
