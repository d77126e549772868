import { asciiText, jsonBytes } from "@blindrelay/protocol/crypto";
import { describe, expect, it } from "vitest";
import { lenientJsonParse } from "../testing/lenient.ts";
import { Dispatcher, type Handler } from "./dispatch.ts";

class Bench {
  readonly failures: string[] = [];
  // biome-ignore lint/suspicious/noExplicitAny: tests look into whatever JSON came.
  readonly answers: any[] = [];
  readonly dispatcher: Dispatcher;

  constructor(handlers: { [method: string]: Handler } = {}, maxPlaintext = 47000) {
    this.dispatcher = new Dispatcher(maxPlaintext, (method, reason) =>
      this.failures.push(`${method}: ${reason}`),
    );
    for (const [method, handler] of Object.entries(handlers)) {
      this.dispatcher.handle(method, handler);
    }
  }

  bytes(plaintext: Uint8Array, sid = "s", ageMs = 0): void {
    this.dispatcher.receive(plaintext, sid, ageMs, (answer) =>
      this.answers.push(JSON.parse(asciiText(answer))),
    );
  }

  send(value: unknown, sid = "s"): void {
    this.bytes(jsonBytes(value), sid);
  }

  text(text: string, ageMs = 0): void {
    this.bytes(new TextEncoder().encode(text), "s", ageMs);
  }
}

const settled = () => new Promise((resolve) => setImmediate(resolve));

describe("input that is not JSON-RPC", () => {
  it.each([
    "",
    "nonsense",
    "1",
    "null",
    '"x"',
    "[]",
    '[{"jsonrpc":"2.0","id":1,"method":"m"}]',
    "{}",
    '{"id":1,"method":"m"}',
    '{"jsonrpc":"1.0","id":1,"method":"m"}',
    '{"jsonrpc":2,"id":1,"method":"m"}',
  ])("is counted and not answered: %s", (text) => {
    const bench = new Bench({ m: () => 1 });
    bench.text(text);
    expect(bench.answers).toEqual([]);
    expect(bench.dispatcher.counters).toMatchObject({ notRequests: 1, calls: 0 });
  });

  it("includes a value that only inherits its fields, if JSON.parse lets __proto__ through", () => {
    const bench = new Bench({ m: () => 1 });
    lenientJsonParse();
    bench.text('{"__proto__":{"jsonrpc":"2.0"},"id":1,"method":"m"}');
    bench.text('{"jsonrpc":"2.0","id":1,"__proto__":{"method":"m"}}');
    expect(bench.dispatcher.counters.calls).toBe(0);
  });

  it("includes a text that is not UTF-8", () => {
    const bench = new Bench({ m: () => 1 });
    bench.bytes(Uint8Array.of(...jsonBytes({ jsonrpc: "2.0", id: 1, method: "m" }), 0xff));
    expect(bench.answers).toEqual([]);
  });

  it("includes an answer to a call that nobody made", () => {
    const bench = new Bench();
    bench.send({ jsonrpc: "2.0", id: 1, result: null });
    bench.send({ jsonrpc: "2.0", id: null, error: { code: 1, message: "" } });
    expect(bench.answers).toEqual([]);
    expect(bench.dispatcher.counters).toMatchObject({ notRequests: 2, errors: 0 });
  });

  it("does not include a request that has a result, too", () => {
    const bench = new Bench({ m: () => 1 });
    bench.send({ jsonrpc: "2.0", id: 1, method: "m", result: null });
    expect(bench.answers).toEqual([{ jsonrpc: "2.0", id: 1, result: 1 }]);
  });
});

