/**
 * Both ends of a session's streams, connected by a queue that the test empties: no network, no
 * time.
 */
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  fromBase64,
  type IncomingStream,
  type OutgoingStream,
  type StreamParams,
  StreamTable,
  toBase64,
} from "./streams.ts";

interface Notice {
  readonly method: string;
  readonly params: StreamParams;
}

class Pair {
  readonly wire: { to: StreamTable; notice: Notice }[] = [];
  readonly sender: StreamTable = this.end(() => this.receiver);
  readonly receiver: StreamTable = this.end(() => this.sender);
  readonly taken: number[] = [];
  outcome: string | null | undefined;
  arrival: string | null | undefined;
  carries = true;
  out!: OutgoingStream;
  in!: IncomingStream;

  open(id = 1): this {
    this.out = this.sender.outgoing(id, {
      writable: () => {},
      ended: (error) => {
        this.outcome = error;
      },
    });
    this.in = this.receiver.incoming(id, {
      data: (bytes) => this.taken.push(...bytes),
      ended: (error) => {
        this.arrival = error;
        this.in.confirm();
      },
    });
    return this;
  }

  run(): void {
    for (let next = this.wire.shift(); next !== undefined; next = this.wire.shift()) {
      next.to.receive(next.notice.method, JSON.parse(JSON.stringify(next.notice.params)));
    }
  }

  private end(other: () => StreamTable): StreamTable {
    return new StreamTable({
      maxChunk: 4,
      notify: (method, params) => {
        if (this.carries) this.wire.push({ to: other(), notice: { method, params } });
        return this.carries;
      },
    });
  }
}

