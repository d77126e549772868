/** CCM composed from CBC and ECB of node:crypto, against the aes-128-ccm of node:crypto. */
import { createCipheriv } from "node:crypto";
import fc from "fast-check";
import { expect, it } from "vitest";
import { sealWith } from "../../scripts/vectors/reference.ts";
import type { AesBlocks } from "./ccm.ts";
import { ccmOpen, ccmSeal } from "./ccm.ts";

const blocks = (key: Uint8Array): AesBlocks => {
  const whole = (name: string, iv: Uint8Array | null, data: Uint8Array): Uint8Array => {
    const cipher = createCipheriv(name, key, iv).setAutoPadding(false);
    return Buffer.concat([cipher.update(data), cipher.final()]);
  };
  return {
    cbc: (data, iv) => whole("aes-128-cbc", iv, data),
    ecb: (data) => whole("aes-128-ecb", null, data),
  };
};

const bytes = (length: number) => fc.uint8Array({ minLength: length, maxLength: length });

it("seals like node:crypto and opens what it sealed", () => {
  fc.assert(
    fc.property(
      bytes(16),
      bytes(12),
      fc.uint8Array({ minLength: 1, maxLength: 70 }),
      fc.uint8Array({ maxLength: 300 }),
      (key, nonce, aad, plaintext) => {
        const sealed = ccmSeal(blocks(key), nonce, aad, plaintext);
        expect(sealed).toEqual(new Uint8Array(sealWith("2", key, nonce, aad, plaintext)));
        expect(ccmOpen(blocks(key), nonce, aad, sealed)).toEqual(plaintext);
      },
    ),
  );
});

it.each([65535, 65536, 65537, 47000])("handles a plaintext of %i bytes", (length) => {
  const key = new Uint8Array(16).fill(3);
  const nonce = new Uint8Array(12).fill(4);
  const aad = Uint8Array.of(5);
  const plaintext = new Uint8Array(length).fill(6);
  const sealed = ccmSeal(blocks(key), nonce, aad, plaintext);
  // Compared as a whole: printing a difference of 65,536 numbers takes minutes.
  expect(sealWith("2", key, nonce, aad, plaintext).equals(sealed)).toBe(true);
  const opened = ccmOpen(blocks(key), nonce, aad, sealed);
  expect(opened !== null && Buffer.from(opened).equals(plaintext)).toBe(true);
});
