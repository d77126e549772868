/** A TCP side on a real socket, with a port that does nothing. */
import { subscribe, unsubscribe } from "node:diagnostics_channel";
import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { systemTimer } from "@blindrelay/agent-sdk/node";
import type { StatusLinesJson } from "@blindrelay/client-sdk/serial";
import { DEFAULT_SETTINGS, settingsAsJson } from "@blindrelay/protocol/serial";
import { expect, it, onTestFinished, vi } from "vitest";
import type { Remote } from "./local-side.ts";
import { rfc2217Codec } from "./rfc2217-codec.ts";
import { openTcp, plainCodec } from "./tcp-side.ts";

const settings = settingsAsJson(DEFAULT_SETTINGS);
const REMOTE: Remote = {
  write: () => undefined,
  taken: () => undefined,
  room: 1,
  configure: async () => settings,
  signals: async () => undefined,
  purge: async () => undefined,
  status: async () => ({}),
  settings,
  isUp: true,
};

/** The signature, asked for and answered. */
const ASK = Buffer.from([255, 250, 44, 0, 255, 240]);
const ANSWER_BYTES = ASK.length + "blindrelay attach".length;
const ASKED = 200_000;

const until = (done: () => boolean) => vi.waitUntil(done, { timeout: 60_000, interval: 5 });

it("a program that does not take its answers is not read any more, until it takes them", async () => {
  const codec = rfc2217Codec(systemTimer());
  const accepted: Socket[] = [];
  const listener = (one: unknown) => accepted.push((one as { socket: Socket }).socket);
  subscribe("net.server.socket", listener);
  onTestFinished(() => {
    unsubscribe("net.server.socket", listener);
  });
  const side = await openTcp(REMOTE, {
    host: "127.0.0.1",
    port: 0,
    closesOnLoss: false,
    codec,
    scheme: "rfc2217",
  });
  const socket = connect(Number(side.where.split(":").at(-1)), "127.0.0.1");
  await once(socket, "connect");
  let came = 0;
  socket.on("data", (bytes: Buffer) => {
    came += bytes.length;
  });
  const served = (): Socket | undefined => accepted[0];
  await until(() => served() !== undefined && came > 0);
  const hello = came;
  // What a system's own buffers take differs, up to many megabytes: here they take nothing.
  served()?.cork();
  const all = ASKED * ASK.length;
  socket.write(Buffer.alloc(all, ASK));
  await until(() => served()?.isPaused() === true || served()?.bytesRead === all);
  expect(served()?.isPaused()).toBe(true);
  expect(served()?.bytesRead).toBeLessThan(all);
  served()?.uncork();
  await until(() => came === hello + ASKED * ANSWER_BYTES);
  socket.destroy();
  await side.close();
});

it("a port on which another program listens is in use, which is exit 7", async () => {
  const [host, closesOnLoss, scheme] = ["127.0.0.1", false, "tcp"] as const;
  const first = await openTcp(REMOTE, { host, port: 0, closesOnLoss, codec: plainCodec, scheme });
  onTestFinished(() => first.close());
  const port = Number(first.where.split(":").at(-1));
  await expect(
    openTcp(REMOTE, { host, port, closesOnLoss, codec: plainCodec, scheme }),
  ).rejects.toMatchObject({ exitCode: 7, message: expect.stringContaining("another program") });
  const elsewhere = { host: "192.0.2.1", port: 0, closesOnLoss, codec: plainCodec, scheme };
  await expect(openTcp(REMOTE, elsewhere)).rejects.toMatchObject({ exitCode: 2 });
});

