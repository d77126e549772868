/** How a board reads its UART: strings in pieces, and a listener that the board may remove. */
import { afterAll, beforeAll, expect, it, vi } from "vitest";
import { ManualTimer } from "../memory/index.ts";
import { type EspruinoSerial, serialLinksOf } from "./espruino.ts";
import { encodeFrame, plainChecksum } from "./frames.ts";
import {
  encodeHello,
  encodeLink,
  encodeText,
  FRAME_HELLO,
  FRAME_OPENED,
  FRAME_TEXT,
  ROLE_BRIDGE,
} from "./wire.ts";

beforeAll(() => {
  vi.stubGlobal("E", { toUint8Array: (text: string) => Buffer.from(text, "latin1") });
});
afterAll(() => {
  vi.unstubAllGlobals();
});

const MAX_MESSAGE = 1536;
const LIFE = 7;

class Uart implements EspruinoSerial {
  readonly timer = new ManualTimer();
  listeners: ((text: string) => void)[] = [];
  written = 0;

  setup(): void {}

  on(_event: "data", fn: (text: string) => void): void {
    this.listeners.push(fn);
  }

  removeAllListeners(): void {
    this.listeners = [];
  }

  write(): void {
    this.written++;
  }

  /** Received bytes, in pieces of `size`. */
  come(bytes: Uint8Array, size: number): void {
    const text = Buffer.from(bytes).toString("latin1");
    for (let at = 0; at < text.length; at += size) {
      for (const listener of this.listeners) listener(text.slice(at, at + size));
      this.timer.advance(1);
    }
  }
}

const frame = (type: number, body: Uint8Array): Uint8Array =>
  encodeFrame(type, body, plainChecksum);

const hello = frame(
  FRAME_HELLO,
  encodeHello({
    version: 1,
    role: ROLE_BRIDGE,
    wantsAnswer: false,
    life: 9,
    maxMessage: 65536,
    window: 65536,
  }),
);

/** A linked device, and what it receives. */
const linked = (size: number) => {
  const uart = new Uart();
  const links = serialLinksOf(uart, uart.timer, LIFE, plainChecksum, MAX_MESSAGE, 1024);
  const heard: string[] = [];
  let id = LIFE << 8;
  const connect = () => {
    id++;
    links.connect("", {
      opened: () => heard.push("opened"),
      received: (text) => heard.push(text),
      closed: () => heard.push("closed"),
    });
    uart.come(hello, size);
    uart.come(frame(FRAME_OPENED, encodeLink(id)), size);
  };
  connect();
  let sent = 0;
  const text = (value: string) => {
    const bytes = Buffer.from(value);
    const made = frame(FRAME_TEXT, encodeText(id, sent, bytes));
    sent += bytes.length;
    return made;
  };
  return {
    ...{ uart, heard, text },
    connect: () => {
      sent = 0;
      connect();
    },
  };
};

it.each([1, 7, 64, 4096])("reads frames in pieces of %i, ignoring what lies between", (size) => {
  const { uart, heard, text } = linked(size);
  const garbage = Buffer.from("\x00>\xff\x00\x00noise");
  const long = "x".repeat(1000);
  const line = Buffer.concat([garbage, text("one"), text(long), garbage, text("three")]);
  uart.come(line, size);
  expect(heard).toEqual(["opened", "one", long, "three"]);
});

it("handles no frame while the listener holds what was received", () => {
  const { uart, heard, text } = linked(64);
  const both = Buffer.concat([text("one"), text("two")]).toString("latin1");
  for (const listener of uart.listeners) listener(both);
  expect(heard).toEqual(["opened"]);
  uart.timer.advance(1);
  expect(heard).toEqual(["opened", "one", "two"]);
});

it("keeps no more noise than the longest frame takes, and reads the next frame", () => {
  const { uart, heard, text } = linked(64);
  uart.come(new Uint8Array(100_000).fill(7), 64);
  uart.come(text("after"), 64);
  expect(heard).toEqual(["opened", "after"]);
});

it("adds one listener at every connect", () => {
  const { uart, heard, text, connect } = linked(64);
  uart.removeAllListeners(); // like Espruino when out of memory
  connect();
  connect();
  uart.come(text("again"), 64);
  expect(heard).toEqual(["opened", "opened", "opened", "again"]);
  expect(uart.listeners).toHaveLength(1);
});
