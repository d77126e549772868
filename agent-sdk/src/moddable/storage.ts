/**
 * The SDK's small values as the storage port: ECMA-419 key-value storage on Zephyr and Pebble,
 * preferences elsewhere (moddable/values-*.js). They differ by platform: NVS on ESP32 (every value
 * is committed, an interrupted preference leaves none), a log of two flash sectors on ESP8266,
 * RP2040 and nRF52 (values of up to 63 bytes), Zephyr's settings, and on Linux one JSON file behind
 * a cache, never flushed, which is only for trying things out (docs/moddable.md).
 *
 * So a text is stored in parts of at most 48 bytes, each a buffer that begins with the number of
 * parts after it. After a power cut, parts of two writes may be mixed: the result is not a valid
 * text, which the boot count's checksum detects.
 */
import type { StoragePort } from "../ports.ts";
import { asciiBytes, crc32 } from "./core.ts";
import type { ModdableValues } from "./sdk.ts";

const PART_BYTES = 48;
/** NVS allows keys of 15 characters; two of them number the part. */
const MAX_NAME = 13;

const keyOf = (name: string): string => {
  if (name.length <= MAX_NAME) return name;
  const hash = (crc32(asciiBytes(name)) >>> 0).toString(16);
  return name.substring(0, MAX_NAME - hash.length) + hash;
};

export const valueStorage = (values: ModdableValues): StoragePort => ({
  read: (name) => {
    const key = keyOf(name);
    let text = "";
    let left = 0;
    for (let part = 0; part === 0 || left > 0; part++) {
      const value = values.read(`${key}.${part}`);
      if (!(value instanceof ArrayBuffer) || value.byteLength === 0)
        return part === 0 ? null : text;
      const bytes = new Uint8Array(value);
      left = bytes[0] as number;
      for (let i = 1; i < bytes.length; i++) text += String.fromCharCode(bytes[i] as number);
    }
    return text;
  },
  write: (name, text) => {
    const key = keyOf(name);
    const parts = Math.max(1, Math.ceil(text.length / PART_BYTES));
    for (let part = 0; part < parts; part++) {
      const piece = asciiBytes(text.substring(part * PART_BYTES, (part + 1) * PART_BYTES));
      const bytes = new Uint8Array(piece.length + 1);
      bytes[0] = parts - 1 - part;
      bytes.set(piece, 1);
      values.write(`${key}.${part}`, bytes.buffer);
    }
  },
});
