/**
 * Texts come from devices, relays and people whom nobody trusts: no expression may need time that
 * grows with the square of their length (22 s for a line of 47,000 characters, once).
 */
import { globSync, readFileSync } from "node:fs";
import { parse } from "acorn";
import { full } from "acorn-walk";
import { transformSync } from "esbuild";
import { expect, it } from "vitest";

const SOURCES = "{protocol,agent-sdk,client-sdk,relay-server,tools,console}/src/**/*.{ts,tsx}";
const SHORT = 2_000;
const LONG = 10 * SHORT;
/** Ten where the time grows with the length, 100 where it grows with the square. */
const MOST = 40;
/** A clock's resolution, ms. */
const LEAST = 0.1;
const RUNS = 5;
/** What most expressions look for, beside their own characters. */
const PIECES = [..."a0 /:\r\n\t\"'\\.-_xF(\u00e9", "a ", "/a", "0;"];

interface Found {
  readonly file: string;
  readonly regex: RegExp;
}

const expressionsIn = (file: string): Found[] => {
  const loader = file.endsWith("x") ? "tsx" : "ts";
  const { code } = transformSync(readFileSync(file, "utf8"), { loader, target: "esnext" });
  const found: Found[] = [];
  full(parse(code, { ecmaVersion: "latest", sourceType: "module" }), (node) => {
    const { regex } = node as { regex?: { pattern: string; flags: string } };
    // Without an open end each place costs a constant.
    if (node.type === "Literal" && regex !== undefined && /[*+]|,\}/.test(regex.pattern))
      found.push({ file, regex: new RegExp(regex.pattern, regex.flags) });
  });
  return found;
};

const timeOf = (regex: RegExp, text: string): number => {
  const begun = performance.now();
  regex.lastIndex = 0;
  if (regex.global) text.replace(regex, "");
  else regex.test(text);
  return performance.now() - begun;
};

/** Each time is the least of some: another process may have had the machine. */
const isQuadratic = (regex: RegExp, textOf: (length: number) => string): boolean => {
  const [short, long] = [textOf(SHORT), textOf(LONG)];
  let [shortMs, longMs] = [Number.POSITIVE_INFINITY, Number.POSITIVE_INFINITY];
  for (let run = 0; run < RUNS; run++) {
    shortMs = Math.min(shortMs, timeOf(regex, short));
    longMs = Math.min(longMs, timeOf(regex, long));
    if (longMs < MOST * (LEAST + shortMs)) return false;
  }
  return true;
};

/** A text that makes it slow; undefined: there is none among those that are tried. */
const slowText = (regex: RegExp): string | undefined => {
  const words = regex.source.match(/[A-Za-z0-9_:/.-]{2,}/g) ?? [];
  const pieces = new Set([...PIECES, ...regex.source, ...words]);
  return [...pieces].find((piece) =>
    ["", "\u0001"].some((before) =>
      isQuadratic(regex, (length) => `${before}${piece.repeat(length / piece.length)}\u0001`),
    ),
  );
};

it("takes time that grows with a text's length only, in every expression", () => {
  const files = globSync(SOURCES).filter((file) => !/\.test\.|\.generated\.|testing\//.test(file));
  const found = new Map(
    files.flatMap(expressionsIn).map((one) => [`${one.file}: ${one.regex}`, one.regex]),
  );
  expect(found.size).toBeGreaterThan(50);
  const slow = [...found].flatMap(([name, regex]) => {
    const text = slowText(regex);
    return text === undefined ? [] : [`${name} with ${JSON.stringify(text)}`];
  });
  expect(slow).toEqual([]);
});
