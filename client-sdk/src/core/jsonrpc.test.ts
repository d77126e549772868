import { asciiBytes } from "@blindrelay/protocol/crypto";
import { describe, expect, it } from "vitest";
import { encodeRequest, isTooLate, isUnavailable, readSaid, requestTail } from "./jsonrpc.ts";

const read = (message: object) =>
  readSaid(asciiBytes(JSON.stringify({ jsonrpc: "2.0", ...message })));

const outcomeOf = (message: object) => {
  const said = read({ id: 3, ...message });
  return said.kind === "answer" ? said.outcome : null;
};

const errorOf = (error: unknown) => {
  const outcome = outcomeOf({ error });
  return outcome === null || outcome.ok ? null : outcome.error;
};

describe("a request", () => {
  it.each([
    [undefined, '{"jsonrpc":"2.0","id":7,"method":"led.set"}'],
    [{ on: true }, '{"jsonrpc":"2.0","id":7,"method":"led.set","params":{"on":true}}'],
    [[], '{"jsonrpc":"2.0","id":7,"method":"led.set","params":[]}'],
    [{ toJSON: () => [1] }, '{"jsonrpc":"2.0","id":7,"method":"led.set","params":[1]}'],
  ])("with the params %j is %s", (params, text) => {
    const built = requestTail("led.set", params);
    expect(built.ok && encodeRequest(7, built.tail, null)).toEqual(asciiBytes(text));
  });

  it("says when it expires, where it does", () => {
    const text = '{"jsonrpc":"2.0","id":7,"expires":1500,"method":"led.set"}';
    const built = requestTail("led.set", undefined);
    expect(built.ok && encodeRequest(7, built.tail, 1_500)).toEqual(asciiBytes(text));
  });

  it.each([
    ["", {}, "the method must be a non-empty string"],
    [5, {}, "the method must be a non-empty string"],
    ["led.set", 5, "params must be an object, an array, or absent (JSON-RPC 2.0)"],
    ["led.set", null, "params must be an object, an array, or absent (JSON-RPC 2.0)"],
    ["led.set", { toJSON: () => 5 }, "params must be an object or array in JSON too"],
    ["led.set", { toJSON: () => undefined }, "params must be an object or array in JSON too"],
  ])("of %j with %j is refused: %s", (method, params, error) => {
    expect(requestTail(method, params)).toEqual({ ok: false, error });
  });
});

describe("what an agent says", () => {
  it("is an event if it has a method and no id", () => {
    expect(read({ method: "level", params: [1] })).toEqual({
      kind: "event",
      event: "level",
      data: [1],
    });
  });

  it("is an answer if it has an id that is a number", () => {
    const outcome = { ok: true, result: null };
    expect(read({ id: 3, result: null })).toEqual({ kind: "answer", id: 3, outcome });
    expect(read({ id: 3, result: null, error: null })).toMatchObject({ outcome });
  });

  it.each([
    ["nonsense"],
    ["5"],
    ['[{"jsonrpc":"2.0","id":3,"result":1}]'],
    ['{"id":3,"result":1}'],
    ['{"jsonrpc":"1.0","id":3,"result":1}'],
    ['{"jsonrpc":"2.0","id":3,"method":"level"}'],
    ['{"jsonrpc":"2.0","id":"3","result":1}'],
    ['{"jsonrpc":"2.0","result":1}'],
  ])("is neither if it is %s", (text) => {
    expect(readSaid(asciiBytes(text))).toEqual({ kind: "unreadable" });
  });

  it("is not read if it is no UTF-8", () => {
    expect(readSaid(Uint8Array.of(0xff, 0x30))).toEqual({ kind: "unreadable" });
  });

  it("has up to 500 levels", () => {
    const nested = (levels: number) => JSON.parse("[".repeat(levels) + "]".repeat(levels));
    expect(outcomeOf({ result: nested(499) })?.ok).toBe(true);
    const reason = "more than 500 levels, one in another";
    expect(outcomeOf({ result: nested(500) })).toMatchObject({
      ok: false,
      error: { code: "BAD_ANSWER", message: `the call ran, but its result has ${reason}` },
    });
    expect(read({ method: "level", params: nested(500) })).toEqual({
      kind: "lost event",
      why: reason,
    });
  });

  it("is quoted by the first 40 characters of a number that it has", () => {
    const text = `{"jsonrpc":"2.0","method":"card","params":[${"9".repeat(60)}]}`;
    expect(readSaid(asciiBytes(text))).toMatchObject({
      why: expect.stringContaining(`the number ${"9".repeat(40)}, which`),
    });
  });
});

describe("an error of an agent", () => {
  it("has a code and a message, and data if there are any", () => {
    expect(errorOf({ code: 7, message: "stuck" })).toMatchObject({
      code: "REMOTE",
      message: "the agent answered with error 7: stuck",
      retryable: false,
    });
    expect(errorOf({ code: 7, message: "stuck" })?.remote).toEqual({ code: 7, message: "stuck" });
    expect(errorOf({ code: 7, message: "stuck", data: null })?.remote).toHaveProperty("data", null);
  });

  it.each([
    [{ error: "stuck" }],
    [{ error: { code: "7", message: "stuck" } }],
    [{ error: { code: 7 } }],
    [{ error: { code: 7, message: 8 } }],
    [{ result: 1, error: { code: 7, message: "stuck" } }],
    [{ error: null }],
    [{}],
  ])("is a bad answer if it is %j", (message) => {
    expect(outcomeOf(message)).toMatchObject({
      ok: false,
      error: { code: "BAD_ANSWER", message: "the agent's answer is not a JSON-RPC response" },
    });
  });

  it.each<[number, unknown, boolean, boolean]>([
    [-32002, { retryable: true, sent: false }, true, true],
    [-32002, { retryable: true, sent: true }, false, true],
    [-32002, { retryable: true }, false, true],
    [-32002, { retryable: false, sent: false }, false, false],
    [-32002, { sent: false }, false, false],
    [-32002, null, false, false],
    [-32000, { retryable: true, sent: false }, false, false],
  ])("%i with %j may be retried: %s, and %s if it may run twice", (code, data, once, twice) => {
    const error = errorOf({ code, message: "no answer", data });
    expect(error?.retryable).toBe(once);
    expect(isUnavailable({ code, message: "no answer", data }, true)).toBe(twice);
  });

  it("that a call came too late is told apart", () => {
    const late = outcomeOf({ error: { code: -32003, message: "too late" } });
    const other = outcomeOf({ error: { code: -32002, message: "no answer" } });
    const none = outcomeOf({ result: 1 });
    expect([late, other, none].map((outcome) => outcome && isTooLate(outcome))).toEqual([
      true,
      false,
      false,
    ]);
  });
});
