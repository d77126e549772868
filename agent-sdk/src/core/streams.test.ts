/**
 * Streams of a whole agent core with a real session; the client's end is the same table, operated
 * by the test.
 */
import { type IncomingStream, type StreamParams, StreamTable } from "@blindrelay/protocol/streams";
import { describe, expect, it } from "vitest";
import { Client, World } from "../testing/world.ts";
import { Streams } from "./streams.ts";

interface Opened {
  readonly world: World;
  readonly client: Client;
  readonly streams: Streams;
  /** The client's end. */
  readonly table: StreamTable;
  /** Handles what the agent sent since the last time. */
  pump(): void;
}

const open = (world = new World().online()): Opened => {
  const streams = new Streams(world.core.agent);
  const client = new Client(world).open();
  const table = new StreamTable({
    maxChunk: 1000,
    notify: (method: string, params: StreamParams) => {
      client.sendJson({ jsonrpc: "2.0", method, params });
      return true;
    },
  });
  let seen = 0;
  const pump = () => {
    for (; seen < client.inbox.length; seen++) {
      const { method, params } = client.inbox[seen];
      if (typeof method === "string") table.receive(method, params);
    }
  };
  return { world, client, streams, table, pump };
};

const outgoing = ({ world, streams }: Opened) => {
  const seen = { writable: 0, ended: undefined as string | null | undefined };
  let stream!: ReturnType<Streams["outgoing"]>;
  world.core.agent.handle("log.read", (params, context) => {
    stream = streams.outgoing(context.sid, params.stream, {
      writable: () => seen.writable++,
      ended: (error) => {
        seen.ended = error;
      },
    });
    return {};
  });
  return { seen, stream: () => stream };
};

