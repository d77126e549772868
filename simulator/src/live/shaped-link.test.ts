import type { LinkEvents } from "@blindrelay/agent-sdk/ports";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { Stream } from "../base/random-streams.ts";
import type { RawLink, RawLinkPort } from "./link.ts";
import { type Shape, Shaper, UNSHAPED } from "./shaped-link.ts";

/** A socket, as far as a link uses it. */
class Socket implements RawLink {
  readonly events: LinkEvents;
  readonly sent: string[] = [];
  isStalled = false;
  aborted: number | null = null;

  constructor(events: LinkEvents) {
    this.events = events;
  }

  send(text: string): void {
    this.sent.push(text);
  }

  close(code: number, reason: string): void {
    this.events.closed(code, reason);
  }

  abort(code: number): void {
    this.aborted = code;
  }

  stall(on: boolean): void {
    this.isStalled = on;
  }
}

let sockets: Socket[];
let heard: string[];
const base: RawLinkPort = {
  connect: (_url, events) => {
    const socket = new Socket(events);
    sockets.push(socket);
    return socket;
  },
};

beforeEach(() => {
  vi.useFakeTimers();
  sockets = [];
  heard = [];
});
afterEach(() => vi.useRealTimers());

const events: LinkEvents = {
  opened: () => heard.push("opened"),
  received: (text) => heard.push(text),
  closed: (code) => heard.push(`closed ${code}`),
};

const network = (shape: Partial<Shape> = {}) => {
  const shaper = new Shaper(base, { ...UNSHAPED, ...shape }, new Stream("a test"));
  const link = shaper.connect("ws://relay.invalid/wss", events);
  const [socket] = sockets as [Socket];
  socket?.events.opened();
  return { shaper, link, socket };
};

describe("a link on a bad network", () => {
  test("delays both directions and keeps the order", () => {
    const { link, socket } = network({ latencyMs: 50, jitterMs: 40 });
    for (let n = 0; n < 20; n++) {
      link.send(`${n}`);
      socket.events.received(`${n}`);
    }
    vi.advanceTimersByTime(49);
    expect([heard, socket.sent]).toEqual([[], []]);
    vi.advanceTimersByTime(60);
    const all = Array.from({ length: 20 }, (_, n) => `${n}`);
    expect([heard, socket.sent]).toEqual([["opened", ...all], all]);
  });

  test("delays bytes on a slow line", () => {
    const { socket } = network({ bytesPerS: 1000 });
    socket.events.received("x".repeat(500));
    socket.events.received("y".repeat(500));
    vi.advanceTimersByTime(600);
    expect(heard.map((text) => text[0])).toEqual(["o", "x"]);
    vi.advanceTimersByTime(500);
    expect(heard).toHaveLength(3);
  });

  test("is lost at a cut, and not reopened before its end", () => {
    const { shaper, socket } = network();
    shaper.play({ at: "0s", kind: "net.cut", for: "1s" }, true);
    expect([socket.aborted, heard]).toEqual([1006, ["opened", "closed 1006"]]);
    shaper.connect("ws://relay.invalid/wss", events);
    expect(heard).toHaveLength(2); // never from inside `connect`
    vi.advanceTimersByTime(1);
    expect([sockets.length, heard.at(-1)]).toEqual([1, "closed 1006"]);
    shaper.play({ at: "0s", kind: "net.cut", for: "1s" }, false);
    shaper.connect("ws://relay.invalid/wss", events);
    expect(sockets).toHaveLength(2);
  });

  test("holds everything back in a partition, and lets it through afterwards", () => {
    const { shaper, link, socket } = network();
    shaper.play({ at: "0s", kind: "net.partition", for: "1s" }, true);
    link.send("up");
    socket.events.received("down");
    shaper.connect("ws://relay.invalid/wss", events);
    vi.advanceTimersByTime(60_000);
    expect([socket.sent, heard, sockets.length]).toEqual([[], ["opened"], 1]);
    shaper.play({ at: "0s", kind: "net.partition", for: "1s" }, false);
    expect([socket.sent, heard, sockets.length]).toEqual([["up"], ["opened", "down"], 2]);
  });

  test("half open: the peer knows, and the relay's end stays open", () => {
    const { shaper, link, socket } = network();
    shaper.play({ at: "0s", kind: "net.half_open" }, true);
    expect([socket.aborted, heard]).toEqual([null, ["opened", "closed 1006"]]);
    socket.events.received("ping");
    link.send("pong");
    expect([socket.sent, heard.length]).toEqual([[], 2]);
  });

  test("notifies nobody when the power is lost", () => {
    const { shaper, link, socket } = network();
    shaper.vanish();
    link.close(1000, "");
    vi.advanceTimersByTime(1000);
    expect([socket.aborted, heard]).toEqual([null, ["opened"]]);
  });

  test("stops reading if the reader is slow, also on its next link", () => {
    const { shaper, socket } = network();
    shaper.play({ at: "0s", kind: "net.slow_reader", for: "1s" }, true);
    shaper.connect("ws://relay.invalid/wss", events);
    expect(sockets.map(({ isStalled }) => isStalled)).toEqual([true, true]);
    shaper.play({ at: "0s", kind: "net.slow_reader", for: "1s" }, false);
    expect(socket.isStalled).toBe(false);
  });

  test("has the shape of the latest active fault, whichever ends first", () => {
    const { shaper } = network({ latencyMs: 5 });
    const delay = (latency: string) => ({ at: "0s", kind: "net.delay" as const, latency });
    shaper.play(delay("1s"), true);
    shaper.play(delay("2s"), true);
    shaper.play(delay("1s"), false);
    expect(shaper.shape.latencyMs).toBe(2000);
    shaper.play(delay("3s"), true);
    shaper.play(delay("3s"), false);
    expect(shaper.shape.latencyMs).toBe(2000);
    shaper.play(delay("2s"), false);
    expect(shaper.shape).toEqual({ ...UNSHAPED, latencyMs: 5 });
  });

  test("changes one character in a share of the messages, until that ends", () => {
    const { shaper, link, socket } = network();
    const text = "a".repeat(100);
    shaper.play({ at: "0s", kind: "net.corrupt", messages: "50%", for: "1s" }, true);
    for (let n = 0; n < 100; n++) link.send(text);
    const changed = socket.sent.filter((sent) => sent !== text);
    expect(changed.length).toBeGreaterThan(20);
    expect(changed.length).toBeLessThan(80);
    for (const sent of changed) expect(sent.replaceAll("a", "")).toHaveLength(1);
    shaper.play({ at: "0s", kind: "net.corrupt", messages: "50%", for: "1s" }, false);
    socket.sent.length = 0;
    for (let n = 0; n < 20; n++) link.send(text);
    expect(new Set(socket.sent)).toEqual(new Set([text]));
  });
});
