/** The packet: it opens to what was sealed, a modified one does not open, and reading is strict. */
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { asciiBytes, asciiText } from "../encoding/bytes.ts";
import { MAX_PLAINTEXT_BYTES, MAX_SEQ } from "../spec.ts";
import { nodeSuite } from "../suites/node.ts";
import { openPacket, parsePacket, sealPacket } from "./packet.ts";
import { extractPrk } from "./secret-keys.ts";
import { deriveSessionKeys } from "./session-keys.ts";
import type { Version } from "./versions.ts";

const suite = nodeSuite();
const prk = extractPrk(suite, "lamp-1", "a secret of the tests, and long enough");

// A separate sid for each run, because a sid must not see a seq twice.
let runs = 0;
const freshSid = (): string => {
  runs++;
  return `${String(runs).padStart(22, "C")}.${"A".repeat(22)}`;
};

const anyChar = fc.integer({ min: 0, max: 0xffff }).map((code) => String.fromCharCode(code));
const version = fc.constantFrom<Version>("1", "2", "3", "4");
const seqs = fc.oneof(
  fc.integer({ min: 1, max: MAX_SEQ }),
  fc.constantFrom(1, 31, 32, 33, 65535, 65536, 2 ** 31 - 1, 2 ** 31, MAX_SEQ - 1, MAX_SEQ),
);

describe("a sealed packet", () => {
  it("is read and opened as it was sealed, and by no other direction's key", () => {
    fc.assert(
      fc.property(version, seqs, fc.uint8Array({ maxLength: 300 }), (v, seq, plaintext) => {
        const sid = freshSid();
        const keys = deriveSessionKeys(suite, prk, v, sid);
        const text = sealPacket(suite, keys.c2a, v, sid, seq, plaintext);
        expect(Object.keys(JSON.parse(text) as object)).toEqual(["v", "sid", "seq", "p"]);
        const packet = parsePacket(text);
        if (packet === null) throw new Error(`refused: ${text}`);
        expect(packet).toMatchObject({ v, sid, seq });
        expect(`${packet.first}.${packet.second}`).toBe(sid);
        const opened = openPacket(suite, keys.c2a, packet);
        expect(opened && new Uint8Array(opened)).toEqual(plaintext);
        expect(openPacket(suite, keys.a2c, packet)).toBeNull();
      }),
    );
  });

  it("does not open after a character of its text was changed, cut or added", () => {
    fc.assert(
      fc.property(
        version,
        seqs,
        fc.uint8Array({ maxLength: 60 }),
        fc.nat(),
        fc.oneof(fc.constant(""), fc.string({ unit: "binary-ascii", maxLength: 2 })),
        fc.boolean(),
        (v, seq, plaintext, place, put, replace) => {
          const sid = freshSid();
          const keys = deriveSessionKeys(suite, prk, v, sid);
          const text = sealPacket(suite, keys.c2a, v, sid, seq, plaintext);
          const at = place % text.length;
          const touched = text.slice(0, at) + put + text.slice(at + (replace ? 1 : 0));
          const packet = parsePacket(touched);
          if (packet === null) return;
          const same = parsePacket(text);
          const means = (one: typeof packet) => [one.v, one.sid, one.seq, ...one.sealed].join();
          // Only the form may differ: whitespace, or an irrelevant field.
          if (same !== null && means(packet) === means(same)) return;
          const held = deriveSessionKeys(suite, prk, packet.v, packet.sid);
          expect(openPacket(suite, held.c2a, packet)).toBeNull();
          expect(openPacket(suite, keys.c2a, packet)).toBeNull();
        },
      ),
      { numRuns: 1000 },
    );
  });

  it("contains at most 47,000 bytes, and one more is refused", () => {
    const sid = freshSid();
    const keys = deriveSessionKeys(suite, prk, "1", sid);
    const largest = sealPacket(suite, keys.c2a, "1", sid, 1, new Uint8Array(MAX_PLAINTEXT_BYTES));
    expect(parsePacket(largest)?.sealed.length).toBe(MAX_PLAINTEXT_BYTES + 16);
    const larger = sealPacket(
      suite,
      keys.c2a,
      "1",
      sid,
      2,
      new Uint8Array(MAX_PLAINTEXT_BYTES + 1),
    );
    expect(parsePacket(larger)).toBeNull();
  });

  it("differs with every seq, so that no nonce and no AAD are the same", () => {
    const sid = freshSid();
    const keys = deriveSessionKeys(suite, prk, "1", sid);
    const places = [1, 2, 256, 65536, 2 ** 24, 2 ** 31, 2 ** 32 - 1];
    const texts = places.map((seq) => sealPacket(suite, keys.c2a, "1", sid, seq, asciiBytes("x")));
    const sealed = texts.map((text) => (JSON.parse(text) as { p: string }).p);
    expect(new Set(sealed).size).toBe(places.length);
  });
});

