/**
 * What a client sees of edge-cases.ts, as one table: the same question, and the same answer from
 * every runtime. `expected` depends on the runtime only by how much one plaintext may hold.
 */
import type { Agent, CallOptions } from "@blindrelay/client-sdk";
import { expect } from "vitest";

/** How a call ended: its result, or the error's description. */
type Seen = { readonly result: unknown } | { readonly error: unknown };

export interface Check {
  readonly what: string;
  see(agent: Agent, max: number): Promise<unknown>;
  expected(max: number): unknown;
  /** What Espruino itself cannot express: its strings are UTF-8 (docs/espruino.md). */
  readonly onEspruino?: unknown;
}

export const tell = async (
  agent: Agent,
  method: string,
  params?: unknown,
  options?: CallOptions,
): Promise<Seen> => {
  try {
    return { result: await agent.call(method, params, options) };
  } catch (error) {
    const { code, remote } = error as { code?: string; remote?: object };
    return { error: remote === undefined ? code : { ...remote } };
  }
};

const ask = (what: string, expected: Seen, method: string, params?: unknown): Check => ({
  what,
  see: (agent) => tell(agent, method, params),
  expected: () => expected,
});
const same = (what: string, params: unknown): Check =>
  ask(`${what}, both ways`, { result: params }, "same", params);
const failed = (message: string, code = -32000) => ({ error: { code, message } });

/**
 * An answer that just fits, and one a byte longer. The size of the surrounding JSON is learned from
 * a refusal and stays the same for the next calls, unless their ids get another digit: then it is
 * learned again.
 */
const fill = async (agent: Agent, max: number): Promise<unknown> => {
  const refusal = await tell(agent, "fill", { length: max * 2 });
  const bytes = Number(/has (\d+) bytes/.exec(JSON.stringify(refusal))?.[1]);
  const length = max - (bytes - max * 2);
  const fits = await tell(agent, "fill", { length });
  const over = await tell(agent, "fill", { length: length + 1 });
  const text = "result" in fits ? String(fits.result) : "";
  if (JSON.stringify(over).includes(`${max + 2} bytes`)) return fill(agent, max);
  return { fits: text === "x".repeat(length), over };
};

