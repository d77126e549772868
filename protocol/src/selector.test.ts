import { describe, expect, it } from "vitest";
import {
  holds,
  matchesGlob,
  matchesKeySelector,
  matchesSelector,
  parseKeySelector,
  parseSelector,
  type Selectable,
  SelectorError,
} from "./selector.ts";

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
    ["", '"" is no condition: each condition is '],
    ["pump", '"pump" is no condition: each condition is id, name, runtime, '],
    ["colour=red", "firmware, online or label.KEY, then =, !=, ~, < or >=, then a value"],
    ["label.=x", "no condition"],
    ["label.Site=x", "no condition"],
    ["id=a,", "no condition"],
    ["id=a, name=b", '" name=b" is no condition'],
    ["firmware<new", '"new" is no version: < compares versions, such as 1.5.0'],
    ["firmware>=new", '"new" is no version: >= compares versions'],
    ["firmware>1.0.0", "no condition"],
    ["online=maybe", '"online=maybe": online is =true or =false'],
    ["online=untrue", "online is"],
    ["online=trueish", "online is"],
    ["online~true", "online is"],
    ["online>=1.0.0", "online is"],
    ["online=", "online is"],
    [`id=${"x".repeat(2046)}`, "a selector has at most 2048 characters"],
    [Array(33).fill("id=a").join(","), "a selector has at most 32 conditions"],
  ])("%j is refused with the reason", (text, reason) => {
    expect(() => parseSelector(text)).toThrow(SelectorError);
    expect(() => parseSelector(text)).toThrow(reason);
  });

  it("has as many characters and conditions as allowed, and may ask who is offline", () => {
    expect(parseSelector(`id=${"x".repeat(2045)}`)).toHaveLength(1);
    expect(parseSelector(Array(32).fill("online!=true").join(","))).toHaveLength(32);
    expect(parseSelector("online=false")).toHaveLength(1);
  });

  const AGENT: Selectable = {
    agent_id: "pump-7",
    name: "Pump",
    runtime: "node",
    firmware_version: null,
    online: true,
    labels: { site: "hall-7" },
  };
  it.each([
    ["id=pump-7", true],
    ["name=Pump", true],
    ["runtime=node", true],
    ["online=true", true],
    ["online=false", false],
    ["label.site=hall-7", true],
    // An object has members that nobody gave it.
    ["label.constructor~*", false],
    ["firmware>=0.0.1", false],
    ["firmware!=1.0.0", true],
    ["id=Pump", false],
    ["name=node", false],
    ["runtime=pump-7", false],
    ["id=pump-7,name=Pump,label.site~hall*", true],
    ["id=pump-7,name=Fan", false],
    ["id=fan-1,name=Pump", false],
  ])("%s chooses an agent: %j", (text, matches) => {
    expect(matchesSelector(parseSelector(text), AGENT)).toBe(matches);
  });

  it("compares the firmware that an agent has reported", () => {
    const agent = { ...AGENT, firmware_version: "1.4.0" };
    expect(matchesSelector(parseSelector("firmware<1.5.0"), agent)).toBe(true);
  });

  it.each([
    ["id~pump-*", true],
    ["label.site=hall-7", true],
    ["id~pump-*,label.site=hall-7", true],
    ["id~pump-*,label.site=hall-8", false],
    ["label.site=pump-7", false],
    ["id=hall-7", false],
  ])("%s of an access key chooses an agent: %j", (text, matches) => {
    expect(matchesKeySelector(parseKeySelector(text), AGENT)).toBe(matches);
  });

  it.each(["name", "runtime", "firmware", "online"])(
    "of an access key may not choose by what an agent claims itself: %s",
    (key) => {
      expect(() => parseKeySelector(`id=a,${key}=true`)).toThrow(
        `${key}: an access key chooses agents by id and label.KEY only`,
      );
    },
  );
});

it.each([
  ["*", "", true],
  ["a*", "abc", true],
  ["*c", "abc", true],
  ["a*c", "ac", true],
  ["a*a", "a", false],
  ["a*b*c", "a-b-b-c", true],
  ["a*b*c", "a-c-b", false],
  ["a*b*c", "ac", false],
  ["a*bb*b", "abb", false],
  ["a*bb*b", "abbb", true],
  ["**", "a", true],
  ["abc", "abc", true],
  ["", "", true],
  ["*a", "b", false],
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
  ["label.a=x", "x", true],
  ["label.a=x", "y", false],
  ["label.a~*", null, false],
  ["label.a~*", "", true],
])("%s for the value %j: %j", (text, value, expected) => {
  const [condition] = parseSelector(text);
  expect(condition && holds(condition, value)).toBe(expected);
});