it("a program that is done sending still reads, until the next one comes", async () => {
  const accepted: Socket[] = [];
  const listener = (one: unknown) => accepted.push((one as { socket: Socket }).socket);
  subscribe("net.server.socket", listener);
  onTestFinished(() => {
    unsubscribe("net.server.socket", listener);
  });
  const given: string[] = [];
  let taken = 0;
  const remote: Remote = {
    ...REMOTE,
    write: (bytes) => given.push(Buffer.from(bytes).toString()),
    taken: (bytes) => {
      taken += bytes;
    },
  };
  const [host, closesOnLoss, scheme] = ["127.0.0.1", false, "tcp"] as const;
  const side = await openTcp(remote, { host, port: 0, closesOnLoss, codec: plainCodec, scheme });
  onTestFinished(() => side.close());
  const dial = () => {
    const port = Number(side.where.split(":").at(-1));
    const socket = connect({ host, port, allowHalfOpen: true });
    const seen = { text: "", isOver: false };
    socket.on("data", (bytes) => {
      seen.text += bytes;
    });
    socket.on("close", () => {
      seen.isOver = true;
    });
    socket.on("end", () => socket.end());
    socket.on("error", () => undefined);
    return { socket, seen };
  };
  const one = dial();
  one.socket.end("*IDN?");
  await until(() => accepted[0]?.readableEnded === true);
  side.deliver(Buffer.from("a scale"));
  await until(() => one.seen.text === "a scale");
  expect([one.seen.isOver, taken]).toEqual([false, 7]);
  const two = dial();
  two.socket.write("next");
  await until(() => given.length === 2 && one.seen.isOver);
  side.deliver(Buffer.from("for the next"));
  await until(() => two.seen.text === "for the next");
  // One that has not ended keeps its place.
  const three = dial();
  await until(() => three.seen.isOver);
  expect([given, two.seen.isOver, taken]).toEqual([["*IDN?", "next"], false, 19]);
  two.socket.destroy();
  three.socket.destroy();
});

it.each([
  ["purges", [255, 250, 44, 12, 3, 255, 240]],
  ["rates, and bytes between them", [255, 250, 44, 1, 0, 0, 0x25, 0x80, 255, 240, 7]],
  ["flow control", [255, 250, 44, 5, 2, 255, 240]],
  ["status lines", [255, 250, 44, 7, 0, 255, 240]],
  ["the option itself", [255, 251, 44]],
  ["control lines", [255, 250, 44, 5, 11, 255, 240, 7]],
])("of a flood of %s no more calls wait than 256, and later ones are made", async (_what, one) => {
  const waiting: (() => void)[] = [];
  const call = (): Promise<never> =>
    new Promise<never>((_resolve, reject) => {
      waiting.push(() => reject(new Error("the agent is away")));
    });
  const remote = { ...REMOTE, configure: call, signals: call, purge: call, status: call };
  const codec = rfc2217Codec(systemTimer())(remote, () => undefined);
  const said = vi.spyOn(process.stderr, "write").mockReturnValue(true);
  const ask = async (): Promise<void> => {
    codec.receive(Uint8Array.from(one));
    await new Promise((resolve) => setImmediate(resolve));
  };
  for (let i = 0; i < 1000; i++) await ask();
  expect(waiting).toHaveLength(256);
  expect(said).toHaveBeenCalledTimes(1);
  for (const end of waiting.splice(0)) end();
  await ask();
  await ask();
  expect(waiting.length).toBeGreaterThan(0);
  codec.end?.();
});

it("of lines that change without end a program that reads nothing is told the last ones once it reads", async () => {
  const told: StatusLinesJson[] = [];
  const side = await openTcp(REMOTE, {
    host: "127.0.0.1",
    port: 0,
    closesOnLoss: false,
    scheme: "rfc2217",
    codec: (_remote, say) => ({
      receive: () => undefined,
      encode: (bytes) => bytes,
      changed: (lines) => {
        told.push(lines);
        say(new Uint8Array(1000));
      },
    }),
  });
  onTestFinished(() => side.close());
  const socket = connect(Number(side.where.split(":").at(-1)), "127.0.0.1");
  onTestFinished(() => void socket.destroy());
  socket.on("error", () => undefined);
  await until(() => {
    side.changed?.({});
    return told.length > 0;
  });
  for (let n = 0; n < 10_000; n++) side.changed?.({ cts: n % 2 === 0 });
  side.changed?.({ dcd: true });
  expect(told.length).toBeLessThan(100);
  socket.resume();
  await until(() => told.at(-1)?.dcd === true);
});
