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

it("base64 is RFC 4648's, padded and canonical", () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 40 }), (bytes) => {
      expect(toBase64(bytes)).toBe(Buffer.from(bytes).toString("base64"));
      expect(fromBase64(toBase64(bytes))).toEqual(bytes);
    }),
  );
  for (const bad of ["=", "====", "A===", "A", "AA", "AA=A", "_-==", "AB==", "AAB="]) {
    expect(fromBase64(bad), bad).toBeNull();
  }
});
