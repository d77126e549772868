import { once } from "node:events";
import { PassThrough, type Writable } from "node:stream";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import * as ws from "ws";
import { encodeClose, encodeFrame, FrameReader, OPCODE } from "./frames.ts";

// Public in ws, but missing from its types.
const { Receiver, Sender } = ws as unknown as {
  Receiver: new (options: { isServer: boolean }) => Writable;
  Sender: { frame(data: Buffer, options: object): Buffer[] };
};
const LIMIT = 65_536;

/** Everything a reader reported, as text. */
function readAll(chunks: Iterable<Buffer>, limit = LIMIT): string[] {
  const told: string[] = [];
  const reader = new FrameReader(limit);
  const all = [...chunks];
  // One buffer for every chunk, overwritten each time: a reader that keeps a view instead of a copy
  // fails.
  const shared = Buffer.alloc(Math.max(0, ...all.map(({ length }) => length)));
  for (const chunk of all) {
    shared.fill(0xee);
    chunk.copy(shared);
    reader.push(shared.subarray(0, chunk.length), {
      text: (text) => told.push(`text ${text}`),
      ping: (payload) => told.push(`ping ${payload.toString("hex")}`),
      pong: () => told.push("pong"),
      peerClosed: (code, reason) => told.push(`closed ${code} ${reason}`),
      broken: (code) => told.push(`broken ${code}`),
    });
  }
  return told;
}

/** Cuts bytes at the given places (any numbers). */
function cut(bytes: Buffer, places: number[]): Buffer[] {
  const at = [
    ...new Set([0, ...places.map((place) => place % (bytes.length + 1)), bytes.length]),
  ].sort((a, b) => a - b);
  return at.slice(1).map((end, i) => bytes.subarray(at[i], end));
}

function hex(text: string): Buffer {
  return Buffer.from(text.replace(/#.*$/gm, "").replace(/\s/g, ""), "hex");
}

function frameByWs(text: string, options: { opcode?: number; fin?: boolean } = {}): Buffer {
  const frame = {
    fin: true,
    opcode: OPCODE.text,
    mask: false,
    readOnly: true,
    rsv1: false,
    ...options,
  };
  return Buffer.concat(Sender.frame(Buffer.from(text), frame));
}

const cuts = fc.array(fc.nat(200_000), { maxLength: 40 });
const message = fc.oneof(
  fc.string({ unit: "binary", maxLength: 40 }),
  fc.constantFrom(0, 1, 125, 126, 127, 65_535, 65_536).map((length) => "x".repeat(length)),
);

describe("frames from a server", () => {
  test("written by ws are read the same, wherever the network cuts them", () => {
    fc.assert(
      fc.property(fc.array(message, { maxLength: 6 }), cuts, (texts, places) => {
        const wellFormed = texts.map((text) => text.toWellFormed());
        const bytes = Buffer.concat(wellFormed.map((text) => frameByWs(text)));
        expect(readAll(cut(bytes, places))).toEqual(wellFormed.map((text) => `text ${text}`));
      }),
    );
  });

  test("byte by byte are read the same", () => {
    const bytes = Buffer.concat([
      frameByWs("a"),
      frameByWs("b".repeat(300)),
      encodePing("hi"),
      frameByWs(""),
    ]);
    expect(readAll([...bytes].map((byte) => Buffer.of(byte)))).toEqual([
      "text a",
      `text ${"b".repeat(300)}`,
      "ping 6869",
      "text ",
    ]);
  });

  test("in fragments, with a ping in between, are one message", () => {
    const bytes = Buffer.concat([
      frameByWs("zw", { fin: false }),
      encodePing(""),
      hex("0001 c3"), // the first half of an ö
      hex("8003 b6 6c66"),
      frameByWs("next"),
    ]);
    expect(readAll([bytes])).toEqual(["ping ", "text zwölf", "text next"]);
  });

  test("noise never throws, is reported as broken at most once, and then nothing follows", () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 300 }), cuts, (noise, places) => {
        const told = readAll(cut(Buffer.from(noise), places), 100);
        const end = told.findIndex(
          (line) => line.startsWith("broken") || line.startsWith("closed"),
        );
        expect(end === -1 || end === told.length - 1).toBe(true);
      }),
    );
  });

  test.each([
    ["a masked frame", "8181 00000000 61", "broken 1002"],
    ["a reserved bit", "c100", "broken 1002"],
    ["an unknown opcode", "8300", "broken 1002"],
    ["an unknown control opcode", "8b00", "broken 1002"],
    ["a fragmented ping", "0900", "broken 1002"],
    ["a ping over 125 bytes", "897e", "broken 1002"],
    ["a continuation of nothing", "8000", "broken 1002"],
    ["a new message inside a fragmented one", "0101 61 8101 62", "broken 1002"],
    ["a 16-bit length that fits 7", "817e 007d", "broken 1002"],
    ["a 64-bit length that fits 16", "817f 000000000000ffff", "broken 1002"],
    ["a message over the limit, before its payload", "817f 0000000000010001", "broken 1009"],
    ["2^63 bytes, before any payload", "817f 8000000000000000", "broken 1009"],
    ["a binary message", "8200", "broken 1003"],
    ["text that is not UTF-8", "8101 ff", "broken 1007"],
    ["a close of one byte", "8801 03", "broken 1002"],
    ["a close code that may not be sent", "8802 03ed", "broken 1002"],
    ["a close with a broken reason", "8803 03e8 ff", "broken 1002"],
    ["a close without a code", "8800", "closed 1005 "],
    ["a close with code and reason", "8807 03f4 627965 2121", "closed 1012 bye!!"],
    ["anything behind a close", "8800 8101 61", "closed 1005 "],
  ])("%s", (_, bytes, told) => {
    expect(readAll([hex(bytes)]).join()).toBe(told);
  });

  test("fragments are counted together against the limit", () => {
    const bytes = Buffer.concat([
      frameByWs("12345", { fin: false }),
      frameByWs("678901", { opcode: 0 }),
    ]);
    expect(readAll([bytes], 11)).toEqual(["text 12345678901"]);
    expect(readAll([bytes], 10)).toEqual(["broken 1009"]);
  });

  test("a flood of empty fragments is refused", () => {
    const flood = Buffer.concat([
      frameByWs("", { fin: false }),
      ...Array(256).fill(frameByWs("", { opcode: 0, fin: false })),
    ]);
    expect(readAll([flood], 1024)).toEqual(["broken 1009"]);
  });
});

