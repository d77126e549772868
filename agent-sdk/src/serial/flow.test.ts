/**
 * Flow control of one direction, including texts that are lost or doubled, and offsets beyond 2^32.
 */
import { expect, it } from "vitest";
import { ReceiveWindow, SendWindow } from "./flow.ts";

it("permits as much as was granted, also across the end of 32 bits", () => {
  const out = new SendWindow(100);
  const incoming = new ReceiveWindow(100, 50);
  for (let i = 0; i < 50; i++) {
    while (out.hasRoom(30)) {
      const offset = out.take(30);
      expect(incoming.accept(offset, 30)).toBe(true);
      incoming.release(30);
    }
    out.allow(incoming.credit(false) as number);
  }
  const late = new SendWindow(2 ** 32 - 10);
  late.sent = 2 ** 32 - 20;
  expect([late.hasRoom(10), late.hasRoom(11)]).toEqual([true, false]);
  late.take(10);
  late.take(20);
  late.allow(30);
  expect([late.sent, late.hasRoom(20), late.hasRoom(21)]).toEqual([10, true, false]);
});

it("a late credit does not reduce a newer one", () => {
  const out = new SendWindow(100);
  out.allow(300);
  out.allow(200);
  expect(out.hasRoom(300)).toBe(true);
});

it("lost bytes are counted, and their room is returned at the next text", () => {
  const incoming = new ReceiveWindow(100, 50);
  expect(incoming.accept(60, 10)).toBe(true);
  incoming.release(10);
  expect([incoming.lost, incoming.credit(false)]).toEqual([60, 170]);
});

it("or at a probe", () => {
  const incoming = new ReceiveWindow(100, 50);
  incoming.probe(90);
  incoming.probe(80);
  expect([incoming.lost, incoming.credit(true)]).toEqual([90, 190]);
});

it("refuses a text that arrives twice, and one beyond the credit", () => {
  const incoming = new ReceiveWindow(100, 50);
  incoming.accept(0, 50);
  expect([incoming.accept(0, 50), incoming.accept(50, 51), incoming.accept(50, 50)]).toEqual([
    false,
    false,
    true,
  ]);
});

it("grants no room for held texts", () => {
  const incoming = new ReceiveWindow(100, 50);
  incoming.accept(0, 100);
  expect(incoming.credit(true)).toBe(100);
  incoming.release(60);
  expect(incoming.credit(false)).toBe(160);
});
