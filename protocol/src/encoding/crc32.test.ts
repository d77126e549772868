import { crc32 as reference } from "node:zlib";
import fc from "fast-check";
import { expect, it } from "vitest";
import { asciiBytes } from "./bytes.ts";
import { crc32 } from "./crc32.ts";

it("is the checksum of IEEE 802.3, as zlib has it", () => {
  expect(crc32(asciiBytes("123456789"))).toBe(0xcbf43926);
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 60 }), (bytes) => {
      expect(crc32(bytes)).toBe(reference(bytes));
    }),
  );
});
