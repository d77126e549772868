/**
 * What a device program keeps: `agent.storage`. A few texts under short names, each the old or the
 * new one after a power cut, over the medium that holds the boot count.
 *
 * Each text is a record in one of SLOTS files: `<key> <number> <escaped text> <CRC-32 of all
 * before>`. A write goes to a file that holds no current record, with the next number of that key,
 * so a torn one leaves the old record; where two of a key are whole, the higher number counts. A
 * record is printable ASCII, which every medium keeps: other characters are written as their code,
 * such as `%20ac;`, so a string comes back as it was, also on engines whose strings have eight
 * bits.
 *
 * The limits are those of a small board everywhere, so that what runs on one runtime runs on all.
 *
 * [portable]
 */
import { asciiBytes, crc32, utf8Bytes } from "@blindrelay/protocol/crypto";
import type { StoragePort } from "../ports.ts";

const MAX_TEXTS = 16;
/** One is free, for the next write. */
const SLOTS = MAX_TEXTS + 1;
/** Of UTF-8. */
const MAX_BYTES = 256;
const MAX_KEY = 24;
/** What a record becomes; Espruino has no empty files. */
const REMOVED = "-";

interface StoredText {
  readonly slot: number;
  readonly key: string;
  readonly number: number;
  readonly encoded: string;
}

const nameOfSlot = (slot: number): string => `text.${slot}`;

const encodeRecord = (key: string, number: number, encoded: string): string => {
  const body = `${key} ${number} ${encoded}`;
  return `${body} ${crc32(asciiBytes(body)) >>> 0}`;
};

/** The exact inverse; null for any other text. */
const decodeRecord = (slot: number, text: string | null): StoredText | null => {
  // A checksum of ASCII only.
  if (text === null || /[^!-~ ]/.test(text)) return null;
  const parts = text.split(" ");
  const key = parts[0] as string;
  const number = Number(parts[1]);
  const encoded = parts[2] as string;
  return encodeRecord(key, number, encoded) === text
    ? { slot: slot, key: key, number: number, encoded: encoded }
    : null;
};

const checkKey = (key: string): void => {
  if (typeof key !== "string" || key.length > MAX_KEY || !/^[a-z0-9._-]+$/.test(key)) {
    throw new Error(`a key of storage has 1 to ${MAX_KEY} of a-z, 0-9, ".", "_" and "-": ${key}`);
  }
};

const encodeText = (text: string): string => {
  if (typeof text !== "string") {
    throw new Error("storage keeps texts: write JSON.stringify(value)");
  }
  const bytes = utf8Bytes(text).length;
  if (bytes > MAX_BYTES) {
    throw new Error(`storage keeps texts of up to ${MAX_BYTES} bytes, not ${bytes}`);
  }
  if (!/[^!-$&-~]/.test(text)) return text;
  // One at a time: an Espruino with Unicode strings replaces bytes of a character.
  let encoded = "";
  for (let i = 0; i < text.length; i++) {
    const code = text.charCodeAt(i);
    const isPlain = code > 32 && code < 127 && code !== 37;
    encoded += isPlain ? text.charAt(i) : `%${code.toString(16)};`;
  }
  return encoded;
};

const escapeUnit = (unit: number): string => `\\u${(0x10000 + unit).toString(16).substring(1)}`;

/** On XS a character beyond U+FFFF is one code. */
const escapeCode = (code: number): string =>
  code > 0xffff
    ? escapeUnit(0xd7c0 + (code >> 10)) + escapeUnit(0xdc00 | (code & 0x3ff))
    : escapeUnit(code);

