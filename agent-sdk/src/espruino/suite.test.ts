/** The board's suite against every vector, on full boards and on boards that lack something. */
import { readFileSync } from "node:fs";
import { checkVectors, VECTOR_FILE_NAMES, type VectorFiles } from "@blindrelay/protocol/testing";
import { describe, expect, it } from "vitest";
import { espruinoCrypto } from "../testing/espruino-natives.ts";
import { EspruinoSuite } from "./suite.ts";

const fields = Object.keys(VECTOR_FILE_NAMES) as (keyof VectorFiles)[];
const load = (field: keyof VectorFiles): VectorFiles => {
  const url = new URL(`../../../protocol/vectors/${VECTOR_FILE_NAMES[field]}`, import.meta.url);
  return { [field]: JSON.parse(readFileSync(url, "utf8")) };
};

const { SHA1, AES } = espruinoCrypto();

describe.each([
  ["with SHA-256 and AES", espruinoCrypto()],
  ["without SHA-256", { SHA1, AES }],
])("a board %s", (_what, crypto) => {
  it.each(fields)("agrees with every case of %s", (field) => {
    expect(checkVectors(new EspruinoSuite(crypto, () => {}), load(field))).toEqual([]);
  });
});

describe("a board without AES", () => {
  const suite = new EspruinoSuite({ SHA1 }, () => {});

  it("supports packet version 1", () => {
    expect(checkVectors(suite, load("chacha20Poly1305"))).toEqual([]);
  });

  it("reports that version 2 is not supported", () => {
    expect(() => suite.aeadKey("2", new Uint8Array(32))).toThrow('no AES: use packet version "1"');
  });
});

it("makes room if a native hash finds none, and hashes again", () => {
  const { SHA256, ...others } = espruinoCrypto();
  let room = false;
  const crypto = { ...others, SHA256: (data: Uint8Array) => (room ? SHA256?.(data) : undefined) };
  const suite = new EspruinoSuite(crypto, () => {
    room = true;
  });
  expect(suite.hash(new Uint8Array(3))).toEqual(new Uint8Array(SHA256?.(new Uint8Array(3)) ?? []));
  expect(room).toBe(true);
});
