/** Both suites run every vector file, and the files are what the committed script generates. */
import { readdirSync, readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { makeVectorFiles } from "../../scripts/make-vectors.ts";
import type { Suite } from "../crypto/suite.ts";
import { nobleSuite } from "../suites/noble.ts";
import { nobleChachaSuite } from "../suites/noble-chacha.ts";
import { nodeSuite } from "../suites/node.ts";
import type { VectorFiles } from "./index.ts";
import { checkVectors, VECTOR_FILE_NAMES } from "./index.ts";

const folder = new URL("../../vectors/", import.meta.url);
const read = (name: string): string => readFileSync(new URL(name, folder), "utf8");
const FORWARD_FILE = "forward-secrecy.json";
const fields = Object.keys(VECTOR_FILE_NAMES) as (keyof VectorFiles)[];
const load = (field: keyof VectorFiles): VectorFiles => ({
  [field]: JSON.parse(read(VECTOR_FILE_NAMES[field])),
});

describe.each([
  ["node", nodeSuite()],
  ["noble", nobleSuite()],
])("the %s suite", (_name, suite) => {
  it.each(fields)("agrees with every case of %s", (field) => {
    expect(checkVectors(suite, load(field))).toEqual([]);
  });
});

describe("a suite without AES", () => {
  const suite = nobleChachaSuite();

  it.each(fields)("agrees with every case of %s that needs none", (field) => {
    expect(checkVectors(suite, load(field), ["1"])).toEqual([]);
  });

  it("still fails where it promises version 2", () => {
    expect(() => checkVectors(suite, load("aes128Ccm"))).toThrow("no AES");
  });
});

describe("the vector files", () => {
  it("are all in the runner's list", () => {
    // A folder there contains another project's vectors, which have their own runner.
    const files = readdirSync(folder).filter((name) => name.endsWith(".json"));
    expect(files.sort()).toEqual([...Object.values(VECTOR_FILE_NAMES), FORWARD_FILE].sort());
  });

  it("are what the committed script generates, byte for byte", () => {
    const made = makeVectorFiles();
    expect(Object.keys(made).sort()).toEqual(
      Object.values(VECTOR_FILE_NAMES)
        .filter((name) => name !== "contract.json")
        .sort(),
    );
    for (const name of Object.keys(made)) expect(read(name) === made[name], name).toBe(true);
  });

  it("repeat contract.json in the first trace of each suite", () => {
    const sessions = read("sessions.json");
    for (const one of load("contract").contract?.vectors ?? []) {
      for (const text of [
        one.opening,
        one.answer,
        one.data.packet,
        one.reply.packet,
        one.data_at_last_seq.packet,
      ]) {
        expect(sessions).toContain(JSON.stringify(text));
      }
    }
  });
});

describe("the runner", () => {
  const good = nodeSuite();
  const broken: [string, keyof VectorFiles, Partial<Suite>][] = [
    ["opens whatever comes", "chacha20Poly1305", { open: (_k, _n, _a, s) => s.subarray(16) }],
    ["opens nothing", "aes128Ccm", { open: () => null }],
    [
      "ignores the AAD",
      "chacha20Poly1305",
      { seal: (k, n, _a, p) => good.seal(k, n, new Uint8Array(1), p) },
    ],
    ["mixes the suites up", "aes128Ccm", { aeadKey: (_v, key) => good.aeadKey("1", key) }],
    ["has a short MAC", "hmac", { hmac: (k, d) => good.hmac(k, d).subarray(0, 31) }],
    ["has another hash", "hkdf", { hmac: (k, d) => good.hmac(k, d).map((byte) => byte ^ 1) }],
    ["takes any key", "aes128Ccm", { aeadKey: (v, _key) => good.aeadKey(v, new Uint8Array(32)) }],
    ["opens nothing in a session", "sessions", { open: () => null }],
    ["opens nothing of the contract", "contract", { open: () => null }],
  ];
  it.each(broken)("detects a suite that %s", (_what, field, change) => {
    expect(checkVectors({ ...good, ...change }, load(field))).not.toEqual([]);
  });
});
