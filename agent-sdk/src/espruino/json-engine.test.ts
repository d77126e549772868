/** JSON on a real Espruino: every text is read as on Node, and none takes long for its length. */
import { fileURLToPath } from "node:url";
import { decodeJson } from "@blindrelay/protocol/crypto";
import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { buildForBoard } from "../../build/espruino.ts";
import { Engine, type EngineProcess, findEspruino } from "../engines/espruino-process.ts";
import type { Read } from "../testing/espruino-json.ts";
import { brokenText, jsonText } from "../testing/json-texts.ts";

const binary = findEspruino("ESPRUINO_BIN");
const PIECE = 10;
/** Characters of a text whose reading is timed. */
const LENGTH = 600;
/** Of the time that a list of short fractions of the same length takes. */
const MOST_TIMES = 8;

const digits = fc.string({ unit: fc.constantFrom(..."0123459_"), minLength: 1, maxLength: 40 });
/** Numbers as the engine's own parser takes them, and many that are none. */
const number = fc
  .tuple(
    fc.constantFrom("", "-", "- ", "+", "0x", ".", "(", "/**/"),
    fc.oneof(digits, fc.constantFrom("0", "1", "9")),
    fc.oneof(
      fc.constant(""),
      digits.map((text) => `.${text}`),
    ),
    fc.oneof(
      fc.constant(""),
      fc
        .tuple(fc.constantFrom("e", "E-", "e+"), fc.oneof(digits, fc.nat(340)))
        .map((e) => e.join("")),
    ),
  )
  .map((parts) => parts.join(""));
const piece = fc.oneof(
  number,
  jsonText,
  fc.constantFrom("\\", "\\u00e9", '"\\n"', " ", "[", "{", '{"a":', '"', "'", "/*", "//", "true"),
);
const anyText = fc
  .oneof(jsonText, number, fc.double({ noNaN: true }).map(String), brokenText(jsonText, piece))
  // A `__proto__` cannot be an own member there, and a strict text may be nested 16 levels deep.
  .filter((text) => !text.includes("__proto__") && !/([[{].*){17}/s.test(text));

/** One piece again and again, as a list or run together. */
const monotonous = fc
  .tuple(fc.oneof(number, piece), fc.constantFrom(",", "", " "))
  .map(([one, between]) => `[${`${one}${between}`.repeat(LENGTH).slice(0, LENGTH)}1]`);

/** Without negative zeros, which JSON.stringify writes as 0. */
const plus0 = (value: unknown): unknown =>
  value === undefined ? undefined : JSON.parse(JSON.stringify(value));

/** Typed at the engine's console, which takes DEL for a key and echoes what marks a told value. */
const typed = (texts: readonly string[]): string =>
  JSON.stringify(texts).replaceAll("\x7f", "\\x7f").replaceAll("@", "\\x40");

describe.skipIf(binary === null)(
  `on a real Espruino${binary === null ? " (skipped: ESPRUINO_BIN names none)" : ""}`,
  { timeout: 600_000 },
  () => {
    let engine: Engine;
    let life: EngineProcess;
    beforeAll(async () => {
      engine = new Engine(binary as string);
      const path = fileURLToPath(new URL("../testing/espruino-json.ts", import.meta.url));
      await engine.install("json", buildForBoard(path).code);
      life = engine.start("tell(1);setInterval(()=>{},100000);");
      await life.told();
    });
    afterAll(() => engine.close());

    const read = async (texts: readonly string[]) => {
      life.type(`tell(require("json").read(${typed(texts)}))`);
      return life.told<Read[]>();
    };

    it("every text is read as on Node", async () => {
      const texts = fc.array(anyText, { minLength: PIECE, maxLength: PIECE });
      await fc.assert(
        fc.asyncProperty(texts, async (some) => {
          const got = await read(some);
          some.forEach((given, i) => {
            const wanted = decodeJson(given);
            const text = got[i]?.text;
            if (text === "") expect(JSON.stringify(wanted), given).toContain("null");
            else expect(text ? JSON.parse(text) : undefined, given).toEqual(plus0(wanted));
          });
        }),
        { numRuns: 200 },
      );
    });

    it("none takes long for its length", async () => {
      const usual = `[${"1.5,".repeat(LENGTH / 4)}1]`;
      const times = await read([usual, usual, usual]);
      const shortest = Math.min(...times.map(({ seconds }) => seconds));
      await fc.assert(
        fc.asyncProperty(monotonous, async (text) => {
          const [first] = await read([text]);
          expect(first?.seconds).toBeLessThan(shortest * MOST_TIMES);
        }),
        { numRuns: 200 },
      );
    });
  },
);
