import * as fc from "fast-check";
import { expect, test } from "vitest";
import { exactDecimals, exactly } from "./decimals.ts";

const WHOLE = /^\(?\d+([/*]\d+)*\)?$/;

test("every finite number keeps its value, written with integers that Espruino reads exactly", () => {
  fc.assert(
    fc.property(fc.double({ min: 0, noNaN: true, noDefaultInfinity: true }), (value) => {
      const text = exactly(value);
      expect(text).toMatch(WHOLE);
      for (const [digits] of text.matchAll(/\d+/g)) {
        expect(BigInt(digits)).toBeLessThan(2n ** 63n);
        expect(BigInt(Number(digits))).toBe(BigInt(digits));
      }
      // biome-ignore lint/security/noGlobalEval: only digits and operators, as checked above.
      expect(eval(text)).toBe(value);
    }),
    {
      numRuns: 2000,
      examples: [[5e-324], [Number.MAX_VALUE], [2 ** 53], [2.2250738585072014e-308], [1e22], [0.1]],
    },
  );
});

test.each([
  ["a = 0.3", "a = (3/10)"],
  ["a = -.5", "a = -(5/10)"],
  ["a = 1.5.toFixed(1)", "a = (15/10).toFixed(1)"],
  ["a = 1e3.toFixed(2) + 12", "a = (1000).toFixed(2) + 12"],
  ["f = () => { return.0; }", "f = () => { return(0); }"],
  ["a = 1e999", "a = (1/0)"],
  ["a = 18446744073709551616", "a = (4503599627370496*4096)"],
  ["a = 0x10", "a = 0x10"],
  ["a = { 0.5: '0.5' }", "a = { 0.5: '0.5' }"],
  ["a = 1 +\n 2.25", "a = 1 +\n (225/100)"],
])("%j is written as %j", (code, written) => {
  expect(exactDecimals(code)).toBe(written);
});
