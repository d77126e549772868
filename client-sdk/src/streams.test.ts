/** Streams over an in-memory relay: the agent's end is protocol's table over a real session. */
import { describe, expect, it, vi } from "vitest";
import { CallError } from "./errors.ts";
import type { ReadStream } from "./read-stream.ts";
import { collect, house, seqBytes, settle } from "./testing/streams.ts";
import type { WriteStream } from "./write-stream.ts";

describe("a session's streams", () => {
  it("tell its notifications to each who listens, until that one leaves", async () => {
    const { world, agent, pump } = await house();
    let session = "";
    agent.handlers.set("port.open", ({ sid, answer }) => {
      session = sid;
      answer(null);
    });
    const heard: string[] = [];
    const leave: (() => void)[] = [];
    for (const name of ["first", "second"]) {
      const opened = pump.callWithStreams("port.open", {}, (streams) => {
        leave.push(streams.onNotice((event) => heard.push(`${name} ${event}`)));
      });
      await settle(world, opened);
    }
    agent.say(session, { method: "port.lost", params: {} });
    await world.run(1_000);
    expect(heard).toEqual(["first port.lost", "second port.lost"]);
    leave[0]?.();
    agent.say(session, { method: "port.found", params: {} });
    await world.run(1_000);
    expect(heard.slice(2)).toEqual(["second port.found"]);
  });

  it("each end with it, and so do its calls, though a listener to them throws, which is reported", async () => {
    const { world, agent, pump } = await house();
    const shown = vi.spyOn(console, "error").mockImplementation(() => undefined);
    let session = "";
    agent.handlers.set("port.open", ({ sid, answer }) => {
      session = sid;
      answer(null);
    });
    agent.handlers.set("port.wait", () => undefined);
    const ended: string[] = [];
    const ends = (name: string) => () => {
      ended.push(name);
      throw new Error(`${name} is cut`);
    };
    const opened = pump.callWithStreams("port.open", {}, (streams) => {
      streams.incoming(pump.streamNumber(), { data: () => undefined, ended: ends("in") });
      streams.outgoing(pump.streamNumber(), { writable: () => undefined, ended: ends("out") });
    });
    await settle(world, opened);
    const call = settle(world, pump.call("port.wait"), 2_000);
    await world.run(1_000);
    agent.say(session, { method: "system.close" });
    expect(await call).toMatchObject({ code: "OUTCOME_UNKNOWN" });
    expect(ended).toEqual(["in", "out"]);
    expect(shown.mock.calls.map(([text]) => text)).toEqual([
      "blindrelay: a listener threw",
      "blindrelay: a listener threw",
    ]);
    shown.mockRestore();
  });
});

it("what a program throws from a stream's callbacks is reported, and ends nothing else", async () => {
  const { world, agent, client, pump } = await house(seqBytes(100));
  const log = vi.spyOn(console, "error").mockImplementation(() => undefined);
  agent.handlers.set("never", () => undefined);
  const mine = (): never => {
    throw new Error("mine");
  };
  const told: unknown[] = [];
  const [a, b] = [pump.streamNumber(), pump.streamNumber()];
  const opened = pump.callWithStreams("log.read", { stream: a }, (session) => {
    session.onNotice(mine);
    session.onNotice((event) => told.push(event));
    session.incoming(a, { data: mine, ended: mine }).grant(1000);
  });
  await settle(world, opened, 100);
  const written = pump.callWithStreams("log.write", { stream: b }, (session) => {
    session.outgoing(b, { writable: mine, ended: mine });
  });
  await settle(world, written, 100);
  agent.emit("level", 1);
  const writer = (await settle(world, pump.writeStream("log.write"), 100)) as WriteStream;
  writer.onBroken(mine);
  const call = world.follow(pump.call("never"));
  await world.run(100);
  expect(told).toEqual(["level"]);
  client.close();
  await world.run(0);
  expect([call.times, log.mock.calls.length]).toEqual([1, 6]);
  log.mockRestore();
});

