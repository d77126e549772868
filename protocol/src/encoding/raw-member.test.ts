import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { rawMember } from "./raw-member.ts";

describe("a member's own text", () => {
  it.each([
    ['{"payload":{"seq":1.0}}', '{"seq":1.0}'],
    [' { "a" : [ { } ] , "payload" : { "x" : "}" } } ', '{ "x" : "}" }'],
    ['{"payload":"payload","payload":2}', "2"],
    ['{"a":{"payload":1}}', null],
    ['{"a":"payload"}', null],
    ['{"a":["payload",{"payload":1}],"payload":true}', "true"],
    ['{"a":"\\"payload\\":1","b":"\\\\","payload":null}', "null"],
    ["{}", null],
    ['{"payload":"', null],
  ])("in %s", (text, raw) => {
    expect(rawMember(text, "payload")).toBe(raw);
  });

  it("is what JSON.parse would read, for any object and spacing", () => {
    fc.assert(
      fc.property(
        fc.dictionary(fc.string(), fc.jsonValue()),
        fc.jsonValue(),
        fc.constantFrom(0, 1, "\t"),
        (others, payload, space) => {
          const text = JSON.stringify({ ...others, payload, "": others }, null, space);
          expect(JSON.parse(rawMember(text, "payload") as string)).toEqual(
            JSON.parse(JSON.stringify(payload)),
          );
        },
      ),
    );
  });
});