describe("a stream", () => {
  it("arrives complete, in chunks, never beyond the credit, and both ends are told", () => {
    fc.assert(
      fc.property(
        fc.uint8Array({ maxLength: 60 }),
        fc.array(fc.integer({ min: 1, max: 9 }), { minLength: 1, maxLength: 20 }),
        (bytes, grants) => {
          const pair = new Pair().open();
          let at = 0;
          for (let i = 0; at < bytes.length; i++) {
            pair.in.grant(grants[i % grants.length] as number);
            pair.run();
            at += pair.out.write(bytes.subarray(at));
            pair.run();
            expect(pair.taken).toHaveLength(at);
          }
          pair.out.end();
          pair.run();
          expect([pair.taken, pair.outcome, pair.arrival]).toEqual([[...bytes], null, null]);
          expect([pair.sender.count(), pair.receiver.count()]).toEqual([0, 0]);
        },
      ),
    );
  });

  it("never stalls, and gets credit in steps of half the window, however little is taken", () => {
    const parts = fc.array(fc.integer({ min: 1, max: 70 }), { minLength: 1, maxLength: 20 });
    fc.assert(
      fc.property(
        fc.integer({ min: 0, max: 400 }),
        fc.integer({ min: 1, max: 64 }),
        parts,
        parts,
        (length, window, writes, takes) => {
          const pair = new Pair().open();
          const steps: number[] = [];
          pair.in.grant(window);
          pair.run();
          let [at, granted] = [0, 0];
          for (let i = 0; at < length || granted < pair.taken.length; i++) {
            const size = Math.min(writes[i % writes.length] as number, length - at);
            at += pair.out.write(new Uint8Array(size));
            pair.run();
            const part = Math.min(takes[i % takes.length] as number, pair.taken.length - granted);
            pair.in.grant(part);
            granted += part;
            for (const { notice } of pair.wire) steps.push(notice.params.bytes ?? 0);
            pair.run();
            expect(i).toBeLessThan(2 * 400 + 2);
          }
          pair.out.end();
          pair.run();
          expect([pair.taken.length, pair.outcome, pair.arrival]).toEqual([length, null, null]);
          for (const step of steps) expect(step * 2).toBeGreaterThanOrEqual(window);
        },
      ),
    );
  });

  it("sends nothing without credit", () => {
    const pair = new Pair().open();
    expect(pair.out.write(new Uint8Array(3))).toBe(0);
    expect(pair.wire).toEqual([]);
  });

  it("is an error at both ends if a packet is missing, whichever it was", () => {
    for (let lost = 0; lost < 4; lost++) {
      const pair = new Pair().open();
      pair.in.grant(100);
      pair.run();
      pair.out.write(new Uint8Array(12));
      pair.out.end();
      pair.wire.splice(lost, 1);
      pair.run();
      // A lost end is only detected by the session's gap or its end.
      if (lost === 3) pair.receiver.fail("packets were lost");
      pair.run();
      expect([typeof pair.outcome, typeof pair.arrival]).toEqual(["string", "string"]);
    }
  });

  it("ends with an error if the sender exceeds its credit", () => {
    const pair = new Pair().open();
    pair.in.grant(2);
    pair.run();
    pair.out.credit = 3;
    pair.out.write(new Uint8Array(3));
    pair.run();
    expect(pair.arrival).toContain("credit");
    expect(pair.outcome).toBe(pair.arrival);
    expect(pair.taken).toEqual([]);
  });

  it("charges received bytes against the credit", () => {
    const pair = new Pair().open();
    pair.in.grant(2);
    for (const data of ["AQ==", "AQ==", "AQ=="]) {
      pair.receiver.receive("stream.data", { stream: 1, data });
    }
    expect([pair.taken, pair.arrival]).toEqual([[1, 1], expect.stringContaining("credit")]);
  });

  it.each(["!!!!", "AAA", "AB==", "AA-A", 7, null])("ends with an error at data %j", (data) => {
    const pair = new Pair().open();
    pair.in.grant(100);
    pair.receiver.receive("stream.data", { stream: 1, data });
    expect(pair.arrival).toContain("base64");
  });

  it("tells the other side which side gave up and why", () => {
    const pair = new Pair().open();
    pair.in.abort("the port is gone");
    pair.run();
    expect(pair.outcome).toBe("the port is gone");
    const other = new Pair().open();
    other.out.abort("changed my mind");
    other.run();
    expect(other.arrival).toBe("changed my mind");
  });

  // As in a program in JavaScript: without a reason, an end says that all bytes were sent.
  it.each([undefined, null, "", new Error("full"), 7])(
    "is not complete when aborted with %j",
    (why) => {
      const pair = new Pair().open();
      pair.in.grant(100);
      pair.run();
      pair.out.write(new Uint8Array(3));
      pair.out.abort(why as string);
      pair.run();
      expect([pair.outcome, pair.arrival]).toEqual(Array(2).fill("no reason was given"));
      const other = new Pair().open();
      other.in.abort(why as string);
      other.run();
      expect([other.outcome, other.arrival]).toEqual(Array(2).fill("no reason was given"));
    },
  );

  it.each(["x", "é", "\0", "😀", '"'])(
    "tells of a long reason of %j what fits one packet",
    (of) => {
      const pair = new Pair().open();
      pair.in.abort(of.repeat(50_000));
      const { params } = (pair.wire[0] as { notice: Notice }).notice;
      const json = JSON.stringify(params.error).replace(/[^ -~]/g, "\\u0000");
      expect(json.length).toBeGreaterThan(150);
      expect(json.length).toBeLessThanOrEqual(240);
      pair.run();
      expect(pair.outcome).toBe(params.error);
    },
  );

  it("tells of a reason that just fits one packet whole", () => {
    const pair = new Pair().open();
    pair.in.abort("x".repeat(238));
    pair.run();
    expect(pair.outcome).toBe("x".repeat(238));
  });

  it("ends if the session cannot carry its end, or its credit", () => {
    for (const act of ["end", "grant"] as const) {
      const pair = new Pair().open();
      pair.carries = false;
      if (act === "end") pair.out.end();
      else pair.in.grant(5);
      const told = act === "end" ? pair.outcome : pair.arrival;
      expect(told).toBe("the session does not carry it any more");
    }
  });

  it("ends, once, if the session cannot carry it", () => {
    const pair = new Pair().open();
    pair.in.grant(100);
    pair.run();
    pair.carries = false;
    pair.out.write(new Uint8Array(10));
    expect(pair.outcome).toContain("session");
    pair.out.abort("again");
    expect(pair.outcome).toContain("session");
  });

  it("ignores a confirmation before its own end, and a wrong one after it", () => {
    const early = new Pair().open();
    early.sender.receive("stream.end", { stream: 1, bytes: 0 });
    expect(early.outcome).toContain("counted");
    const wrong = new Pair().open();
    wrong.out.end();
    wrong.sender.receive("stream.end", { stream: 1, bytes: 5 });
    expect(wrong.outcome).toContain("counted");
  });

  it.each([0, -1, 1.5, "1", null, 2 ** 31])("does not accept %j as a number", (id) => {
    expect(() => new Pair().sender.outgoing(id, { writable() {}, ended() {} })).toThrow("number");
  });

  it("has its own number", () => {
    const pair = new Pair().open(7);
    expect(() => pair.sender.incoming(7, { data() {}, ended() {} })).toThrow("in use");
  });

  it("ends with its session", () => {
    const pair = new Pair().open();
    pair.sender.fail("the session is over");
    expect(pair.outcome).toBe("the session is over");
    pair.run();
    expect(pair.arrival).toBe("the session is over");
  });
});