it("a stream is given up for any reason, also a long one or an error", async () => {
  const { world, pump, state } = await house();
  const reader = (await settle(world, pump.readStream("log.read"), 100)) as ReadStream;
  reader.cancel("\u{1f6b0}".repeat(20_000));
  const writer = (await settle(world, pump.writeStream("log.write"), 100)) as WriteStream;
  writer.abort(new RangeError("mine") as unknown as string);
  await world.run(100);
  const [first, second] = state.ended;
  expect([first?.slice(0, 4), second]).toEqual(["\u{1f6b0}\u{1f6b0}", "RangeError: mine"]);
  expect(await settle(world, writer.end(), 100)).toMatchObject({ code: "OUTCOME_UNKNOWN" });
});

describe("a reader", () => {
  it("gets every byte, through a window far smaller than the stream, and confirms", async () => {
    const content = seqBytes(100_000);
    const { world, pump, state } = await house(content);
    const all = pump.readStream("log.read", {}, { windowBytes: 5_000 }).then(collect);
    expect(await settle(world, all)).toEqual([...content]);
    expect(state.ended).toEqual([null]);
  });

  it("receives the answer of the opening call", async () => {
    const { world, pump } = await house();
    const reader = (await settle(world, pump.readStream("log.read"))) as ReadStream;
    expect(reader.result).toEqual({ size: 100_000 });
  });

  it("that does not read buffers no more than its window", async () => {
    const { world, pump, state } = await house();
    await settle(world, pump.readStream("log.read", {}, { windowBytes: 30_000 }));
    expect(state.ended).toEqual([]);
    const stream = (state.table as unknown as { streams: { sent: number }[] }).streams[0];
    expect(stream?.sent).toBe(30_000);
  });

  it("keeps none of the empty pieces that an agent may send without credit", async () => {
    const { world, agent, pump } = await house();
    agent.handlers.set("log.read", ({ params, sid, answer }) => {
      answer(null);
      const { stream } = params as { stream: number };
      const say = (what: string, more: object) =>
        agent.say(sid, { method: `stream.${what}`, params: { stream, ...more } });
      for (let n = 0; n < 50; n++) say("data", { data: "" });
      say("data", { data: "eA==" });
      say("end", { bytes: 1 });
    });
    const lengths = pump.readStream("log.read").then(async (reader) => {
      const all: number[] = [];
      for await (const chunk of reader) all.push(chunk.length);
      return all;
    });
    expect(await settle(world, lengths)).toEqual([1]);
  });

  it("answers each of several reads that wait at once, in their order", async () => {
    const { world, pump, state } = await house(seqBytes(3));
    state.everyMs = 70_000;
    const reader = (await settle(world, pump.readStream("log.read"))) as ReadStream;
    const got: number[][] = [];
    for (let n = 0; n < 3; n++) void reader.read().then((bytes) => got.push([...(bytes ?? [])]));
    await world.run(200_000);
    expect(got).toEqual([[0], [7], [14]]);
  });

  it("that leaves also ends the stream at the agent", async () => {
    const { world, pump, state } = await house();
    const first = pump.readStream("log.read", {}, { windowBytes: 5_000 }).then(async (reader) => {
      for await (const chunk of reader) return chunk.length;
    });
    await settle(world, first);
    expect(state.ended).toEqual(["the reader left"]);
  });

  it("fails, with what it received, if a packet is lost", async () => {
    const { world, pump, relay } = await house();
    let packets = 0;
    relay.toClient = () => (++packets === 9 ? null : 5);
    const failure = await settle(world, pump.readStream("log.read").then(collect));
    expect(failure).toBeInstanceOf(CallError);
    expect(failure).toMatchObject({ code: "OUTCOME_UNKNOWN" });
    expect((failure as CallError).message).toMatch(/broke after \d+ bytes: packets were lost/);
  });

  it("fails if only the last packet is lost, once a ping shows this", async () => {
    const { world, pump, relay } = await house(seqBytes(10));
    let packets = 0;
    // Answers to the opening, the ping and the call, then data and end.
    relay.toClient = () => (++packets === 5 ? null : 5);
    const failure = await settle(world, pump.readStream("log.read").then(collect), 120_000);
    expect(failure).toMatchObject({ code: "OUTCOME_UNKNOWN" });
  });

  it("fails with the call that opens it", async () => {
    const { world, pump } = await house();
    const failure = await settle(world, pump.readStream("no.such"));
    expect(failure).toMatchObject({ code: "REMOTE", remote: { code: -32601 } });
  });
});

