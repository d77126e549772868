/** The suites compared with each other and with node:crypto, on random and on damaged input. */
import crypto, { createHmac } from "node:crypto";
import { syncBuiltinESMExports } from "node:module";
import fc from "fast-check";
import { describe, expect, it, vi } from "vitest";
import { filler, sealWith } from "../../scripts/vectors/reference.ts";
import type { Suite } from "../crypto/suite.ts";
import type { AeadVersion } from "../crypto/versions.ts";
import { nobleSuite } from "./noble.ts";
import { loadNodeSuite, nodeSuite } from "./node.ts";

const suites: [string, Suite][] = [
  ["node", nodeSuite()],
  ["noble", nobleSuite()],
];
const versions: AeadVersion[] = ["1", "2"];
const bytes = (length: number) => fc.uint8Array({ minLength: length, maxLength: length });

// A key for each run: fast-check prefers zeros, and no key may see a nonce twice.
let runs = 0;
const freshKey = (): Uint8Array => {
  runs++;
  return filler(`suites test ${runs}`, 32);
};

// oven-sh/bun#8072
it("verifies nothing in an engine without the cipher, and does not throw", () => {
  const suite = nodeSuite();
  const { key } = suite.aeadKey("1", freshKey()).aeadKey as { key: unknown };
  const missing = { aeadKey: { cipher: "chacha-of-nobody", key } };
  expect(suite.open(missing, filler("nonce", 12), filler("aad", 8), filler("x", 40))).toBeNull();
});

it.each([
  ["both ciphers", ["aes-128-ccm", "chacha20-poly1305"], true],
  ["no AES-CCM", ["chacha20-poly1305"], false],
  ["no ChaCha20", ["aes-128-ccm"], false],
])("is node's own in an engine with %s, or else noble's", async (_what, ciphers, isNodes) => {
  const known = vi.spyOn(crypto, "getCiphers").mockReturnValue(ciphers);
  syncBuiltinESMExports();
  const suite = await loadNodeSuite();
  known.mockRestore();
  syncBuiltinESMExports();
  // Only noble's keeps a key as bytes.
  const { hmacKey } = suite.hmacKey(freshKey());
  expect(hmacKey instanceof Uint8Array).toBe(!isNodes);
});

describe.each(versions)("suite %s", (v) => {
  it("seals identically everywhere, like node:crypto, and every suite opens it", () => {
    fc.assert(
      fc.property(
        bytes(12),
        fc.uint8Array({ minLength: 1, maxLength: 80 }),
        fc.uint8Array({ maxLength: 400 }),
        (nonce, aad, plaintext) => {
          const key = freshKey();
          const expected = new Uint8Array(sealWith(v, key, nonce, aad, plaintext));
          for (const [, suite] of suites) {
            const handle = suite.aeadKey(v, key);
            const sealed = suite.seal(handle, nonce, aad, plaintext);
            expect(new Uint8Array(sealed)).toEqual(expected);
            const opened = suite.open(handle, nonce, aad, sealed);
            expect(opened && new Uint8Array(opened)).toEqual(plaintext);
          }
        },
      ),
    );
  });

  it("never opens a modified, truncated, extended or invented text, and never throws", () => {
    const damage = fc.oneof(
      fc.record({
        kind: fc.constant("flip" as const),
        at: fc.nat(),
        mask: fc.integer({ min: 1, max: 255 }),
      }),
      fc.record({ kind: fc.constant("cut" as const), at: fc.nat() }),
      fc.record({
        kind: fc.constant("longer" as const),
        more: fc.uint8Array({ minLength: 1, maxLength: 40 }),
      }),
      fc.record({ kind: fc.constant("noise" as const), noise: fc.uint8Array({ maxLength: 400 }) }),
    );
    fc.assert(
      fc.property(
        bytes(12),
        fc.uint8Array({ maxLength: 200 }),
        damage,
        (nonce, plaintext, change) => {
          const key = freshKey();
          const aad = Uint8Array.of(1, 2, 3);
          let text = new Uint8Array(sealWith(v, key, nonce, aad, plaintext));
          if (change.kind === "flip") text[change.at % text.length]! ^= change.mask;
          if (change.kind === "cut") text = text.slice(0, change.at % text.length);
          if (change.kind === "longer") text = Uint8Array.from([...text, ...change.more]);
          if (change.kind === "noise") text = Uint8Array.from(change.noise);
          for (const [, suite] of suites) {
            expect(suite.open(suite.aeadKey(v, key), nonce, aad, text)).toBeNull();
          }
        },
      ),
      { numRuns: 500 },
    );
  });

  it.each([31, 32, 33, 65535, 65536, 47000])("handles %i bytes", (length) => {
    const key = freshKey();
    const nonce = new Uint8Array(12);
    const aad = Uint8Array.of(1);
    const plaintext = new Uint8Array(length).fill(7);
    const expected = sealWith(v, key, nonce, aad, plaintext);
    for (const [, suite] of suites) {
      const handle = suite.aeadKey(v, key);
      // Compared as a whole: printing a difference of 65,536 numbers takes minutes.
      expect(expected.equals(suite.seal(handle, nonce, aad, plaintext))).toBe(true);
      const opened = suite.open(handle, nonce, aad, expected);
      expect(opened !== null && Buffer.from(opened).equals(plaintext)).toBe(true);
    }
  });
});

