import { hkdfSync } from "node:crypto";
import { expect, it } from "vitest";
import { asciiBytes } from "../encoding/bytes.ts";
import { nodeSuite } from "../suites/node.ts";
import { hkdfExpand, hkdfExtract } from "./hkdf.ts";

const suite = nodeSuite();
const [key, salt, info] = ["key", "salt", "info"].map(asciiBytes) as [
  Uint8Array,
  Uint8Array,
  Uint8Array,
];
const expand = (length: number): Uint8Array =>
  hkdfExpand(suite, suite.hmacKey(hkdfExtract(suite, salt, key)), info, length);

it.each([1, 31, 32, 33, 64, 8159, 8160])("is node:crypto's HKDF for %i bytes", (length) => {
  const wanted = Buffer.from(hkdfSync("sha256", key, salt, info, length));
  expect(Buffer.from(expand(length)).equals(wanted)).toBe(true);
});

it.each([0, -1, 8161, Number.NaN])("derives no %d bytes", (length) => {
  expect(() => expand(length)).toThrow("HKDF: length 1 to 8160");
});
