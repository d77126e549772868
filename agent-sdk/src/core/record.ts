/**
 * A record that a device keeps through power cuts: two files with a checksum, written in turns. A
 * torn write leaves the record before it, as if nothing had happened.
 *
 * [portable]
 */
import { asciiBytes, crc32, decodeJson, encodeJson, isObject } from "@blindrelay/protocol/crypto";
import type { StoragePort } from "../ports.ts";

/** Its checksum, a space and JSON. */
const encodeRecord = (state: object): string => {
  const text = encodeJson(state) as string;
  return `${crc32(asciiBytes(text)) >>> 0} ${text}`;
};

/** `none`: in place of a record that is missing or damaged. */
const readRecord = <State extends object>(text: string | null, none: State): State => {
  if (text === null) return none;
  const state = decodeJson(text.substring(text.indexOf(" ") + 1));
  return isObject(state) && encodeRecord(state) === text ? (state as unknown as State) : none;
};

/** The newer of the records in two files. */
export const readNewer = <State extends { readonly n: number }>(
  storage: StoragePort,
  name: string,
  none: State,
): State => {
  const a = readRecord(storage.read(`${name}.0`), none);
  const b = readRecord(storage.read(`${name}.1`), none);
  return a.n > b.n ? a : b;
};

/** Whether the other file has nothing but this record, by the number before. */
export const isWrittenTwice = <State extends { readonly n: number }>(
  storage: StoragePort,
  name: string,
  state: State,
): boolean => {
  const n = state.n - 1;
  return storage.read(`${name}.${n & 1}`) === encodeRecord(Object.assign({}, state, { n: n }));
};

/**
 * Writes the record that follows `before`, reads it back, and returns it. Throws if it is not
 * stored.
 */
export const writeNext = <State extends { readonly n: number }>(
  storage: StoragePort,
  name: string,
  before: State,
  change: object,
): State => {
  const state = Object.assign({}, before, change, { n: before.n + 1 }) as State;
  const file = `${name}.${state.n & 1}`;
  const text = encodeRecord(state);
  storage.write(file, text);
  if (storage.read(file) !== text) throw new Error("the storage does not keep what is written");
  return state;
};
