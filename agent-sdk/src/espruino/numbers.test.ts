/**
 * Every double is transferred exactly, both ways: on Node, and on the engine with inexact numbers.
 */
import { fileURLToPath } from "node:url";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { buildForBoard } from "../../build/espruino.ts";
import { Engine } from "../engines/espruino-process.ts";
import { readNumber, writeNumber } from "./numbers.ts";

const binary = process.env.ESPRUINO_BIN;

const EDGES = [
  ...[0, 0.1 + 0.2, 1 / 3, 4.35, 1e21, 1e22, 1e23, 2 ** 53, 2 ** 53 + 2, 2 ** 64, 1e-6, 9.5e-7],
  ...[5e-324, 2.2250738585072014e-308, 2.225073858507201e-308, 1.7976931348623157e308, Math.PI],
];
const finite = fc.double({ noDefaultInfinity: true, noNaN: true });
/** Values as devices measure them: few digits, or the result of some arithmetic. */
const measured = fc.oneof(
  fc.tuple(fc.integer({ min: -1e6, max: 1e6 }), fc.nat(6)).map(([n, k]) => n / 10 ** k),
  fc.double({ min: -1e6, max: 1e6, noNaN: true }),
);
/** Its shortest text, the usual 17 digits, and other texts that a person may have typed. */
const textsOf = (value: number): string[] => [
  String(value),
  value.toExponential(16),
  value.toPrecision(40).replace("e+", "E"),
];
/** Exactly in the middle between two doubles, and slightly beside it. */
const MIDDLES = [
  ...["9007199254740993", "9007199254740993.0000000000000000000001", "9007199254740992.9999999"],
  ...["2.4703282292062327208e-324", "2.4703282292062328e-324"],
  ...["1.7976931348623159e308", "1e400", "1e-400", "0.0", "0e5", "12345678901234567890"],
];

it("writes every number so that it reads back as the same", () => {
  for (const value of EDGES) expect(Number(writeNumber(value)), String(value)).toBe(value);
  fc.assert(
    fc.property(fc.oneof(finite, measured), (value) => {
      const text = writeNumber(value);
      expect(JSON.parse(text)).toBe(value + 0);
      expect(text.length).toBeLessThan(26);
    }),
    { numRuns: 5000 },
  );
});

it("reads a text at the middle of two doubles, but for 1e-30, as one of them", () => {
  for (const text of ["3.743626360493413e-150", "308984926168550152811e-052"]) {
    expect(Math.abs(readNumber(text) / Number(text) - 1), text).toBeLessThanOrEqual(2 ** -52);
  }
});

it("writes measured values as JavaScript does", () => {
  for (const value of [21.5, -1.05, 1234.5678, -3]) {
    expect(writeNumber(value)).toBe(String(value));
  }
});

it("reads every text as JavaScript does", () => {
  for (const text of MIDDLES) expect(readNumber(text), text).toBe(Number(text));
  fc.assert(
    fc.property(fc.oneof(finite, measured), (value) => {
      for (const text of textsOf(value)) expect(readNumber(text)).toBe(Number(text));
    }),
    { numRuns: 3000 },
  );
});

const bytesOf = (value: number): string =>
  Buffer.from(new Float64Array([value]).buffer).toString("hex");
const pieces = <T>(list: readonly T[], length: number): T[][] =>
  Array.from({ length: Math.ceil(list.length / length) }, (_, i) =>
    list.slice(i * length, (i + 1) * length),
  );

describe.skipIf(binary === undefined)(
  `on a real Espruino${binary === undefined ? " (skipped: ESPRUINO_BIN names none)" : ""}`,
  { timeout: 600_000 },
  () => {
    it("writes and reads thousands of numbers as Node does", async () => {
      const engine = new Engine(binary as string);
      try {
        const path = fileURLToPath(new URL("../testing/espruino-numbers.ts", import.meta.url));
        await engine.install("numbers", buildForBoard(path).code);
        const run = async <T>(what: string, given: readonly T[]): Promise<string[]> => {
          const life = engine.start("tell(1);setInterval(()=>{},100000);");
          await life.told();
          const all: string[] = [];
          for (const piece of pieces(given, 20)) {
            life.type(`tell(require("numbers").${what}(${JSON.stringify(piece)}))`);
            all.push(...(await life.told<string[]>()));
          }
          await life.kill();
          return all;
        };
        const values = EDGES.concat(
          fc.sample(measured, { numRuns: 2000, seed: 1 }),
          fc.sample(finite, { numRuns: 50, seed: 2 }),
        );
        const written = await run("written", values.map(bytesOf));
        expect(written.map(Number)).toEqual(values.map((value) => value + 0));
        const texts = MIDDLES.concat(values.flatMap(textsOf).filter((_, i) => i % 3 === 1));
        const read = await run("read", texts);
        expect(read).toEqual(texts.map((text) => bytesOf(Number(text))));
      } finally {
        await engine.close();
      }
    });
  },
);
