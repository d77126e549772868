import fc from "fast-check";
import { expect, it } from "vitest";
import {
  canonicalNumber,
  changedNumber,
  isChanged,
  isUnheld,
  numbersIn,
} from "./faithful-numbers.ts";

/** One way to write a number, and what it is, in units of 10^-40. */
const written = fc
  .record({
    sign: fc.constantFrom("", "-"),
    whole: fc.constantFrom("0", "1", "10", "1200", "305"),
    part: fc.constantFrom("", "0", "5", "50", "05", "007"),
    power: fc.constantFrom("", "0", "+2", "-3", "12"),
    mark: fc.constantFrom("e", "E"),
  })
  .map(({ sign, whole, part, power, mark }) => ({
    text: `${sign}${whole}${part && `.${part}`}${power && mark}${power}`,
    value: BigInt(`${sign}${whole}${part}`) * 10n ** BigInt(40 + Number(power) - part.length),
  }));

it("all ways to write a number have one form, and no other number has it", () => {
  fc.assert(
    fc.property(written, written, (a, b) => {
      const isSame = canonicalNumber(a.text) === canonicalNumber(b.text);
      expect(isSame, `${a.text} ${b.text}`).toBe(a.value === b.value);
    }),
    { numRuns: 2000 },
  );
  expect(canonicalNumber("1.50e3")).toBe(canonicalNumber("1500"));
  expect(canonicalNumber("0.007")).toBe(canonicalNumber("7e-3"));
  expect(["-0.0", "0e5", "000"].map(canonicalNumber)).toEqual(["0", "0", "0"]);
});

it("what is no number has the form of none", () => {
  expect(["", "-", "1.", "a1", "1a", "1e"].map(canonicalNumber)).toEqual(Array(6).fill(""));
});

// Whether JavaScript would write another number, and whether no double is that integer.
it.each([
  ["0", false, false],
  ["-0.0e-400", false, false],
  ["9007199254740992", false, false],
  ["9007199254740993", true, true],
  ["-9007199254740993", true, true],
  ["0.1000000000000000055511151231257827", false, false],
  ["12345678901234567.5", true, false],
  ["1e400", true, true],
  ["-1e400", true, true],
  ["1e-400", true, true],
  ["1e23", false, false],
  ["100000000000000000000000", false, false],
  // 2^70, which JavaScript writes with fewer digits.
  ["1180591620717411303424", true, false],
  ["-1180591620717411303424", true, false],
  ["1180591620717411303425", true, true],
  ["1180591620717411303425e0", true, false],
])("%s is changed by reading it: %s; cannot be held: %s", (token, changed, unheld) => {
  expect([isChanged(token), isUnheld(token)]).toEqual([changed, unheld]);
});

it("the numbers of a text are found with their places, and none within texts", () => {
  const text = '{"a1": -1.5e+3, "b\\"2": [0, "3\\\\"], "c": 4E-5}';
  const found = numbersIn(text);
  expect(found.map(({ token }) => token)).toEqual(["-1.5e+3", "0", "4E-5"]);
  for (const { token, at } of found) expect(text.slice(at, at + token.length)).toBe(token);
});

it("the first number of a text that would change is told, by either meaning", () => {
  const text = '["9007199254740993", 1180591620717411303424, 9007199254740993]';
  expect(changedNumber(text)).toEqual({ token: "1180591620717411303424", at: 21 });
  expect(changedNumber(text, isUnheld)).toEqual({ token: "9007199254740993", at: 45 });
  expect(changedNumber("[1, 1.5, 123456789]")).toBe(null);
  for (const token of ["1e400", "1E+400", "1e-400"]) {
    expect(changedNumber(`[${token}]`)).toEqual({ token, at: 1 });
  }
});