it.each([
  ["node", nodeSuite],
  ["noble", nobleSuite],
] as const)("a %s suite that is made only now does what others do", (_name, make) => {
  const suite = make();
  const [key, nonce, aad, text] = [freshKey(), filler("n", 12), filler("a", 200), filler("t", 20)];
  const mac = createHmac("sha256", key).update(text).digest();
  expect(mac.equals(suite.hmac(suite.hmacKey(key), text))).toBe(true);
  for (const v of versions) {
    const handle = suite.aeadKey(v, key);
    const sealed = suite.seal(handle, nonce, aad, text);
    expect(sealWith(v, key, nonce, aad, text).equals(sealed)).toBe(true);
    expect(Buffer.from(text).equals(suite.open(handle, nonce, aad, sealed) ?? aad)).toBe(true);
    expect(suite.open(handle, nonce, aad, sealed.subarray(0, 15))).toBe(null);
  }
});

describe.each(suites)("the %s suite", (_name, suite) => {
  it("computes HMAC-SHA256 for keys and data of any length", () => {
    fc.assert(
      fc.property(
        fc.uint8Array({ maxLength: 200 }),
        fc.uint8Array({ maxLength: 200 }),
        (key, data) => {
          const mac = suite.hmac(suite.hmacKey(key), data);
          expect(Buffer.from(mac)).toEqual(createHmac("sha256", key).update(data).digest());
        },
      ),
    );
  });

  it("takes AEAD keys of 32 bytes only", () => {
    for (const length of [0, 16, 31, 33]) {
      for (const v of versions) {
        expect(() => suite.aeadKey(v, new Uint8Array(length))).toThrow(
          new RangeError("an AEAD key is derived as 32 bytes"),
        );
      }
    }
  });

  it("keeps its own copy of a key, whatever the caller does with the array", () => {
    const key = freshKey();
    const expected = sealWith("1", key, new Uint8Array(12), Uint8Array.of(1), Uint8Array.of(2));
    const mac = createHmac("sha256", key).update("x").digest();
    const aead = suite.aeadKey("1", key);
    const hmac = suite.hmacKey(key);
    key.fill(0);
    const sealed = suite.seal(aead, new Uint8Array(12), Uint8Array.of(1), Uint8Array.of(2));
    expect(Buffer.from(sealed)).toEqual(expected);
    expect(Buffer.from(suite.hmac(hmac, Buffer.from("x")))).toEqual(mac);
  });
});
