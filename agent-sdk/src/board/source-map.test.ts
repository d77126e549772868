/** Places as engines print them. */
import { expect, it } from "vitest";
import { inSource, type SourceMap } from "./source-map.ts";

const MAP: SourceMap = {
  files: ["/home/ada/pump.ts", "/home/ada/modules/DHT22.js"],
  marks: [
    [3, 1, 0, 3, 1],
    [4, 1, 0, 4, 1],
    [4, 30, 0, 4, 35],
    [9, 40, 1, 1, 1],
    [10, 1, 1, 2, 1],
  ],
};

// As Espruino 2v29.277 printed it.
const TRACE = `Uncaught Error: too far
    at inner (program:4:39)

                                    ^
    at outer (program.1:3:35)
    at program:9:40
    at blindrelay:1:5123
    at :1:7
    at program:12:1`;

it("translates the places of an engine's trace, and leaves what has no source", () => {
  expect(inSource(TRACE, MAP)).toBe(`Uncaught Error: too far
    at inner (/home/ada/pump.ts:4:44)

                                    ^
    at outer (/home/ada/pump.ts:3:35)
    at /home/ada/modules/DHT22.js:1:1
    at blindrelay:1:5123
    at :1:7
    at program:12:1`);
  expect(inSource(TRACE, null)).toBe(TRACE);
});

it("shows paths as it is told to, and nothing else as a place", () => {
  const show = (path: string): string => path.split("/").at(-1) as string;
  expect(inSource("uncaught: no (program:10:2)", MAP, show)).toBe("uncaught: no (DHT22.js:2:2)");
  const others = "my-program:3:1 /program:3:1 program:3 program:3:1:2 program.2:3:1";
  expect(inSource(others, MAP)).toBe(others);
});

it("names the file that was pushed to an agent on Node, whose text is its source", () => {
  const text = `the handler of "x" failed
    at file:///var/lib/agent%201/program.0.mjs?3:12:9
    at inner (/var/lib/program.1.mjs:4:2)`;
  expect(inSource(text, { files: ["valve.ts"], marks: null })).toBe(`the handler of "x" failed
    at valve.ts:12:9
    at inner (valve.ts:4:2)`);
});
