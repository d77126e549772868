import crypto from "node:crypto";
import { readFileSync } from "node:fs";
import { syncBuiltinESMExports } from "node:module";
import { afterEach, describe, expect, it, vi } from "vitest";
import type { X25519 } from "../crypto/forward-keys.ts";
import { checkX25519, type X25519File } from "../testing/forward.ts";
import { nobleX25519 } from "./noble-x25519.ts";
import { nodeX25519 } from "./node-x25519.ts";

afterEach(() => {
  vi.restoreAllMocks();
  syncBuiltinESMExports();
});

/** Node's, as a version has it whose node:crypto takes no raw values. */
const ofOlderNode = async (): Promise<X25519> => {
  const { createPrivateKey } = crypto;
  vi.spyOn(crypto, "createPrivateKey").mockImplementation((key) => {
    if ((key as { format?: string }).format === "raw-private") throw new TypeError("unknown");
    return createPrivateKey(key);
  });
  syncBuiltinESMExports();
  vi.resetModules();
  return (await import("./node-x25519.ts")).nodeX25519;
};

const IMPLEMENTATIONS: [string, () => X25519 | Promise<X25519>][] = [
  ["node", () => nodeX25519],
  ["an older node", ofOlderNode],
  ["noble", () => nobleX25519],
];

const url = new URL("../../vectors/wycheproof/x25519.json", import.meta.url);
const file = JSON.parse(readFileSync(url, "utf8")) as X25519File;

describe.each(IMPLEMENTATIONS)("X25519 of %s", (_name, load) => {
  // All are in test/src/wycheproof.
  it("agrees with a tenth of Wycheproof's tests", async () => {
    const x25519 = await load();
    const tests = file.tests.filter((_, n) => n % 10 === 0);
    expect(checkX25519(x25519, { ...file, tests })).toEqual([]);
  });

  it("refuses values of other lengths, and results of zero", async () => {
    const x25519 = await load();
    const pair = x25519.pair(new Uint8Array(32).fill(7));
    for (const length of [0, 31, 33]) {
      expect(() => x25519.pair(new Uint8Array(length))).toThrow(RangeError);
      expect(() => pair.shared(new Uint8Array(length))).toThrow("X25519 takes values of 32 bytes");
    }
    expect(pair.shared(new Uint8Array(32))).toBe(null);
    expect(pair.publicKey()).toHaveLength(32);
  });

  it("keeps its own copy of a private value", async () => {
    const x25519 = await load();
    const own = Buffer.alloc(32, 7);
    const pair = x25519.pair(own);
    const before = Buffer.from(pair.publicKey());
    own.fill(0);
    expect(before.equals(pair.publicKey())).toBe(true);
    pair.end();
  });
});

it("an implementation says whether it is native, and noble's forgets a private value", () => {
  expect([nodeX25519.isNative, nobleX25519.isNative]).toEqual([true, false]);
  const pair = nobleX25519.pair(new Uint8Array(32).fill(7));
  const before = pair.publicKey();
  pair.end();
  expect(Buffer.from(pair.publicKey()).equals(before)).toBe(false);
});