describe("frames to a server", () => {
  test("are read by ws as intended, wherever the network cuts them", async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(message, { maxLength: 5 }), cuts, async (texts, places) => {
        const wellFormed = texts.map((text) => text.toWellFormed());
        const receiver = new Receiver({ isServer: true });
        const read: string[] = [];
        receiver.on("message", (data: Buffer) => read.push(data.toString()));
        const wire = new PassThrough();
        wire.pipe(receiver);
        const frames = [
          ...wellFormed.map((text) => encodeFrame(OPCODE.text, text)),
          encodeClose(1000, "done"),
        ];
        const concluded = once(receiver, "conclude");
        for (const chunk of cut(Buffer.concat(frames), places)) wire.write(chunk);
        const [code, reason] = await concluded;
        expect([read, code, String(reason)]).toEqual([wellFormed, 1000, "done"]);
      }),
      { numRuns: 50 },
    );
  });

  test("a masked text frame has the layout of section 5.2", () => {
    const frame = encodeFrame(OPCODE.text, "Hi");
    const mask = frame.subarray(2, 6);
    expect(frame.subarray(0, 2).toString("hex")).toBe("8182"); // FIN text, MASK length 2
    expect(frame.length).toBe(8);
    expect(
      String.fromCharCode(
        (frame[6] as number) ^ (mask[0] as number),
        (frame[7] as number) ^ (mask[1] as number),
      ),
    ).toBe("Hi");
  });

  test("masks differ from frame to frame", () => {
    const masks = new Set(
      Array.from({ length: 3000 }, () => encodeFrame(OPCODE.text, "").readUInt32BE(2)),
    );
    expect(masks.size).toBeGreaterThan(2990);
  });

  test("a close reason is cut at a character's boundary, and an invalid code is omitted", () => {
    const long = encodeClose(1008, "ö".repeat(100));
    expect(long.length).toBe(2 + 4 + 2 + 122);
    expect(encodeClose(1006, "no such close frame").length).toBe(6);
  });

  test("a control payload over 125 bytes throws", () => {
    expect(() => encodeFrame(OPCODE.pong, Buffer.alloc(126))).toThrow(RangeError);
  });
});

function encodePing(payload: string): Buffer {
  return frameByWs(payload, { opcode: OPCODE.ping });
}