describe("an invalid request", () => {
  it.each([
    [{ id: 1 }, 1],
    [{ id: 1, method: 1 }, 1],
    [{ id: "a", method: null }, "a"],
    [{ id: 1, method: "m", params: "text" }, 1],
    [{ id: 1, method: "m", params: null }, 1],
    [{ id: {}, method: "m" }, null],
    [{ id: true, method: "m" }, null],
    [{ method: 1 }, null],
  ])("%j is answered -32600", (request, id) => {
    const bench = new Bench({ m: () => 1 });
    bench.send({ jsonrpc: "2.0", ...request });
    expect(bench.answers).toEqual([
      { jsonrpc: "2.0", id, error: { code: -32600, message: "invalid request" } },
    ]);
  });

  describe("a request", () => {
    it("gets its handler's result, with the id unchanged", () => {
      const bench = new Bench({ add: ([a, b]: number[]) => (a as number) + (b as number) });
      for (const id of [1, 0, -1.5, "a", "ü\n", "", null]) {
        bench.send({ jsonrpc: "2.0", id, method: "add", params: [2, 3] });
        expect(bench.answers.at(-1)).toEqual({ jsonrpc: "2.0", id, result: 5 });
      }
    });

    it.each([
      "1e999", // no JSON repeats it
      "9007199254740993", // read as another number, as nanoseconds since 1970 are
      "-9007199254740993",
    ])("does not run if its id, %s, cannot be repeated", (id) => {
      const bench = new Bench({
        m: () => {
          throw new Error("ran");
        },
      });
      bench.text(`{"jsonrpc":"2.0","id":${id},"method":"m"}`);
      expect(bench.answers).toEqual([
        { jsonrpc: "2.0", id: null, error: { code: -32600, message: "invalid request" } },
      ]);
    });

    it("is answered under its id, and no other, if it is too long", () => {
      const bench = new Bench({ m: () => 1 });
      const params = "x".repeat(50_000);
      for (const id of ["9007199254740991", "9007199254740993", "90071992547409910"])
        bench.text(`{"jsonrpc":"2.0","id":${id},"method":"m","params":["${params}"]}`);
      expect(bench.answers).toMatchObject([{ id: 9007199254740991, error: { code: -32000 } }]);
    });
  });
  it("gets null for undefined, synchronously or later", async () => {
    const bench = new Bench({ now: () => undefined, later: async () => {} });
    bench.send({ jsonrpc: "2.0", id: 1, method: "now" });
    bench.send({ jsonrpc: "2.0", id: 2, method: "later" });
    await settled();
    expect(bench.answers.map(({ result }) => result)).toEqual([null, null]);
  });

  it("gets -32601 for an unknown method", () => {
    const bench = new Bench();
    for (const method of ["none", "", "constructor", "__proto__"]) {
      bench.send({ jsonrpc: "2.0", id: 1, method });
      expect(bench.answers.at(-1).error.code).toBe(-32601);
    }
  });

  it("gets -32000 with the message of whatever was thrown", async () => {
    const thrown = [new Error("stuck"), "text", { message: "object" }, null, 7, new Error("")];
    const bench = new Bench({
      now: ([n]: number[]) => {
        throw thrown[n as number];
      },
      later: async ([n]: number[]) => {
        throw thrown[n as number];
      },
    });
    const expected = ["stuck", "text", "object", ...Array(3).fill("the handler failed")];
    for (const method of ["now", "later"]) {
      for (let n = 0; n < thrown.length; n++) {
        bench.send({ jsonrpc: "2.0", id: n, method, params: [n] });
        await settled();
        expect(bench.answers.at(-1).error).toEqual({ code: -32000, message: expected[n] });
      }
    }
    expect(bench.failures).toContain("later: stuck");
  });

  it("gets the code, message and data of a thrown error with a code of the program's own", async () => {
    const circle: { self?: object } = {};
    circle.self = circle;
    const thrown = [
      { code: 7, message: "dry", data: { level: 0 } },
      Object.assign(new Error("jam"), { code: -31999 }),
      { code: -32769, data: [1] },
      { code: 0, message: "zero", data: null },
      { code: 1, message: "circle", data: circle },
    ];
    const bench = new Bench({
      now: ([n]: number[]) => {
        throw thrown[n as number];
      },
      later: async ([n]: number[]) => {
        throw thrown[n as number];
      },
    });
    const expected = [
      { code: 7, message: "dry", data: { level: 0 } },
      { code: -31999, message: "jam" },
      { code: -32769, message: "the handler failed", data: [1] },
      { code: 0, message: "zero", data: null },
      { code: 1, message: "circle" },
    ];
    for (const method of ["now", "later"]) {
      for (let n = 0; n < thrown.length; n++) {
        bench.send({ jsonrpc: "2.0", id: n, method, params: [n] });
        await settled();
        expect(bench.answers.at(-1).error).toEqual(expected[n]);
      }
    }
  });

  it.each([-32768, -32000, -32600, 1.5, Number.NaN, 1e300, Infinity, "7", null])(
    "gets -32000 if the thrown code is %s",
    (code) => {
      const bench = new Bench({
        now: () => {
          throw { code, message: "m", data: 1 };
        },
      });
      bench.send({ jsonrpc: "2.0", id: 1, method: "now" });
      expect(bench.answers.at(-1).error).toEqual({ code: -32000, message: "m" });
    },
  );

  it("that is longer than the device has room for is refused unread, if its id can be found", () => {
    let ran = 0;
    const bench = new Bench({ m: () => ran++ }, 200);
    const params = ["x".repeat(200)];
    bench.send({ jsonrpc: "2.0", id: 7, method: "m", params });
    expect(bench.answers).toEqual([
      {
        jsonrpc: "2.0",
        id: 7,
        error: { code: -32000, message: expect.stringContaining("at most 200") },
      },
    ]);
    bench.send({ jsonrpc: "2.0", method: "m", params });
    bench.send({ jsonrpc: "2.0", id: "a", method: "m", params });
    bench.send({ jsonrpc: "2.0", id: "5,", method: "m", params });
    bench.send({ jsonrpc: "2.1", id: 7, method: "m", params });
    expect([bench.answers.length, ran]).toEqual([1, 0]);
    expect(bench.dispatcher.counters).toEqual({ calls: 0, notRequests: 4, errors: 1 });
    const call = { jsonrpc: "2.0", id: 7, method: "m", params: [""] };
    call.params = ["x".repeat(200 - JSON.stringify(call).length)];
    for (let n = 0; n < 2; n++) bench.send(call);
    expect([ran, bench.dispatcher.counters.calls]).toEqual([2, 2]);
  });

  it("gets the code without its data, then without its message, if they do not fit", () => {
    const bench = new Bench(
      {
        data: () => {
          throw { code: 7, message: "dry", data: "x".repeat(100) };
        },
        message: () => {
          throw { code: 7, message: "x".repeat(100), data: 1 };
        },
      },
      120,
    );
    bench.send({ jsonrpc: "2.0", id: 1, method: "data" });
    bench.send({ jsonrpc: "2.0", id: 2, method: "message" });
    expect(bench.answers.map(({ error }) => error)).toEqual([
      { code: 7, message: "dry" },
      { code: 7, message: "the handler failed" },
    ]);
  });

  it("gets the longest data, or else the longest message, that fits", () => {
    const thrown = { code: 7, message: "", data: "" };
    const bench = new Bench(
      {
        fail: () => {
          throw thrown;
        },
      },
      120,
    );
    const answer = (error: object): string => JSON.stringify({ jsonrpc: "2.0", id: 1, error });
    const told = (message: string, data: string) => {
      Object.assign(thrown, { message, data });
      bench.send({ jsonrpc: "2.0", id: 1, method: "fail" });
      return bench.answers.at(-1).error;
    };
    const data = "x".repeat(120 - answer({ code: 7, message: "m", data: "" }).length);
    expect(told("m", data)).toEqual({ code: 7, message: "m", data });
    expect(told("m", `${data}x`)).toEqual({ code: 7, message: "m" });
    const message = "x".repeat(120 - answer({ code: 7, message: "" }).length);
    expect(told(message, "x")).toEqual({ code: 7, message });
    expect(told(`${message}x`, "x")).toEqual({ code: 7, message: "the handler failed" });
  });

  it("gets -32000 if the result is too large or not JSON, but accepts the largest one", () => {
    const circle: { self?: object } = {};
    circle.self = circle;
    const results = [circle, () => {}, 1n, { level: Number.NaN }, "x".repeat(200)];
    const bench = new Bench({ get: ([n]: number[]) => results[n as number] }, 200);
    for (let n = 0; n < results.length; n++) {
      bench.send({ jsonrpc: "2.0", id: n, method: "get", params: [n] });
      expect(bench.answers.at(-1)).toMatchObject({ id: n, error: { code: -32000 } });
      expect([bench.answers.length, bench.failures.length]).toEqual([n + 1, n + 1]);
    }
    expect(bench.failures).toEqual([
      "get: the result is not a JSON value",
      "get: the result is not a JSON value",
      "get: the result is not a JSON value",
      "get: the result is not a JSON value at /level",
      "get: the result has 236 bytes, at most 200 fit",
    ]);
    results[0] = "x".repeat(200 - '{"jsonrpc":"2.0","id":0,"result":""}'.length);
    bench.send({ jsonrpc: "2.0", id: 0, method: "get", params: [0] });
    expect(bench.answers.at(-1)).toEqual({ jsonrpc: "2.0", id: 0, result: results[0] });
  });

  it("gets a short error if the long one does not fit, and none if its id does not", () => {
    const bench = new Bench(
      {
        fail: () => {
          throw new Error("x".repeat(200));
        },
      },
      120,
    );
    bench.send({ jsonrpc: "2.0", id: 1, method: "fail" });
    expect(bench.answers).toEqual([
      { jsonrpc: "2.0", id: 1, error: { code: -32000, message: "the handler failed" } },
    ]);
    bench.send({ jsonrpc: "2.0", id: 1, method: "x".repeat(60) });
    expect(bench.answers.slice(1)).toEqual([
      { jsonrpc: "2.0", id: 1, error: { code: -32601, message: "refused" } },
    ]);
    bench.send({ jsonrpc: "2.0", id: "y".repeat(70), method: "fail" });
    expect([bench.answers.length, bench.failures.length]).toEqual([2, 2]);
  });

  it("tells its handler the session and whether the caller waits", () => {
    const contexts: unknown[] = [];
    const bench = new Bench({ m: (_params, context) => contexts.push(context) });
    bench.send({ jsonrpc: "2.0", id: 1, method: "m" }, "one");
    bench.send({ jsonrpc: "2.0", method: "m" }, "two");
    expect(contexts).toEqual([
      { sid: "one", notification: false },
      { sid: "two", notification: true },
    ]);
  });
});