describe("a writer", () => {
  it("refuses what is not bytes, and goes on", async () => {
    const { world, pump, kept } = await house();
    const writer = (await settle(world, pump.writeStream("log.write"), 1_000)) as WriteStream;
    const wrong = "text" as unknown as Uint8Array;
    expect(await settle(world, writer.write(wrong), 10)).toMatchObject({ code: "BAD_ARGUMENT" });
    await settle(world, writer.write(seqBytes(3)), 100);
    expect(await settle(world, writer.end(), 1_000)).toBeUndefined();
    expect(kept).toEqual([...seqBytes(3)]);
  });

  it("sends within the agent's credit and ends when the agent has everything", async () => {
    const content = seqBytes(100_000);
    const { world, pump, kept, state } = await house();
    const done = pump.writeStream("log.write").then(async (writer) => {
      await writer.write(content.subarray(0, 3));
      await writer.write(content.subarray(3));
      await writer.end();
      return writer.sent;
    });
    expect(await settle(world, done)).toBe(100_000);
    expect(kept).toEqual([...content]);
    expect(state.ended).toEqual([null]);
  });

  it.each([1_000, 3_000, 10_000, 65_536])(
    "needs few requests for writes of %i bytes",
    async (size) => {
      const { world, pump, kept, relay } = await house();
      const content = seqBytes(1_000_000);
      const writer = (await settle(world, pump.writeStream("log.write"), 1_000)) as WriteStream;
      relay.received.length = 0;
      const done = async () => {
        for (let at = 0; at < content.length; at += size) {
          await writer.write(content.subarray(at, at + size));
        }
        await writer.end();
      };
      const follow = world.follow(done());
      // As in a real event loop, all promises settle before the next timer fires.
      for (let ms = 0; follow.times === 0 && ms < 10_000; ms++) {
        await world.run(1);
        await new Promise((resolve) => setImmediate(resolve));
      }
      expect(follow).toEqual({ times: 1, result: undefined });
      expect(Buffer.from(kept).equals(content)).toBe(true);
      expect(relay.received.length).toBeLessThan((1.5 * content.length) / 16_384);
    },
  );

  it("sends a single small write within milliseconds", async () => {
    const { world, pump, kept } = await house();
    const writer = (await settle(world, pump.writeStream("log.write"), 1_000)) as WriteStream;
    await settle(world, writer.write(seqBytes(1)), 20);
    expect(kept).toEqual([0]);
  });

  it("sends what an agent asks for by the record, however little that is", async () => {
    const { world, pump, agent } = await house();
    let sid = "";
    const got: number[] = [];
    const grant = (bytes: number) =>
      agent.say(sid, { method: "stream.credit", params: { stream: 1, bytes } });
    agent.handlers.set("records", ({ answer }) => {
      sid = agent.sessions.held()[0] as string;
      answer(null);
      grant(10_000);
    });
    agent.handlers.set("stream.data", ({ params }) => {
      const { data } = params as { data: string };
      got.push(Buffer.from(data, "base64").length);
      if (got.length < 4) grant(4);
    });
    const writer = (await settle(world, pump.writeStream("records"), 1_000)) as WriteStream;
    void writer.write(seqBytes(20_000)).catch(() => undefined);
    await world.run(5_000);
    expect(got).toEqual([10_000, 4, 4, 4]);
  });

  it("waits for a slow agent", async () => {
    const { world, pump, kept, state } = await house();
    state.heldBack = 10_000_000;
    const follow = world.follow(
      pump.writeStream("log.write").then((writer) => writer.write(seqBytes(50_000))),
    );
    await world.run(10_000);
    expect(follow.times).toBe(0);
    expect(kept).toHaveLength(20_000);
  });

  it("fails with the session, and with the agent's reason", async () => {
    const { world, pump, agent, state } = await house();
    const writer = (await settle(world, pump.writeStream("log.write"), 1_000)) as WriteStream;
    state.table?.fail("the port is gone");
    await world.run(100);
    const failure = await settle(world, writer.write(seqBytes(5)), 1_000);
    expect(failure).toMatchObject({ code: "OUTCOME_UNKNOWN" });
    expect((failure as CallError).message).toContain("the port is gone");
    const second = (await settle(world, pump.writeStream("log.write"), 1_000)) as WriteStream;
    const broken: CallError[] = [];
    second.onBroken((error) => broken.push(error));
    agent.restart();
    await world.run(100_000);
    expect(broken).toHaveLength(1);
  });

  it("keeps its session for longer than the idle timeout", async () => {
    const { world, pump, kept } = await house();
    const writer = (await settle(world, pump.writeStream("log.write"), 1_000)) as WriteStream;
    await world.run(600_000);
    await settle(
      world,
      writer.write(seqBytes(5)).then(() => writer.end()),
      1_000,
    );
    expect(kept).toHaveLength(5);
  });
});