const quote = (ascii: string): string => ascii.replace(/["\\]/g, (character) => `\\${character}`);

/** By JSON: String.fromCharCode of an Espruino with Unicode strings makes bytes. */
const decodeText = (encoded: string): string => {
  const parts = encoded.split("%");
  let json = quote(parts[0] as string);
  for (let i = 1; i < parts.length; i++) {
    const part = parts[i] as string;
    const end = part.indexOf(";");
    json += escapeCode(parseInt(part.substring(0, end), 16)) + quote(part.substring(end + 1));
  }
  return JSON.parse(`"${json}"`) as string;
};

/** Throws if the medium does not hold the text afterwards. */
const writeSlot = (port: StoragePort, slot: number, text: string): void => {
  port.write(nameOfSlot(slot), text);
  if (port.read(nameOfSlot(slot)) !== text)
    throw new Error("storage does not keep what is written");
};

const readSlot = (port: StoragePort, slot: number): StoredText | null =>
  decodeRecord(slot, port.read(nameOfSlot(slot)));

/** The record of this key that counts; null if there is none. */
const findText = (port: StoragePort, key: string): StoredText | null => {
  let found: StoredText | null = null;
  const head = `${key} `;
  for (let slot = 0; slot < SLOTS; slot++) {
    const text = port.read(nameOfSlot(slot));
    // Those of other keys are not worth their checksum.
    if (text === null || text.substring(0, head.length) !== head) continue;
    const one = decodeRecord(slot, text);
    if (one === null) continue;
    if (found === null || one.number > found.number) found = one;
  }
  return found;
};

/** Whether a slot has a record, and none of the same key a higher number. */
const isCurrent = (keys: readonly string[], numbers: readonly number[], slot: number): boolean => {
  if (keys[slot] === "") return false;
  for (let other = 0; other < SLOTS; other++) {
    if (keys[other] !== keys[slot]) continue;
    if ((numbers[other] as number) > (numbers[slot] as number)) return false;
  }
  return true;
};

export class DeviceStorage {
  declare private readonly port: StoragePort;

  constructor(port: StoragePort) {
    this.port = port;
  }

  /** The text that was last set, also before a restart; null: none. Throws for no key. */
  get(key: string): string | null {
    checkKey(key);
    const found = findText(this.port, key);
    return found === null ? null : decodeText(found.encoded);
  }

  /**
   * Keeps a text of up to 256 bytes of UTF-8; durable on return. Cut short by a loss of power, it
   * leaves the old text or the new one. Throws, and leaves the old text, if the text or the key is
   * none, if there are 16 others already, or if the medium is full.
   */
  set(key: string, text: string): void {
    checkKey(key);
    const encoded = encodeText(text);
    const keys: string[] = [];
    const numbers: number[] = [];
    let old: StoredText | null = null;
    for (let slot = 0; slot < SLOTS; slot++) {
      const one = readSlot(this.port, slot);
      keys.push(one === null ? "" : one.key);
      numbers.push(one === null ? 0 : one.number);
      if (one !== null && one.key === key && (old === null || one.number > old.number)) old = one;
    }
    if (old !== null && old.encoded === encoded) return;
    const others: string[] = [];
    let free = -1;
    for (let slot = 0; slot < SLOTS; slot++) {
      if (!isCurrent(keys, numbers, slot)) free = slot;
      else if (keys[slot] !== key) others.push(keys[slot] as string);
    }
    if (others.length >= MAX_TEXTS) {
      throw new Error(
        `storage keeps ${MAX_TEXTS} texts, and holds ${others.join(", ")}: remove one`,
      );
    }
    const number = old === null ? 1 : old.number + 1;
    writeSlot(this.port, free, encodeRecord(key, number, encoded));
  }

  /** Forgets a text; harmless if there is none. */
  remove(key: string): void {
    checkKey(key);
    // An older one would come back if the power failed after the newer one had gone.
    const last = findText(this.port, key);
    if (last === null) return;
    for (let slot = 0; slot < SLOTS; slot++) {
      const one = readSlot(this.port, slot);
      if (one !== null && one.key === key && slot !== last.slot)
        writeSlot(this.port, slot, REMOVED);
    }
    writeSlot(this.port, last.slot, REMOVED);
  }
}
