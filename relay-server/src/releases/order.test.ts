/**
 * The relay orders versions with `semver`, devices with the contract's own few lines: both agree.
 */
import { isAbove, isVersionText } from "@blindrelay/protocol/releases";
import fc from "fast-check";
import { gt, valid } from "semver";
import { expect, test } from "vitest";

const number = fc.nat({ max: 20 });
const identifier = fc.oneof(number.map(String), fc.constantFrom("a", "b", "rc", "0a", "-", "A1"));
const version = fc
  .tuple(number, number, number, fc.array(identifier, { maxLength: 3 }))
  .map(([a, b, c, pre]) => `${a}.${b}.${c}${pre.length === 0 ? "" : `-${pre.join(".")}`}`);

test("any two versions", () => {
  fc.assert(
    fc.property(version, version, (a, b) => {
      expect(isVersionText(a)).toBe(valid(a) !== null);
      expect(isAbove(a, b)).toBe(gt(a, b));
    }),
    { numRuns: 2000 },
  );
});
