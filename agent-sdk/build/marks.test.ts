/** That every place of a program on a board leads back to its source, modules included. */
import fc from "fast-check";
import { expect, it } from "vitest";
import { placeOf, type SourceMap } from "../src/board/source-map.ts";
import {
  exactDecimals,
  marksOfProgram,
  marksWithModules,
  readBoardModule,
  toModule,
  withModules,
} from "./device-program.ts";

/** What a build changes, and what it keeps. */
const PARTS = [
  "/* one */ ",
  "/* over\n lines: é */",
  " // to the end €\n",
  "0.3;",
  "1e-7 + .5;",
  '"Küche … 🌱";',
  '"\\u20ac\\u{1F331}\\u0022";',
  "`two\n lines`;",
  // biome-ignore lint/suspicious/noTemplateCurlyInString: a template of the program.
  "`— ${1.5}`;",
  "\n  ",
  "agent.storage;",
];

const partsOf = fc.array(fc.constantFrom(...PARTS), { maxLength: 12 });

/** A name that occurs nowhere else, after each part. */
const withNames = (parts: readonly string[], first: number): string =>
  parts.map((part, i) => `${part};name${first + i}z;`).join("");

const placesIn = (text: string): Map<string, readonly [line: number, column: number]> =>
  new Map(
    text
      .split("\n")
      .flatMap((line, i) =>
        Array.from(line.matchAll(/name\d+z/g), ({ 0: name, index }) => [name, [i + 1, index + 1]]),
      ),
  );

it.each([false, true])("finds every name where its source has it (Unicode: %s)", (isWide) => {
  const run = (parts: readonly string[], modules: readonly (readonly string[])[]): void => {
    const source = `${withNames(
      parts.filter((part) => !part.startsWith("agent")),
      0,
    )}
export default /* it */ (agent) => { ${withNames(parts, 100)} };${withNames([""], 200)}`;
    const sources = modules.map((some, i) => withNames(some, 1_000 * (i + 1)));
    const program = exactDecimals(toModule(source, isWide));
    const read = sources.map((text, i) => {
      const found = readBoardModule(text, isWide);
      if ("refused" in found) throw new Error(JSON.stringify(found));
      return { ...found, name: `M${i}` };
    });
    const map: SourceMap = {
      files: ["p.js", ...sources.map((_, i) => `m${i}.js`)],
      marks: marksWithModules(program, marksOfProgram(source, isWide), read),
    };
    const there = placesIn(withModules(program, read));
    const wanted = [source, ...sources].flatMap((text, file) =>
      Array.from(placesIn(text), ([name, [line, column]]) => ({ name, file, line, column })),
    );
    expect(wanted.length).toBe(there.size);
    for (const { name, file, line, column } of wanted) {
      const [atLine, atColumn] = there.get(name) ?? [0, 0];
      const found = placeOf(map, atLine, atColumn);
      expect({ name, ...found }).toEqual({ name, path: map.files[file], line, column });
    }
  };
  fc.assert(fc.property(partsOf, fc.array(partsOf, { maxLength: 3 }), run), { numRuns: 300 });
});

it("keeps what follows a replaced text within its source, and knows nothing of added code", () => {
  const source = "export default (agent) => { agent.x = 0.25 + agent.y; };";
  const program = exactDecimals(toModule(source));
  const map = { files: ["p.js"], marks: marksOfProgram(source) };
  const column = (text: string): number => program.indexOf(text) + 1;
  expect(program).toContain("(25/100)");
  expect(placeOf(map, 1, column("25/100"))?.column).toBe(source.indexOf("0.25") + 2);
  expect(placeOf(map, 1, column("100)") + 3)?.column).toBeLessThanOrEqual(
    source.indexOf(" + agent.y") + 1,
  );
  const wire = readBoardModule("exports.x = 1;") as { code: string; marks: never[]; modules: [] };
  const marks = marksWithModules(program, map.marks, [{ ...wire, name: "Wire" }]);
  expect(placeOf({ files: ["p.js", "Wire.js"], marks }, 2, 3)).toBe(null);
});