describe("streams that outlive the session token", () => {
  const auths = (relay: { received: string[] }) =>
    relay.received.filter((text) => JSON.parse(text).type === "auth").length;

  it("continue to be written, over the next link", async () => {
    const { world, pump, relay, kept } = await house(undefined, 700);
    const writer = (await settle(world, pump.writeStream("log.write"), 1_000)) as WriteStream;
    for (let i = 0; i < 200; i++) {
      await settle(world, writer.write(seqBytes(10)), 5_000);
    }
    await settle(world, writer.end(), 1_000);
    expect(kept).toHaveLength(2_000);
    expect(auths(relay)).toBeGreaterThan(2);
  });

  it("continue to be read, over the next link", async () => {
    const content = seqBytes(100_000);
    const { world, pump, relay } = await house(content, 700);
    const reader = (await settle(
      world,
      pump.readStream("log.read", {}, { windowBytes: 500 }),
      1_000,
    )) as ReadStream;
    const all: number[] = [];
    for (let chunk = await reader.read(); chunk !== null; ) {
      all.push(...chunk);
      await world.run(5_000);
      chunk = (await settle(world, reader.read(), 2_000)) as Uint8Array | null;
    }
    expect(all).toEqual([...content]);
    expect(auths(relay)).toBeGreaterThan(2);
  });

  it("end with an error if the agent does not pause and an older relay loses a packet", async () => {
    const { world, relay, pump, state } = await house(undefined, 610);
    relay.renews = false;
    state.everyMs = 400;
    const reader = (await settle(world, pump.readStream("log.read"), 1_000)) as ReadStream;
    const reading = world.follow(collect(reader));
    await world.run(580_000);
    expect(reading.times).toBe(0);
    state.everyMs = 10;
    await world.run(80_000);
    expect(reading.error).toMatchObject({ code: "OUTCOME_UNKNOWN" });
  });
});

it("an unavailable device is an error that can be retried if that is safe", async () => {
  const { world, pump, agent } = await house();
  const away = (sent: boolean) => ({ retryable: true, sent });
  agent.handlers.set("ask", ({ fail }) => fail(-32002, "the port is gone", away(false)));
  agent.handlers.set("move", ({ fail }) => fail(-32002, "the port is gone", away(true)));
  const calls = [pump.call("ask"), pump.call("move"), pump.call("move", {}, { idempotent: true })];
  const errors = await settle(world, Promise.all(calls.map((call) => call.catch((e) => e))));
  expect((errors as CallError[]).map((error) => error.retryable)).toEqual([true, false, true]);
});

describe("an agent that disconnects during a call", () => {
  it("fails the call before its deadline if the relay reports it", async () => {
    const { world, pump, agent } = await house();
    agent.handlers.set("slow", () => undefined);
    const safe = world.follow(pump.call("slow", {}, { idempotent: true }));
    const unsafe = world.follow(pump.call("slow"));
    await world.run(1_000);
    agent.goOffline();
    await world.run(1_900);
    expect([safe.times, unsafe.times]).toEqual([0, 0]);
    await world.run(300);
    expect(unsafe.error).toMatchObject({ code: "OUTCOME_UNKNOWN", retryable: false });
    expect(safe.error).toMatchObject({ code: "AGENT_OFFLINE", retryable: true });
  });

  it("may reconnect within two seconds and still answer", async () => {
    const { world, pump, agent } = await house();
    agent.handlers.set("slow", ({ answer }) => world.clock.set(3_000, () => answer("done")));
    const call = world.follow(pump.call("slow"));
    await world.run(1_000);
    agent.goOffline();
    await world.run(1_500);
    agent.goOnline();
    await world.run(5_000);
    expect(call.result).toBe("done");
  });
});