describe("a text that differs slightly from our own form", () => {
  const sid = "EBESExQVFhcYGRobHB0eHw.A";
  const p = `${"B".repeat(23)}A`;
  const head = `{"v":"1","sid":"${sid}","seq":7,"p":"`;
  const own = parsePacket(`${head}${p}"}`);

  it.each([
    ["escapes in p", `${head}\\u0042${p.slice(1)}"}`],
    ["escapes in the sid", `${head.replace('"E', '"\\u0045')}${p}"}`],
    ["a text behind p", `${head}${p}","x":"y"}`],
    ["another p before", `${head}AAAA","p":"${p}"}`],
    ["a blank at its end", `${head}${p}"} `],
  ])("means the same: %s", (_what, text) => {
    expect(own).not.toBeNull();
    expect(parsePacket(text)).toEqual(own);
  });

  it.each([
    ["a type", `${head}${p}","type":"relay"}`],
    ["another seq literal", `${head.replace("7", "7.0")}${p}"}`],
    ["no end", `${head}${p}"`],
    ["a character outside the alphabet", `${head}+${p.slice(1)}"}`],
  ])("is refused as in any other form: %s", (_what, text) => {
    expect(parsePacket(text)).toBeNull();
  });
});

/** Slow and independent: JSON.parse reads the text, patterns define what is allowed. */
const oracle = (text: string): string | null => {
  if (text.length > 65536) return null;
  const literals = new Map<unknown, string>();
  const keep = function (this: unknown, key: string, value: unknown, at?: { source?: string }) {
    if (key === "seq" && at?.source !== undefined) literals.set(this, at.source);
    return value;
  };
  let root: unknown;
  try {
    root = JSON.parse(text, keep);
  } catch {
    return null;
  }
  if (root === null || typeof root !== "object" || Array.isArray(root)) return null;
  const value: { [key: string]: unknown } = Object.fromEntries(
    Object.getOwnPropertyNames(root).map((key) => [
      `=${key}`,
      (root as { [key: string]: unknown })[key],
    ]),
  );
  const literal = literals.get(root);
  if (typeof value["=type"] === "string") return null;
  const [v, sid, seq, p] = [value["=v"], value["=sid"], value["=seq"], value["=p"]];
  if (typeof v !== "string" || !["1", "2", "3", "4"].includes(v)) return null;
  if (typeof sid !== "string" || !/^[A-Za-z0-9_-]{22}(\.[A-Za-z0-9_-]{1,64})?$/.test(sid))
    return null;
  if (typeof seq !== "number" || !/^(0|[1-9][0-9]{0,9})$/.test(literal ?? "")) return null;
  if (seq > 4294967295 || typeof p !== "string") return null;
  const bytes = Buffer.from(p, "base64url");
  if (bytes.toString("base64url") !== p || bytes.length < 16 || bytes.length > 47016) return null;
  if (!sid.includes(".") && seq !== 0) return null;
  if (seq === 0 && bytes.length !== 16) return null;
  return [v, sid, seq, bytes.toString("hex")].join();
};