export const CHECKS: readonly Check[] = [
  ask("no params", { result: { params: "undefined", notification: false } }, "kind"),
  ask("params {}", { result: { params: "object", notification: false } }, "kind", {}),
  ask("params []", { result: { params: "array", notification: false } }, "kind", []),
  same("an object without members", {}),
  same("an array without items", []),
  same("every type of JSON value", { t: true, f: false, n: null, a: [[], {}, [[1]]], s: "" }),
  same("members named like built-ins", JSON.parse('{"constructor":1,"toString":2,"length":3}')),
  same("letters, Chinese, an astral character", { text: "grüße 中文 🚰", "schlüssel🚰": 1 }),
  same("escapes", { text: '"\\/\b\f\n\r\t\u0000\u001f\u007f\u0080\u2028\ufeff' }),
  {
    ...same("lone surrogates", ["\ud83d", "\udeb0", "\udeb0\ud83d", "a\ud83d"]),
    see: (agent) =>
      tell(agent, "same", ["\ud83d", "\udeb0", "\udeb0\ud83d", "a\ud83d"], { timeoutMs: 2000 }),
    // UTF-8 has no half pairs; an engine with Unicode strings refuses to read them.
    onEspruino: expect.toBeOneOf([
      { error: "TIMED_OUT" },
      { result: ["\ufffd", "\ufffd", "\ufffd\ufffd", "a\ufffd"] },
    ]),
  },
  same("whole numbers", [0, 1, -1, 2 ** 31, 2 ** 32, -(2 ** 53) + 1, 2 ** 53 - 1]),
  same("larger integers", [2 ** 53, 2 ** 63, 2 ** 64, 1e20, 1e21, 1e22]),
  same("fractions", [0.5, 0.1, 21.37, 0.1 + 0.2, 1 / 3, -273.15, 2.9999999999999996, 3.00000001]),
  same("numbers far from 1", [1e-7, 1.5e-10, 1e23, 1.5e300, 5e-324, 1.7976931348623157e308]),

  ask("null", { result: null }, "null"),
  ask("undefined", { result: null }, "undefined"),
  ask("false", { result: false }, "false"),
  ask("0", { result: 0 }, "zero"),
  ask("an empty text", { result: "" }, "empty"),
  ask("a function as result", failed("the result is not a JSON value"), "function"),
  ask("what JSON omits", { result: { c: null, d: [null] } }, "omitted"),
  ...["NaN", "infinity", "nothing", "a function"].map((name, which) =>
    ask(
      `${name}, which JSON would write as null`,
      failed("the result is not a JSON value at /readings/1/0"),
      "unsayable",
      { which },
    ),
  ),
  ask("a cycle as result", failed("the result is not a JSON value"), "circle"),
  ask("a date", { result: { at: "1970-01-02T00:00:00.000Z", half: 0.5 } }, "date"),
  ask(
    "computed numbers",
    { result: [1 / 7, 1 / 3, 2.9999999999999996, 1e21, 3 * 2 ** 40, 0] },
    "numbers",
    { three: 3 },
  ),
  ask("numbers in its source", { result: [0.3, -1.1, 2.718281828459045e5, 1e-7] }, "literals"),

  ask("an unknown method", failed('unknown method "nothing"', -32601), "nothing"),
  ask("an unknown method with a strange name", failed('unknown method "ü\\"🚰"', -32601), 'ü\\"🚰'),
  ask("an exception", failed("the pump is dry"), "throw"),
  ask("an exception without message", failed("the handler failed"), "throw.nothing"),
  ask("a text that was thrown", failed("a text"), "throw.text"),
  ask("null that was thrown", failed("the handler failed"), "throw.null"),
  ask(
    "a device behind it that is away",
    {
      error: { code: -32002, message: "the line is down", data: { retryable: true, sent: true } },
    },
    "throw.away",
  ),
  ...[7, -31999, 2 ** 53 - 1].map((code) =>
    ask(
      `the code ${code} that was thrown, with data`,
      { error: { code, message: "dry", data: { level: 0.5 } } },
      "throw.code",
      { code },
    ),
  ),
  ...[-32000, -32768, 1.5].map((code) =>
    ask(`the code ${code} that was thrown`, failed("dry"), "throw.code", { code }),
  ),
  {
    what: "an exception with a message that does not fit",
    see: (agent, max) => tell(agent, "throw.long", { length: max }),
    expected: () => failed("the handler failed"),
  },

  ask("a promise", { result: { late: true } }, "promise"),
  ask("a promise of undefined", { result: null }, "promise.undefined"),
  ask("a rejected promise", failed("not today"), "promise.rejected"),
  ask(
    "a promise rejected with undefined",
    failed("the handler failed"),
    "promise.rejected.nothing",
  ),
  ask("a promise resolved by a timer", { result: 5 }, "promise.timer"),
  {
    what: "a deadline",
    see: (agent) => tell(agent, "never", {}, { timeoutMs: 100 }),
    expected: () => ({ error: "TIMED_OUT" }),
  },
  {
    what: "a call after a deadline that passed",
    see: (agent) => tell(agent, "same", { again: true }),
    expected: () => ({ result: { again: true } }),
  },

  {
    what: "events in order, then the answer",
    async see(agent) {
      const heard: unknown[] = [];
      const off = agent.on("event", (event, data) => heard.push([event, data]));
      heard.push(await tell(agent, "emit", { times: 3 }));
      off();
      return heard;
    },
    expected: () => [
      ...[0, 1, 2].map((i) => ["counted", { i }]),
      ["bare", undefined],
      { result: { sent: true } },
    ],
  },
  {
    what: "an event that does not fit",
    see: (agent, max) => tell(agent, "emit.long", { length: max }),
    expected: (max) =>
      failed(
        `the event has ${max + '{"jsonrpc":"2.0","method":"long","params":{"x":""}}'.length} bytes, at most ${max} fit`,
      ),
  },
  {
    what: "five calls at once, each with its own answer",
    see: (agent) => Promise.all([0, 1, 2, 3, 4].map((i) => tell(agent, "same", { i }))),
    expected: () => [0, 1, 2, 3, 4].map((i) => ({ result: { i } })),
  },
  {
    what: "an answer that just fits, and one a byte longer",
    see: fill,
    expected: (max) => ({
      fits: true,
      over: failed(`the result has ${max + 1} bytes, at most ${max} fit`),
    }),
  },
  {
    what: "a call that just fits",
    see: (agent, max) => tell(agent, "kind", { x: "x".repeat(max - 90) }),
    expected: () => ({ result: { params: "object", notification: false } }),
  },
  ask("system.ping", { result: {} }, "system.ping"),
];

/** What only a board itself can report, and nothing else. */
export const INFO_FIELDS = [
  ...["name", "sdk_version", "runtime", "free_memory", "uptime_s", "methods", "max_plaintext"],
];