describe("a notification", () => {
  it("is never answered, whatever happens", async () => {
    const seen: unknown[] = [];
    const bench = new Bench({
      m: (params) => seen.push(params),
      fail: () => {
        throw new Error("stuck");
      },
      later: async () => {
        throw new Error("later");
      },
    });
    for (const method of ["m", "fail", "later", "none"]) {
      bench.send({ jsonrpc: "2.0", method, params: { a: 1 } });
    }
    await settled();
    expect(bench.answers).toEqual([]);
    expect(seen).toEqual([{ a: 1 }]);
    expect(bench.failures).toEqual(["fail: stuck", "later: later"]);
  });
});

describe("calls in flight", () => {
  it("are limited: one more is answered -32001 and not run", async () => {
    const finish: (() => void)[] = [];
    const bench = new Bench({ slow: () => new Promise<void>((resolve) => finish.push(resolve)) });
    for (let id = 0; id < 34; id++) bench.send({ jsonrpc: "2.0", id, method: "slow" });
    bench.send({ jsonrpc: "2.0", method: "slow" });
    expect(finish).toHaveLength(32);
    const error = { code: -32001, message: "too many calls are still running" };
    expect(bench.answers).toEqual([32, 33].map((id) => ({ jsonrpc: "2.0", id, error })));
    finish[0]?.();
    await settled();
    expect(bench.answers.at(-1)).toMatchObject({ id: 0, result: null });
    bench.send({ jsonrpc: "2.0", id: 40, method: "slow" });
    expect(finish).toHaveLength(33);
  });

  it("stay in flight when another one settles", async () => {
    const settle: (() => void)[] = [];
    const bench = new Bench({ slow: () => new Promise<void>((resolve) => settle.push(resolve)) });
    for (const sid of ["one", "two"]) bench.send({ jsonrpc: "2.0", id: sid, method: "slow" }, sid);
    settle[0]?.();
    await settled();
    expect(bench.dispatcher.inFlight()).toBe(1);
    bench.dispatcher.forget("two");
    settle[1]?.();
    await settled();
    expect(bench.answers.map(({ id }) => id)).toEqual(["one"]);
  });

  it("are dropped with their session", async () => {
    const finish: (() => void)[] = [];
    const bench = new Bench({ slow: () => new Promise<void>((resolve) => finish.push(resolve)) });
    bench.send({ jsonrpc: "2.0", id: 1, method: "slow" }, "one");
    bench.send({ jsonrpc: "2.0", id: 2, method: "slow" }, "two");
    bench.dispatcher.forget("one");
    expect(bench.dispatcher.inFlight()).toBe(1);
    for (const done of finish) done();
    await settled();
    expect(bench.answers.map(({ id }) => id)).toEqual([2]);
  });

  it("are answered once by a promise that settles twice or throws from then", () => {
    const twice = {
      // biome-ignore lint/suspicious/noThenProperty: a foreign promise is the point.
      then: (ok: (value: number) => void, fail: (reason: string) => void) => {
        ok(1);
        ok(2);
        fail("late");
        throw new Error("later still");
      },
    };
    const bench = new Bench({ twice: () => twice });
    bench.send({ jsonrpc: "2.0", id: 1, method: "twice" });
    expect(bench.answers).toEqual([{ jsonrpc: "2.0", id: 1, result: 1 }]);
    expect(bench.dispatcher.inFlight()).toBe(0);
  });
});