/** One end of a session; what it sends is kept, and the other end is played by the test. */
const lone = () => {
  const sent: unknown[] = [];
  const told: unknown[] = [];
  const table = new StreamTable({
    maxChunk: 4,
    notify: (method, params) => {
      sent.push([method, params]);
      return true;
    },
    drained: () => told.push("drained"),
  });
  const hear = (method: string, params: unknown): void => table.receive(method, params);
  const sending = (id = 1) =>
    table.outgoing(id, {
      writable: () => told.push("writable"),
      ended: (error) => told.push(`${id} ended: ${error}`),
    });
  const receiving = (id = 1) =>
    table.incoming(id, {
      data: (bytes) => told.push([...bytes]),
      ended: (error) => told.push(`${id} ended: ${error}`),
    });
  return { sent, told, table, hear, sending, receiving };
};

describe("a stream's sender", () => {
  it("is told of each credit until it ends, and sends its end once and nothing after it", () => {
    const { sent, told, hear, sending } = lone();
    const stream = sending();
    for (const bytes of [0, 3, 2]) hear("stream.credit", { stream: 1, bytes });
    expect(told).toEqual(["writable", "writable"]);
    expect(stream.write(new Uint8Array(2))).toBe(2);
    stream.end();
    stream.end();
    hear("stream.credit", { stream: 1, bytes: 9 });
    expect(stream.write(new Uint8Array(2))).toBe(0);
    expect(told).toHaveLength(2);
    expect(sent).toEqual([
      ["stream.data", { stream: 1, data: "AAA=" }],
      ["stream.end", { stream: 1, bytes: 2 }],
    ]);
    hear("stream.end", { stream: 1, bytes: 2 });
    stream.abort("too late");
    expect(told.slice(2)).toEqual(["1 ended: null", "drained"]);
    expect(sent).toHaveLength(2);
  });

  it.each([-1, 1.5, "5", null, 2 ** 53])("gives up at a credit of %j", (bytes) => {
    const { sent, told, hear, sending } = lone();
    sending();
    hear("stream.credit", { stream: 1, bytes });
    const error = "the receiver sent what a receiver does not send";
    expect(told).toEqual([`1 ended: ${error}`, "drained"]);
    expect(sent).toEqual([["stream.end", { stream: 1, bytes: 0, error }]]);
  });

  it("takes any credit that a double holds exactly", () => {
    const { told, hear, sending } = lone();
    const stream = sending();
    hear("stream.credit", { stream: 1, bytes: 2 ** 53 - 1 });
    expect([stream.credit, told]).toEqual([2 ** 53 - 1, ["writable"]]);
  });
});

