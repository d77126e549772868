import fc from "fast-check";
import { expect, test } from "vitest";
import { unfaithful } from "./faithful.ts";

test("whatever JSON.stringify writes is kept, unless it has U+0000", () => {
  fc.assert(
    fc.property(fc.jsonValue(), (value) => {
      const text = JSON.stringify(value);
      const errors = unfaithful(text, JSON.parse(text));
      expect(errors.length > 0).toBe(
        JSON.stringify(value).replaceAll("\\\\", "").includes("\\u0000"),
      );
    }),
  );
  fc.assert(
    fc.property(fc.double({ noNaN: true, noDefaultInfinity: true }), (number) => {
      expect(unfaithful(String(number), number)).toEqual([]);
      expect(unfaithful(number.toExponential(), number)).toEqual([]);
      // As C's "%.17g" writes it; of a whole number that may be other digits.
      if (!Number.isInteger(number)) expect(unfaithful(number.toPrecision(17), number)).toEqual([]);
    }),
  );
});

test("a whole number is kept if and only if all its digits come back", () => {
  fc.assert(
    fc.property(fc.bigInt({ min: 0n, max: 10n ** 20n }), fc.nat(3), (whole, zeros) => {
      const text = `${whole}.${"0".repeat(zeros + 1)}`;
      expect(unfaithful(text, 0).length === 0).toBe(String(Number(whole)) === String(whole));
    }),
  );
});