describe("registering", () => {
  it.each([
    ["system.ping", "reserved prefix"],
    ["system.x", "reserved prefix"],
    ["stream.data", "reserved prefix"],
    ["rpc.discover", "reserved prefix"],
    ["taken", "has a handler already"],
    ["", "needs a name"],
    [7, "needs a name"],
  ])("refuses the name %j", (name, reason) => {
    const bench = new Bench({ taken: () => 1 });
    expect(() => bench.dispatcher.handle(name as string, () => 1)).toThrow(reason);
  });

  it("refuses anything but a function", () => {
    expect(() => new Bench().dispatcher.handle("m", 1 as unknown as Handler)).toThrow("function");
  });
});

describe("on a fresh stack", () => {
  const bench = (handlers: { [method: string]: Handler }): Bench => {
    const made = new Bench(handlers);
    made.dispatcher.freshStack = true;
    return made;
  };

  it("handlers begin after receive has returned, and answer in order", async () => {
    const begun: unknown[] = [];
    const made = bench({ m: (params) => begun.push(params) });
    made.send({ jsonrpc: "2.0", id: 1, method: "m", params: { n: 1 } });
    made.send({ jsonrpc: "2.0", id: 2, method: "m", params: { n: 2 } });
    expect(begun).toEqual([]);
    await settled();
    expect(begun).toEqual([{ n: 1 }, { n: 2 }]);
    expect(made.answers.map(({ id }) => id)).toEqual([1, 2]);
  });

  it("what a handler throws is answered as usual", async () => {
    const made = bench({
      m: () => {
        throw new Error("no");
      },
    });
    made.send({ jsonrpc: "2.0", id: 1, method: "m" });
    await settled();
    expect(made.answers[0].error).toMatchObject({ code: -32000, message: "no" });
    expect(made.failures).toEqual(["m: no"]);
  });
});