describe("a stream's receiver", () => {
  it("grants only bytes, only until the stream is complete, and confirms that once", () => {
    const { sent, told, hear, receiving } = lone();
    const stream = receiving();
    for (const bytes of [0, -1, 7, 1]) stream.grant(bytes);
    stream.confirm();
    expect(sent).toEqual([
      ["stream.credit", { stream: 1, bytes: 7 }],
      ["stream.credit", { stream: 1, bytes: 1 }],
    ]);
    for (const data of ["AQID", "", "BAUG"]) hear("stream.data", { stream: 1, data });
    stream.grant(3);
    stream.grant(1);
    hear("stream.end", { stream: 1, bytes: 6 });
    stream.grant(9);
    expect(told).toEqual([[1, 2, 3], [4, 5, 6], "1 ended: null"]);
    stream.confirm();
    stream.confirm();
    stream.abort("too late");
    expect(sent.slice(2)).toEqual([
      ["stream.credit", { stream: 1, bytes: 4 }],
      ["stream.end", { stream: 1, bytes: 6 }],
    ]);
    expect(told.slice(3)).toEqual(["drained"]);
  });

  it.each([
    ["data after the end", "stream.data", { data: "AQ==" }, "sent what a sender does not send"],
    ["a second end", "stream.end", { bytes: 0 }, "counted other bytes than came"],
  ])("refuses %s, of which its owner need not know", (_, method, params, why) => {
    const { sent, told, hear, receiving } = lone();
    receiving();
    hear("stream.end", { stream: 1, bytes: 0 });
    hear(method, { stream: 1, ...params });
    expect(told).toEqual(["1 ended: null", "drained"]);
    expect(sent).toEqual([["stream.end", { stream: 1, bytes: 0, error: `the sender ${why}` }]]);
  });

  it.each([
    ["another count", { bytes: 1 }, "the sender counted other bytes than came"],
    ["a reason that is no text", { bytes: 0, error: 7 }, "the other side ended it"],
    ["an empty reason", { bytes: 0, error: "" }, "the other side ended it"],
    ["no reason", { bytes: 0, error: null }, null],
  ])("is told of an end with %s", (_, params, error) => {
    const { told, hear, receiving } = lone();
    receiving();
    hear("stream.end", { stream: 1, ...params });
    expect(told[0]).toBe(`1 ended: ${error}`);
  });
});

it("streams of one session end each for itself, and free their numbers", () => {
  const { sent, told, table, hear, sending, receiving } = lone();
  sending(2 ** 31 - 1);
  const second = receiving(2);
  second.grant(9);
  sending(3);
  hear("stream.data", { stream: 2, data: "AQ==" });
  for (const params of [null, 7, { stream: 4, error: "gone" }]) hear("stream.end", params);
  expect([table.count(), told]).toEqual([3, [[1]]]);
  hear("stream.end", { stream: 2, error: "gone" });
  expect([table.count(), told.slice(1)]).toEqual([2, ["2 ended: gone"]]);
  second.grant(9);
  second.abort("too late");
  expect(sent).toEqual([["stream.credit", { stream: 2, bytes: 9 }]]);
  receiving(2);
  table.fail("the session is over");
  expect(table.count()).toBe(0);
  expect(told.slice(2).filter((each) => each !== "drained")).toEqual([
    `${2 ** 31 - 1} ended: the session is over`,
    "3 ended: the session is over",
    "2 ended: the session is over",
  ]);
});

it("base64 is RFC 4648's, padded and canonical", () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 40 }), (bytes) => {
      expect(toBase64(bytes)).toBe(Buffer.from(bytes).toString("base64"));
      expect(fromBase64(toBase64(bytes))).toEqual(bytes);
    }),
  );
  for (const bad of [
    "=",
    "====",
    "A===",
    "A",
    "AA",
    "AA=A",
    "_-==",
    "-AAA",
    "_AAA",
    "AA_A",
    "AB==",
    "AAB=",
  ]) {
    expect(fromBase64(bad), bad).toBeNull();
  }
});