describe("a stream of an agent", () => {
  it("carries bytes to the client as far as it granted, and ends with its confirmation", () => {
    const opened = open();
    const { seen, stream } = outgoing(opened);
    const taken: number[] = [];
    const incoming = opened.table.incoming(3, {
      data: (bytes) => taken.push(...bytes),
      ended: () => incoming.confirm(),
    });
    expect(opened.client.call("log.read", { stream: 3 }).result).toEqual({});
    expect(stream().write(new Uint8Array([1, 2, 3]))).toBe(0);
    incoming.grant(2);
    expect(seen.writable).toBe(1);
    expect(stream().write(new Uint8Array([1, 2, 3]))).toBe(2);
    opened.client.pump();
    opened.pump();
    expect(taken).toEqual([1, 2]);
    stream().end();
    opened.client.pump();
    opened.pump();
    expect(seen.ended).toBeNull();
  });

  it("carries bytes from the client", () => {
    const opened = open();
    const taken: number[] = [];
    let ended: string | null | undefined;
    opened.world.core.agent.handle("log.write", (params, context) => {
      const stream = opened.streams.incoming(context.sid, params.stream, {
        data: (bytes) => taken.push(...bytes),
        ended: (error) => {
          ended = error;
          stream.confirm();
        },
      });
      stream.grant(10);
      return {};
    });
    let confirmed: string | null | undefined;
    const stream = opened.table.outgoing(1, {
      writable: () => undefined,
      ended: (error) => {
        confirmed = error;
      },
    });
    opened.client.call("log.write", { stream: 1 });
    opened.pump();
    stream.write(new Uint8Array([7, 8, 9]));
    stream.end();
    opened.client.pump();
    opened.pump();
    expect([taken, ended, confirmed]).toEqual([[7, 8, 9], null, null]);
  });

  it("shares its session with others, each with its own number, bytes and end", () => {
    const opened = open();
    const { client, table } = opened;
    opened.world.core.agent.handle("log.read", (params, { sid }) => {
      const stream = opened.streams.outgoing(sid, params.stream, {
        writable: () => stream.write(new Uint8Array([params.stream])),
        ended() {},
      });
      return {};
    });
    const heard: unknown[] = [];
    const streams = [1, 2].map((id) => {
      client.call("log.read", { stream: id });
      return table.incoming(id, {
        data: (bytes) => heard.push([id, ...bytes]),
        ended: (error) => heard.push([id, error]),
      });
    });
    expect(client.call("log.read", { stream: 2 }).error.message).toBe("stream 2 is in use");
    for (const stream of streams) stream.grant(1);
    client.pump();
    opened.pump();
    streams[0]?.abort("enough");
    streams[1]?.grant(1);
    client.pump();
    opened.pump();
    expect(heard).toEqual([
      [1, 1],
      [2, 2],
      [1, "enough"],
      [2, 2],
    ]);
  });

  it.each([
    ["a small board", 384, 216, 384],
    ["any other device", 47_000, 12_288, 17_000],
  ])("fills its notifications on %s, and none is too large", (_of, maxPlaintext, bytes, most) => {
    const opened = open(new World({ core: { maxPlaintext } }).online());
    const { stream } = outgoing(opened);
    const id = 2 ** 31 - 1;
    const incoming = opened.table.incoming(id, { data() {}, ended() {} });
    opened.client.call("log.read", { stream: id });
    incoming.grant(30_000);
    stream().write(new Uint8Array(30_000));
    opened.client.pump();
    const sent = opened.client.inbox.filter(({ method }) => method === "stream.data");
    expect(Buffer.from(sent[0].params.data, "base64")).toHaveLength(bytes);
    for (const each of sent) expect(JSON.stringify(each).length).toBeLessThanOrEqual(most);
  });

  it("is over for what comes late, which no line of the log says", () => {
    const { client, world } = open();
    client.sendJson({ jsonrpc: "2.0", method: "stream.credit", params: { stream: 1, bytes: 1 } });
    expect(world.logs.filter((line) => line.startsWith("warn"))).toEqual([]);
  });

  it("is refused with an invalid number", () => {
    const opened = open();
    outgoing(opened);
    expect(opened.client.call("log.read", { stream: "x" }).error.code).toBe(-32000);
  });

  it("ends with an error if a packet of its session is missing", () => {
    const opened = open();
    const { seen } = outgoing(opened);
    opened.client.call("log.read", { stream: 1 });
    opened.client.session.seal(new Uint8Array([123, 125]));
    opened.client.call("system.ping");
    expect(seen.ended).toContain("lost");
  });

  it.each([false, true])("ends with its session (without a link for good: %s)", (isOver) => {
    const opened = open();
    const { seen } = outgoing(opened);
    opened.client.call("log.read", { stream: 1 });
    if (isOver) opened.world.core.link.stop();
    opened.world.timer.advance(121_000);
    expect(seen.ended).toContain("session");
  });

  it("ends with the agent", () => {
    const opened = open();
    const { seen } = outgoing(opened);
    opened.client.call("log.read", { stream: 1 });
    opened.world.core.stop();
    expect(seen.ended).toContain("stopped");
  });

  it.each(["its session", "its client", "the agent"])(
    "that ends with %s ends so if a listener to it throws, which is logged",
    (end) => {
      const { world, client, streams } = open();
      const ended: number[] = [];
      world.core.agent.handle("log.read", ({ stream }, { sid }) => {
        streams.outgoing(sid, stream, {
          writable: () => undefined,
          ended: () => {
            ended.push(stream);
            throw new Error(`${stream} is cut`);
          },
        });
        return {};
      });
      client.call("log.read", { stream: 1 });
      client.call("log.read", { stream: 2 });
      if (end === "the agent") world.core.stop();
      else if (end === "its session") world.timer.advance(121_000);
      else client.sendJson({ jsonrpc: "2.0", method: "system.close" });
      expect(ended).toEqual([1, 2]);
      const failures = world.logs.filter((line) => line.startsWith("error"));
      expect(failures).toEqual(Array(2).fill("error: a listener to the end of a stream failed"));
      expect(world.logFields).toContainEqual({ reason: "2 is cut" });
      expect(world.core.sessions.held()).toEqual([]);
      if (end === "the agent") expect(world.core.link.state).toBe("stopped");
      else expect(world.timer.nextAt(), "it keeps an eye on its link").not.toBeNull();
    },
  );

  it.each(["data", "ended"])(
    "is not confirmed to the client if the program's `%s` throws",
    (which) => {
      const opened = open();
      const ended: (string | null)[] = [];
      opened.world.core.agent.handle("log.write", (params, { sid }) => {
        const stream = opened.streams.incoming(sid, params.stream, {
          data: () => {
            if (which === "data") throw new Error("the disk is full");
          },
          ended: (error) => {
            ended.push(error);
            if (which === "ended") throw new Error("the disk is full");
            stream.confirm();
          },
        });
        stream.grant(10);
        return {};
      });
      let outcome: string | null | undefined;
      const stream = opened.table.outgoing(1, {
        writable: () => undefined,
        ended: (error) => {
          outcome = error;
        },
      });
      opened.client.call("log.write", { stream: 1 });
      opened.pump();
      stream.write(new Uint8Array([7]));
      stream.end();
      opened.client.pump();
      opened.pump();
      expect(outcome).toBe("the disk is full");
      expect(ended).toEqual([which === "data" ? "the disk is full" : null]);
      expect(opened.world.logs.filter((line) => line.startsWith("error"))).toHaveLength(
        which === "data" ? 0 : 1,
      );
    },
  );

  it("ends with an error if the program's `writable` throws", () => {
    const opened = open();
    let outcome: string | null | undefined;
    opened.world.core.agent.handle("log.read", (params, { sid }) => {
      opened.streams.outgoing(sid, params.stream, {
        writable: () => {
          throw new Error("no such file");
        },
        ended: () => undefined,
      });
      return {};
    });
    const stream = opened.table.incoming(1, {
      data: () => undefined,
      ended: (error) => {
        outcome = error;
      },
    });
    opened.client.call("log.read", { stream: 1 });
    stream.grant(10);
    opened.client.pump();
    opened.pump();
    expect(outcome).toBe("no such file");
  });

  it("ends with an error while the link is down, which the client is told afterwards", () => {
    const opened = open();
    const { seen, stream } = outgoing(opened);
    let told: string | null | undefined;
    const incoming = opened.table.incoming(1, {
      data() {},
      ended: (error) => {
        told = error;
      },
    });
    opened.client.call("log.read", { stream: 1 });
    incoming.grant(10);
    opened.world.link().end.close(1006, "");
    opened.world.settle();
    stream().write(new Uint8Array(5));
    expect(seen.ended).toContain("does not carry");
    opened.world.untilConnected();
    opened.world.accept();
    opened.world.timer.advance(1000);
    opened.client.pump();
    opened.pump();
    expect(told).toBe("the session did not carry it");
    expect(opened.client.inbox.at(-1).params).toMatchObject({ stream: 1, bytes: 0 });
  });

  it("that was given up while the link was down ends at the client with the reason and count", () => {
    const opened = open();
    const { stream } = outgoing(opened);
    const incoming = opened.table.incoming(1, { data() {}, ended() {} });
    opened.client.call("log.read", { stream: 1 });
    incoming.grant(10);
    stream().write(new Uint8Array(3));
    opened.world.link().end.close(1006, "");
    opened.world.settle();
    stream().abort("jam");
    opened.world.untilConnected();
    opened.world.accept();
    opened.world.timer.advance(1000);
    opened.client.pump();
    expect(opened.client.inbox.at(-1)).toMatchObject({
      method: "stream.end",
      params: { stream: 1, bytes: 3, error: "jam" },
    });
  });

  it("that was committed while the link was down is confirmed afterwards", () => {
    const opened = open();
    let taken: IncomingStream | undefined;
    opened.world.core.agent.handle("log.write", (params, { sid }) => {
      taken = opened.streams.incoming(sid, params.stream, { data() {}, ended() {} });
      taken.grant(10);
      return {};
    });
    let told: string | null | undefined;
    const stream = opened.table.outgoing(1, {
      writable() {},
      ended: (error) => {
        told = error;
      },
    });
    opened.client.call("log.write", { stream: 1 });
    opened.pump();
    stream.write(new Uint8Array(3));
    stream.end();
    opened.world.link().end.close(1006, "");
    opened.world.settle();
    taken?.confirm();
    opened.world.untilConnected();
    opened.world.accept();
    opened.world.timer.advance(1000);
    opened.client.pump();
    opened.pump();
    expect(told).toBeNull();
  });

  it("that nobody can be told the end of any more costs no further timer", () => {
    const opened = open();
    const { stream } = outgoing(opened);
    opened.client.call("log.read", { stream: 1 });
    opened.world.link().end.close(1006, "");
    opened.world.settle();
    stream().abort("jam");
    opened.world.timer.advance(121_000);
    opened.world.core.link.stop();
    opened.world.timer.advance(600_000);
    expect(opened.world.timer.nextAt()).toBeNull();
  });

  it("ends alone where a packet of its session is missing, and with all others by `fail`", () => {
    const opened = open();
    const { seen } = outgoing(opened);
    const other = new Client(opened.world).open();
    opened.client.call("log.read", { stream: 1 });
    other.session.seal(new Uint8Array([123, 125]));
    other.call("system.ping");
    expect(seen.ended).toBeUndefined();
    opened.streams.fail("the port is gone");
    expect(seen.ended).toBe("the port is gone");
  });

  it("is received even while the maximum of calls is running", () => {
    const opened = open();
    const { seen } = outgoing(opened);
    opened.world.core.agent.handle("never", () => new Promise(() => {}));
    const incoming = opened.table.incoming(1, { data() {}, ended() {} });
    opened.client.call("log.read", { stream: 1 });
    for (let i = 0; i < 40; i++) opened.client.call("never");
    incoming.grant(10);
    expect(seen.writable).toBe(1);
  });
});

it("an unavailable device is distinguished from a failure", () => {
  const { world, client } = open();
  world.core.agent.handle("move", () => {
    throw Object.assign(new Error("the port is gone"), { unavailable: true, sent: true });
  });
  expect(client.call("move").error).toEqual({
    code: -32002,
    message: "the port is gone",
    data: { retryable: true, sent: true },
  });
});
