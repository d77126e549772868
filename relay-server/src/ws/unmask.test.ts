import fc from "fast-check";
import { expect, it } from "vitest";
import { unmask } from "./unmask.ts";

/** As specified in RFC 6455 section 5.3. */
const masked = (payload: Uint8Array, mask: Uint8Array): Uint8Array =>
  payload.map((byte, i) => byte ^ (mask[i % 4] as number));

const isPrintable = (payload: Uint8Array): boolean =>
  payload.every((byte) => byte >= 0x20 && byte <= 0x7e);

const MASK = fc.uint8Array({ minLength: 4, maxLength: 4 });
/** Entirely printable or with one exception anywhere; short and long. */
const PAYLOAD = fc
  .tuple(
    fc.oneof(fc.nat(20), fc.integer({ min: 250, max: 300 })),
    fc.integer({ min: 0x20, max: 0x7e }),
    fc.nat(),
    fc.nat(255),
  )
  .map(([length, filling, at, odd]) => {
    const payload = new Uint8Array(length).fill(filling);
    if (length > 0) payload[at % length] = odd;
    return payload;
  });

it("unmasks at any offset, changes no other bytes, and detects what is not printable", () => {
  fc.assert(
    fc.property(PAYLOAD, MASK, fc.nat(9), (payload, mask, offset) => {
      const memory = Buffer.alloc(offset + payload.length + 16, 0xee);
      const bytes = memory.subarray(offset); // at any place in its word
      bytes.set(mask);
      bytes.set(masked(payload, mask), 5);
      const printable = unmask(bytes, 5, 5 + payload.length, 0);
      expect(bytes.subarray(5, 5 + payload.length).equals(payload)).toBe(true);
      expect(bytes.subarray(5 + payload.length).every((byte) => byte === 0xee)).toBe(true);
      expect(bytes.subarray(0, 4).equals(mask)).toBe(true);
      // In words a DEL counts as printable; JSON accepts it.
      if (!payload.includes(0x7f)) expect(printable).toBe(isPrintable(payload));
    }),
    { numRuns: 3000 },
  );
});
