/** What a tool's bytes over RFC 2217 become, and in which order. */
import { ManualTimer } from "@blindrelay/agent-sdk/memory";
import type { StatusLinesJson } from "@blindrelay/client-sdk/serial";
import { DEFAULT_SETTINGS, settingsAsJson } from "@blindrelay/protocol/serial";
import { expect, it } from "vitest";
import type { Remote } from "./local-side.ts";
import { rfc2217Codec } from "./rfc2217-codec.ts";

const settings = settingsAsJson(DEFAULT_SETTINGS);
const COM_PORT = [255, 250, 44];
const END = [255, 240];
const RATE_9600 = [...COM_PORT, 1, 0, 0, 0x25, 0x80, ...END];
const PURGE_OUTPUT = [...COM_PORT, 12, 2, ...END];
const RTS_ON = [...COM_PORT, 5, 11, ...END];
const RTS_OFF = [...COM_PORT, 5, 12, ...END];

const settled = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

/** Of the notices of modem states, in which no byte is doubled here. */
const modemStates = (said: readonly number[][]): (number | undefined)[] =>
  said.filter((one) => one[3] === 107).map((one) => one[4]);

const world = () => {
  const timer = new ManualTimer();
  const done: string[] = [];
  const said: number[][] = [];
  const state: { lines: StatusLinesJson; isAway: boolean } = {
    lines: { cts: false, dsr: false, dcd: true },
    isAway: false,
  };
  const remote: Remote = {
    write: (bytes) => void done.push(`wrote ${[...bytes]}`),
    taken: () => undefined,
    room: 1,
    configure: async (change) => {
      done.push(JSON.stringify(change));
      return settings;
    },
    signals: async (steps) => void done.push(JSON.stringify(steps)),
    purge: async (read, write) => void done.push(`purged ${read} ${write}`),
    status: async () => {
      done.push("status");
      if (state.isAway) throw new Error("it is away");
      return state.lines;
    },
    settings,
    isUp: true,
  };
  const codec = rfc2217Codec(timer)(remote, (bytes) => said.push([...bytes]));
  return { timer, done, said, state, codec };
};

it("keeps the order of bytes and of what is set between them, however they come together", () => {
  const { done, codec } = world();
  codec.receive(
    Uint8Array.from([1, 255, 255, ...RATE_9600, 2, ...PURGE_OUTPUT, 3, ...RTS_ON, 4, 255, 255]),
  );
  expect(done).toEqual([
    "wrote 1,255",
    '{"baud_rate":9600}',
    "wrote 2",
    "purged false true",
    "wrote 3",
    '[{"rts":true,"after_ms":0}]',
    "wrote 4,255",
  ]);
});

it("runs the last steps of a tool that ends right after them, as esptool does", () => {
  const { timer, done, codec } = world();
  codec.receive(Uint8Array.from(RTS_ON));
  timer.advance(100);
  codec.receive(Uint8Array.from(RTS_OFF));
  timer.advance(1);
  codec.end?.();
  expect(done).toEqual(['[{"rts":true,"after_ms":0},{"rts":false,"after_ms":100}]']);
});

it("tells which status lines changed while the port was away, once it is back", async () => {
  const { state, said, codec } = world();
  codec.receive(Uint8Array.from([255, 251, 44]));
  await settled();
  expect(modemStates(said)).toEqual([0x80]);
  state.lines = { cts: true, dsr: false, dcd: false };
  codec.up?.();
  await settled();
  expect(modemStates(said)).toEqual([0x80, 0x10 | 0x01 | 0x08]);
  state.isAway = true;
  codec.up?.();
  await settled();
  expect(modemStates(said)).toHaveLength(2);
});

it("asks nothing of the bridge for a program that has no status lines", async () => {
  const { done, codec } = world();
  codec.up?.();
  await settled();
  expect(done).toEqual([]);
});
