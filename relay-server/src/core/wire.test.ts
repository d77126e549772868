import { Auth, ErrorMessage, RelayEnvelope } from "@blindrelay/protocol/schema";
import fc from "fast-check";
import { Value } from "typebox/value";
import { describe, expect, it } from "vitest";
import { errorText, firstPart, readMessage, withAgentId } from "./wire.ts";

/** Text that sometimes is the right one. */
const text = (...right: string[]) => fc.oneof(fc.constantFrom(...right), fc.string());
const maybe = <T>(value: fc.Arbitrary<T>) =>
  fc.oneof(value, value, fc.integer(), fc.constant(null));

describe("readMessage", () => {
  it("takes every envelope that the schema takes", () => {
    const candidate = fc.record(
      {
        type: fc.constant("relay"),
        payload: maybe(text("hello", '{"v":"1","sid":"C","seq":0,"p":""}')),
        signature: maybe(text("s")),
        agent_id: maybe(text("lamp")),
        request_id: maybe(text("r", "r".repeat(65))),
      },
      { requiredKeys: ["type"] },
    );
    fc.assert(
      fc.property(candidate, (fields) => {
        fc.pre(Value.Check(RelayEnvelope, fields));
        expect(readMessage(JSON.stringify(fields))).toMatchObject({ kind: "relay", fault: null });
      }),
    );
  });

  it("takes as auth what the schema takes, where one token and an agent's id are given", () => {
    const candidate = fc.record(
      {
        type: fc.constant("auth"),
        api_token: maybe(fc.string()),
        session_token: maybe(fc.string()),
        client_type: maybe(text("client", "agent", "firmware")),
        agent_id: maybe(text("lamp")),
        presence: maybe(fc.boolean()),
      },
      { requiredKeys: ["type"] },
    );
    fc.assert(
      fc.property(candidate, (fields) => {
        fc.pre(Value.Check(Auth, fields));
        const oneToken =
          Object.hasOwn(fields, "api_token") !== Object.hasOwn(fields, "session_token");
        const named = fields.client_type === "client" || Object.hasOwn(fields, "agent_id");
        const message = readMessage(JSON.stringify(fields));
        expect(message).toMatchObject({ kind: "auth" });
        expect("credentials" in message && message.credentials !== null).toBe(oneToken && named);
      }),
    );
  });

  it("never throws", () => {
    fc.assert(
      fc.property(fc.oneof(fc.string(), fc.json()), (anything) => {
        readMessage(anything);
      }),
    );
  });

  it("sees own properties only", () => {
    const prototype = Object.prototype as { type?: string };
    prototype.type = "ping";
    try {
      expect(readMessage("{}")).toEqual({ kind: "bad" });
    } finally {
      delete prototype.type;
    }
  });
});

describe("firstPart", () => {
  it.each([
    ["C", "C"],
    ["C.A", "C"],
    ["C.A.B", "C"],
    ["", null],
    [".A", null],
    ["C".repeat(64), "C".repeat(64)],
    [`${"C".repeat(65)}.A`, null],
  ])("of %j is %j", (sid, first) => {
    expect(firstPart(sid)).toBe(first);
  });
});

describe("withAgentId", () => {
  it("adds exactly that field to any object's text", () => {
    fc.assert(
      fc.property(fc.dictionary(fc.string(), fc.jsonValue(), { minKeys: 1 }), (fields) => {
        fc.pre(!Object.hasOwn(fields, "agent_id"));
        const bytes = new TextEncoder().encode(`  ${JSON.stringify(fields)}`);
        const spliced = new TextDecoder().decode(withAgentId(bytes, "lamp"));
        expect(JSON.parse(spliced)).toEqual(
          JSON.parse(JSON.stringify({ ...fields, agent_id: "lamp" })),
        );
      }),
    );
  });
});

describe("errorText", () => {
  it("is an error as the schema has it, in ASCII", () => {
    const text = errorText("SID_IN_USE", { sid: "é\u{1f600}", requestId: "r" }, null, 65_536);
    expect(text).toMatch(/^[\x20-\x7e]*$/);
    expect(JSON.parse(text)).toMatchObject({ code: "SID_IN_USE", sid: "é\u{1f600}" });
    expect(Value.Check(ErrorMessage, JSON.parse(text))).toBe(true);
  });
});
