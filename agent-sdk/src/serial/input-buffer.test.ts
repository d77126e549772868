/**
 * A board that receives into a small buffer, which it does not read while it handles a message, as
 * Espruino: at a line's own rate, in virtual time. Bytes that find the buffer full are lost.
 */
import { afterAll, beforeAll, expect, it, vi } from "vitest";
import { ManualTimer, seededRandom } from "../memory/index.ts";
import type { LinkEvents } from "../ports.ts";
import { SerialCarrier } from "./carrier.ts";
import { type EspruinoSerial, serialLinksOf } from "./espruino.ts";
import { plainChecksum } from "./frames.ts";

beforeAll(() => {
  vi.stubGlobal("E", { toUint8Array: (text: string) => Buffer.from(text, "latin1") });
});
afterAll(() => {
  vi.unstubAllGlobals();
});

/** At 115,200 baud. */
const BYTES_PER_MS = 11;
/** The buffer holds events of at most so many bytes, with 2 more for each. */
const EVENT_BYTES = 63;
const MAX_MESSAGE = 4096;

class Board implements EspruinoSerial {
  lost = 0;
  private readonly inputBytes: number;
  private readonly timer: ManualTimer;
  private readonly wire: number[] = [];
  private readonly events: number[][] = [];
  private hear: (text: string) => void = () => undefined;
  private busyUntil = 0;

  constructor(timer: ManualTimer, inputBytes: number) {
    this.timer = timer;
    this.inputBytes = inputBytes;
    this.turn();
  }

  setup(): void {}

  on(_event: "data", fn: (text: string) => void): void {
    this.hear = fn;
  }

  removeAllListeners(): void {}

  /** What is written in a turn leaves when the turn is over. */
  write(bytes: Uint8Array): void {
    this.timer.set(Math.max(1, this.busyUntil - this.timer.now()), () => this.toBridge(bytes));
  }

  toBridge: (bytes: Uint8Array) => void = () => undefined;

  /** From the bridge. */
  send(bytes: Uint8Array): void {
    this.wire.push(...bytes);
  }

  /** The current turn takes so long. */
  work(ms: number): void {
    this.busyUntil = this.timer.now() + ms;
  }

  /** Whether this turn has handled a message already. */
  private isBusy(): boolean {
    return this.timer.now() < this.busyUntil;
  }

  /** A timer of the board, which fires between turns. */
  set(ms: number, fn: () => void): unknown {
    return this.timer.set(ms, () => {
      if (this.isBusy()) this.set(this.busyUntil - this.timer.now(), fn);
      else fn();
    });
  }

  private turn(): void {
    this.timer.set(1, () => this.turn());
    for (const byte of this.wire.splice(0, BYTES_PER_MS)) this.store(byte);
    if (this.isBusy()) return;
    const event = this.events.shift();
    if (event !== undefined) this.hear(String.fromCharCode(...event));
  }

  private store(byte: number): void {
    const used = this.events.reduce((sum, event) => sum + 2 + event.length, 0);
    const last = this.events.at(-1);
    if (used + 3 > this.inputBytes) this.lost++;
    else if (last !== undefined && last.length < EVENT_BYTES) last.push(byte);
    else this.events.push([byte]);
  }
}

/** A linked board that answers each text after `workMs`, and what the relay gets from it. */
const linked = (inputBytes: number, workMs: number) => {
  const timer = new ManualTimer();
  const board = new Board(timer, inputBytes);
  const answers: string[] = [];
  let relay: LinkEvents | null = null;
  const carrier = new SerialCarrier({
    write: (bytes) => board.send(bytes),
    ready: () => true,
    connect: (events) => {
      relay = events;
      timer.set(1, () => events.opened());
      const ignore = (): void => undefined;
      return { send: (text) => answers.push(text), close: ignore, pause: ignore, resume: ignore };
    },
    timer,
    random: seededRandom(1),
    checksum: plainChecksum,
    log: () => undefined,
    maxMessage: 65_536,
    window: 131_072,
  });
  board.toBridge = (bytes) => carrier.receive(bytes);
  const boardTimer = {
    now: () => timer.now(),
    set: (ms: number, fn: () => void) => board.set(ms, fn),
    clear: (handle: unknown) => timer.clear(handle),
  };
  const links = serialLinksOf(board, boardTimer, 1, plainChecksum, MAX_MESSAGE, inputBytes);
  const link = links.connect("", {
    opened: () => undefined,
    received: (text) => {
      board.work(workMs);
      link.send(text.slice(0, 10));
    },
    closed: () => expect.unreachable("the link ended"),
  });
  timer.advance(1000);
  return { timer, board, answers, send: (text: string) => relay?.received(text) };
};

it.each([
  [512, 60],
  [1024, 150],
  [1024, 600],
  [2048, 150],
])(
  "five callers at once lose no call in 200, with %d bytes and %d ms for a message",
  (inputBytes, workMs) => {
    const { timer, board, answers, send } = linked(inputBytes, workMs);
    const random = seededRandom(inputBytes + workMs);
    for (let round = 1; round <= 40; round++) {
      let bytes = 0;
      for (let caller = 0; caller < 5; caller++) {
        const [draw = 0] = random(1);
        // Now and then one that is longer than the buffer.
        const text = `${round}.${caller}`.padEnd(draw < 8 ? 3000 : 100 + 2 * draw, "_");
        bytes += text.length + 20;
        send(text);
      }
      // Nothing waits for a second, as it would for credit that was not given.
      timer.advance(bytes / BYTES_PER_MS + 5 * (workMs + 30));
      expect([answers.length, board.lost]).toEqual([5 * round, 0]);
    }
    expect(new Set(answers).size).toBe(200);
  },
);

it("the frames around many short texts fit into the buffer too", () => {
  const { timer, board, answers, send } = linked(1024, 150);
  // Of the shortest packet.
  for (let i = 0; i < 60; i++) send(`${i}`.padEnd(73, "_"));
  timer.advance(60 * 170);
  expect([answers.length, board.lost]).toEqual([60, 0]);
});
