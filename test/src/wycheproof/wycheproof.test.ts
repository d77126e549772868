/**
 * Wycheproof's known answers, collected from other implementations' mistakes, with every suite: see
 * protocol/vectors/wycheproof/README.md.
 */
import { readFileSync } from "node:fs";
import { espruinoSuite } from "@blindrelay/agent-sdk/testing/espruino-suite";
import { type AeadVersion, hkdfExpand, hkdfExtract, type Suite } from "@blindrelay/protocol/crypto";
import { nobleSuite } from "@blindrelay/protocol/suites/noble";
import { nobleX25519 } from "@blindrelay/protocol/suites/noble-x25519";
import { nodeSuite } from "@blindrelay/protocol/suites/node";
import { nodeX25519 } from "@blindrelay/protocol/suites/node-x25519";
import { checkX25519, type X25519File } from "@blindrelay/protocol/testing/forward";
import { describe, expect, it } from "vitest";
import { processRecorder } from "../instruments/nonces/recorder.ts";

type Row = readonly (string | number)[];
interface File {
  readonly fields: readonly string[];
  readonly tests: readonly Row[];
}

const read = (name: string): string =>
  readFileSync(
    new URL(`../../../protocol/vectors/wycheproof/${name}.json`, import.meta.url),
    "utf8",
  );
const load = (name: string): File => JSON.parse(read(name)) as File;

/** Column by column. */
const rows = ({ fields, tests }: File): Record<string, string>[] =>
  tests.map((row) => Object.fromEntries(fields.map((field, i) => [field, String(row[i])])));

const bytes = (hex: string | undefined): Uint8Array =>
  new Uint8Array(Buffer.from(hex ?? "", "hex"));
const hex = (some: Uint8Array | null): string | null =>
  some === null ? null : Buffer.from(some).toString("hex");

const suites: [string, Suite][] = [
  ["node", nodeSuite()],
  ["noble", nobleSuite()],
  ["Espruino", espruinoSuite()],
];

const aead: [AeadVersion, string, number][] = [
  ["1", "chacha20-poly1305", 316],
  ["2", "aes-128-ccm", 78],
];

describe.each(suites)("the suite of %s", (_name, suite) => {
  it.each(aead)("version %s: %s, %d tests", (v, name, count) => {
    const file = load(name);
    expect(file.tests).toHaveLength(count);
    const wrong: string[] = [];
    for (const test of rows(file)) {
      processRecorder().startScope(); // they use one key and nonce for several texts
      const key = new Uint8Array(32);
      key.set(bytes(test.key), 0);
      const handle = suite.aeadKey(v, key);
      const sealed = bytes(test["ct || tag"]);
      const opened = hex(suite.open(handle, bytes(test.iv), bytes(test.aad), sealed));
      if (opened !== (test.result === "valid" ? test.msg : null)) wrong.push(`open ${test.tcId}`);
      if (test.result !== "valid") continue;
      const again = suite.seal(handle, bytes(test.iv), bytes(test.aad), bytes(test.msg));
      if (hex(again) !== test["ct || tag"]) wrong.push(`seal ${test.tcId}`);
    }
    expect(wrong).toEqual([]);
  });

  it("HMAC-SHA256, 174 tests", () => {
    const file = load("hmac-sha256");
    expect(file.tests).toHaveLength(174);
    const wrong = rows(file).filter(({ key, msg, tag = "", result }) => {
      const mac = hex(suite.hmac(suite.hmacKey(bytes(key)), bytes(msg)));
      return (mac?.slice(0, tag.length) === tag) !== (result === "valid");
    });
    expect(wrong).toEqual([]);
  });

  it("HKDF-SHA256, 86 tests", () => {
    const file = load("hkdf-sha256");
    expect(file.tests).toHaveLength(86);
    const wrong = rows(file).filter(({ ikm, salt, info, size, okm, result }) => {
      const prk = hkdfExtract(suite, bytes(salt), bytes(ikm));
      try {
        const made = hkdfExpand(suite, suite.hmacKey(prk), bytes(info), Number(size));
        return result !== "valid" || hex(made) !== okm;
      } catch {
        return result === "valid"; // more than 255 blocks
      }
    });
    expect(wrong).toEqual([]);
  });
});

it.each([
  ["node", nodeX25519],
  ["noble", nobleX25519],
])("X25519 of %s, 518 tests", (_name, x25519) => {
  const file = JSON.parse(read("x25519")) as X25519File;
  expect(file.tests).toHaveLength(518);
  expect(checkX25519(x25519, file)).toEqual([]);
});
