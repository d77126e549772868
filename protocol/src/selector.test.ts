import { describe, expect, it } from "vitest";
import { holds, matchesGlob, parseSelector } from "./selector.ts";

describe("a selector", () => {
  it("is a list of conditions, and a value may hold any character but a comma", () => {
    expect(parseSelector("label.site=hall-7,firmware<1.5.0,name!=a=b,id~pump-*")).toEqual([
      { key: "label.site", operator: "=", value: "hall-7" },
      { key: "firmware", operator: "<", value: "1.5.0" },
      { key: "name", operator: "!=", value: "a=b" },
      { key: "id", operator: "~", value: "pump-*" },
    ]);
    expect(parseSelector("label.note=")).toEqual([{ key: "label.note", operator: "=", value: "" }]);
  });

  it.each([
    "",
    "pump",
    "colour=red",
    "label.=x",
    "label.Site=x",
    "id=a,",
    "id=a, name=b",
    "firmware<new",
    "firmware>1.0.0",
    "online=maybe",
    "online~true",
    `id=${"x".repeat(2048)}`,
    Array(33).fill("id=a").join(","),
  ])("%j is refused", (text) => {
    expect(() => parseSelector(text)).toThrow();
  });
});

it.each([
  ["*", "", true],
  ["a*", "abc", true],
  ["*c", "abc", true],
  ["a*c", "ac", true],
  ["a*a", "a", false],
  ["a*b*c", "a-b-b-c", true],
  ["a*b*c", "a-c-b", false],
  ["abc", "abcd", false],
  ["A*", "abc", false],
  ["*ü*", "Pümp", true],
  [".[", "x[", false],
])("the glob %j over %j: %j", (pattern, text, matches) => {
  expect(matchesGlob(pattern, text)).toBe(matches);
});

it.each([
  ["firmware<1.5.0", "1.4.9", true],
  ["firmware<1.5.0", "1.5.0", false],
  ["firmware<1.5.0", "1.5.0-rc.1", true],
  ["firmware<1.5.0", null, false],
  ["firmware>=1.5.0", "1.5.0", true],
  ["firmware>=1.5.0", "1.4.0", false],
  ["firmware>=1.5.0", "new", false],
  ["firmware>=1.5.0", null, false],
  ["label.a!=x", null, true],
  ["label.a!=x", "x", false],
  ["label.a=x", null, false],
  ["label.a~*", null, false],
  ["label.a~*", "", true],
])("%s for the value %j: %j", (text, value, expected) => {
  const [condition] = parseSelector(text);
  expect(condition && holds(condition, value)).toBe(expected);
});
