/** Flow control of one direction, also where texts get lost, come twice, and offsets pass 2^32. */
import { expect, it } from "vitest";
import { ReceiveWindow, SendWindow } from "./flow.ts";

it("lets as much go as was let come, over the end of 32 bits too", () => {
  const out = new SendWindow(100);
  const incoming = new ReceiveWindow(100);
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

it("a late credit takes nothing back", () => {
  const out = new SendWindow(100);
  out.allow(300);
  out.allow(200);
  expect(out.hasRoom(300)).toBe(true);
});

it("what got lost is counted, and its room is given back at the next text", () => {
  const incoming = new ReceiveWindow(100);
  expect(incoming.accept(60, 10)).toBe(true);
  incoming.release(10);
  expect([incoming.lost, incoming.credit(false)]).toEqual([60, 170]);
});

it("or at a probe", () => {
  const incoming = new ReceiveWindow(100);
  incoming.probe(90);
  incoming.probe(80);
  expect([incoming.lost, incoming.credit(true)]).toEqual([90, 190]);
});

it("refuses a text that came twice, and one beyond what was let come", () => {
  const incoming = new ReceiveWindow(100);
  incoming.accept(0, 50);
  expect([incoming.accept(0, 50), incoming.accept(50, 51), incoming.accept(50, 50)]).toEqual([
    false,
    false,
    true,
  ]);
});

it("gives no room for what is held", () => {
  const incoming = new ReceiveWindow(100);
  incoming.accept(0, 100);
  expect(incoming.credit(true)).toBe(100);
  incoming.release(60);
  expect(incoming.credit(false)).toBe(160);
});
