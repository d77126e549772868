/** A bridge that lies about numbers, as an impostor under the agent's secret may. */
import type { SettingsJson } from "@blindrelay/protocol/serial";
import type { IncomingEvents, IncomingStream } from "@blindrelay/protocol/streams";
import { expect, it } from "vitest";
import type { Agent } from "../client.ts";
import { CallError } from "../errors.ts";
import type { SessionStreams } from "../streams.ts";
import { VirtualClock } from "../testing/clock.ts";
import { RemotePort } from "./remote-port.ts";

const SETTINGS: SettingsJson = {
  baud_rate: 9600,
  data_bits: 8,
  parity: "none",
  stop_bits: 1,
  flow_control: "none",
};
const FAR = 2 ** 52 - 1;

it("asks a bridge to go on at the number of a byte, however many it said were lost", async () => {
  const asked: { read: { from?: number } }[] = [];
  let hear = (_event: string, _data: unknown): void => undefined;
  const heard: IncomingEvents[] = [];
  const streams = {
    onNotice: (fn: typeof hear) => {
      hear = fn;
      return () => undefined;
    },
    incoming: (_id: number, events: IncomingEvents) => {
      heard.push(events);
      const nothing = () => undefined;
      return { grant: nothing, abort: nothing, conclude: nothing } as unknown as IncomingStream;
    },
  } as unknown as SessionStreams;
  const agent = {
    streamNumber: () => 1,
    callWithStreams: async (_method: string, params: never, sent: (of: SessionStreams) => void) => {
      sent(streams);
      asked.push(params);
      return { opening: "A".repeat(22), read: 0, written: 0, settings: SETTINGS };
    },
  } as unknown as Agent;
  const clock = new VirtualClock();
  const nothing = () => undefined;
  const port = new RemotePort(
    agent,
    {
      port: undefined,
      claim: "C".repeat(22),
      user: "",
      watch: true,
      takeover: false,
      timer: clock,
    },
    {
      data: nothing,
      writable: nothing,
      up: nothing,
      down: nothing,
      lost: nothing,
      changed: nothing,
    },
  );
  await port.start();
  hear("serial.lost", { opening: "A".repeat(22), from: FAR, bytes: FAR });
  heard[0]?.data(new Uint8Array(10));
  heard[0]?.ended("the link is lost");
  await clock.run(60_000);
  port.stop();
  expect(asked.length).toBeGreaterThan(1);
  for (const { read } of asked.slice(1)) expect(read.from).toSatisfy(Number.isSafeInteger);
});

it("takes any answer to serial.write of a bridge without serial.resume", async () => {
  const asked: string[] = [];
  const nothing = () => undefined;
  const stream = { grant: nothing, abort: nothing, conclude: nothing, credit: 0 };
  const streams = {
    onNotice: () => nothing,
    incoming: () => stream,
    outgoing: () => stream,
  } as unknown as SessionStreams;
  const agent = {
    streamNumber: () => 1,
    callWithStreams: async (method: string, _: never, sent: (of: SessionStreams) => void) => {
      asked.push(method);
      sent(streams);
      if (method === "serial.resume")
        throw new CallError("REMOTE", "none", { remote: { code: -32601, message: "none" } });
      return method === "serial.read" ? SETTINGS : {};
    },
  } as unknown as Agent;
  const events = { data: nothing, writable: nothing, up: nothing, down: nothing };
  const port = new RemotePort(
    agent,
    {
      port: undefined,
      claim: "C".repeat(22),
      user: "",
      watch: false,
      takeover: false,
      timer: new VirtualClock(),
    },
    { ...events, lost: nothing, changed: nothing },
  );
  await port.start();
  port.stop();
  expect(asked).toEqual(["serial.resume", "serial.read", "serial.write"]);
});
