import { expect, it } from "vitest";
import { isTooDeep } from "./levels.ts";

it.each([
  ["1", 0],
  ["[]", 1],
  ["[[]]", 2],
  ["[[],[[]],{}]", 3],
  ['{"a":{"b":[{}]}}', 4],
  ["[{},[],{},[]]", 2],
  ['["[[[[{{{{"]', 1],
  ['["]]]]",["}}}}",[]]]', 3],
  ['{"[[[[":"\\"[[[[","a":["\\\\",[]]}', 3],
])("%s has %i levels, no more and no fewer", (text, levels) => {
  expect(isTooDeep(text, levels)).toBe(false);
  if (levels > 0) expect(isTooDeep(text, levels - 1)).toBe(true);
});