const C = "EBESExQVFhcYGRobHB0eHw";
const TAG = "A".repeat(22);
const seqLiteral = fc.oneof(
  { weight: 4, arbitrary: fc.integer({ min: 0, max: MAX_SEQ + 2 }).map(String) },
  { weight: 4, arbitrary: fc.constantFrom("0", "1") },
  {
    weight: 3,
    arbitrary: fc.constantFrom(
      "1.0",
      "1e0",
      "-0",
      "0.0",
      "0e0",
      "10e-1",
      '"1"',
      "null",
      "[1,2]",
      '{"seq":1}',
      "[]",
      "{}",
      '"seq"',
      '"\\"seq\\":1"',
    ),
  },
);
const pairs: [string, fc.Arbitrary<string>][] = [
  ["v", fc.constantFrom('"1"', '"1"', '"1"', '"2"', '"\\u0031"', '"4"', '"5"', "1")],
  [
    "sid",
    fc.constantFrom(
      `"${C}"`,
      `"${C}.${C}"`,
      `"${C}.${C}"`,
      `"${C}.x"`,
      `"${C}."`,
      `"${C}.${"x".repeat(65)}"`,
      `"${C.slice(1)}+"`,
    ),
  ],
  ["seq", seqLiteral],
  [
    "p",
    fc.oneof(
      fc.constantFrom(
        `"${TAG}"`,
        `"${TAG}"`,
        `"${TAG}="`,
        `"${TAG.slice(1)}"`,
        `"${TAG.slice(1)}B"`,
      ),
      fc
        .uint8Array({ minLength: 16, maxLength: 40 })
        .map((b) => JSON.stringify(Buffer.from(b).toString("base64url"))),
    ),
  ],
];
const noise: [string, fc.Arbitrary<string>][] = [
  [
    "x",
    fc.constantFrom(
      "1.0",
      '{"seq":1}',
      '[{"seq":1.0},{}]',
      '"\\"seq\\":1.0,"',
      '"\\\\"',
      '"{["',
      '"seq"',
    ),
  ],
  ["__proto__", fc.constantFrom('{"seq":1}', "null", `{"type":"relay"}`)],
  ["type", fc.constantFrom('"relay"', "1", "null")],
  ["\\u0073eq", seqLiteral],
  ["seq", seqLiteral],
  ["\\\\seq", fc.constant("1")],
];
const blank = fc.constantFrom("", "", "", " ", "\n", "\t", "\r\n ");
const field = (list: [string, fc.Arbitrary<string>][]): fc.Arbitrary<string> =>
  fc.oneof(
    ...list.map(([key, value]) =>
      fc
        .tuple(value, blank, blank, blank)
        .map(([text, a, b, c]) => `${a}"${key}"${b}:${c}${text}${a}`),
    ),
  );
const nearlyPacket = fc
  .tuple(
    fc.tuple(...pairs.map((one) => field([one]))),
    fc.array(field(noise), { maxLength: 3 }),
    fc.nat(),
  )
  .chain(([all, more]) => fc.shuffledSubarray([...all, ...more], { minLength: all.length }))
  .map((list) => `{${list.join(",")}}`);

describe("reading a packet", () => {
  it("accepts exactly what a slow independent reader accepts", () => {
    let accepted = 0;
    fc.assert(
      fc.property(nearlyPacket, (text) => {
        const packet = parsePacket(text);
        const mine =
          packet &&
          [packet.v, packet.sid, packet.seq, Buffer.from(packet.sealed).toString("hex")].join();
        expect(mine).toBe(oracle(text));
        if (packet !== null) accepted++;
      }),
      { numRuns: 4000 },
    );
    expect(accepted).toBeGreaterThan(40);
  });

  it("never throws, whatever the text", () => {
    fc.assert(
      fc.property(fc.oneof(fc.string({ unit: anyChar }), fc.json()), (text) => {
        expect(parsePacket(text) === null || oracle(text) !== null).toBe(true);
      }),
    );
    for (const text of ["[".repeat(65536), '{"a":'.repeat(10000), `"${"\\".repeat(60000)}`]) {
      expect(parsePacket(text)).toBeNull();
    }
  });

  it("refuses a text over 65,536 characters before it parses it", () => {
    const text = `{"v":"1","sid":"${C}","seq":0,"p":"${TAG}"}`;
    expect(parsePacket(text.padEnd(65536, " "))).not.toBeNull();
    expect(parsePacket(text.padEnd(65537, " "))).toBeNull();
  });

  it("accepts seq up to 2^32 - 1 and no further", () => {
    const at = (seq: string) =>
      parsePacket(`{"v":"1","sid":"${C}.${C}","seq":${seq},"p":"${TAG}"}`)?.seq ?? null;
    for (const seq of [31, 32, 33, 65535, 65536, 2 ** 31 - 1, 2 ** 31, 2 ** 32 - 1]) {
      expect(at(String(seq))).toBe(seq);
    }
    for (const seq of ["4294967296", "4294967297", "9999999999", "10000000000"]) {
      expect(at(seq)).toBeNull();
    }
  });
});

it("keeps plaintext and text apart: a packet's own characters never end its JSON", () => {
  const sid = freshSid();
  const keys = deriveSessionKeys(suite, prk, "1", sid);
  const text = sealPacket(suite, keys.a2c, "1", sid, 1, asciiBytes('"}\\'));
  const packet = parsePacket(text);
  expect(packet && asciiText(openPacket(suite, keys.a2c, packet) as Uint8Array)).toBe('"}\\');
});
