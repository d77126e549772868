/** What a tool's bytes over RFC 2217 become, and in which order. */
import { ManualTimer } from "@blindrelay/agent-sdk/memory";
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

const world = () => {
  const timer = new ManualTimer();
  const done: string[] = [];
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
    status: async () => ({}),
    settings,
    isUp: true,
  };
  const codec = rfc2217Codec(timer)(remote, () => undefined);
  return { timer, done, codec };
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
  codec.end();
  expect(done).toEqual(['[{"rts":true,"after_ms":0},{"rts":false,"after_ms":100}]']);
});
