/**
 * The map of a build (src/board/source-map.ts): the passes over a device program replace ranges of
 * text, so what they have replaced leads each place back to its source.
 */
import type { Mark } from "../src/board/source-map.ts";
import type { Change } from "./piece.ts";

/** What one pass has changed, in order. */
type Pass = readonly Change[];

/** The offset before a pass of each offset after it, and at the end the length. */
const offsetsBefore = (length: number, pass: Pass): number[] => {
  const before: number[] = [];
  let at = 0;
  const keep = (end: number): void => {
    for (; at < end; at++) before.push(at);
  };
  for (const { start, end, text } of [...pass].sort((a, b) => a.start - b.start)) {
    keep(start);
    for (let i = 0; i < text.length; i++) before.push(start);
    at = end;
  }
  keep(length + 1);
  return before;
};

/** Where each line begins. */
const beginnings = (text: string): number[] => [
  0,
  ...Array.from(text.matchAll(/\n/g), ({ index }) => index + 1),
];

/** Marks of a text that these passes have made of `source`; its only file has the number 0. */
export const marksOf = (source: string, text: string, passes: readonly Pass[]): Mark[] => {
  let offsets: number[] | null = null;
  for (const pass of passes) {
    const before = offsetsBefore(offsets === null ? source.length : offsets.length - 1, pass);
    const earlier: number[] | null = offsets;
    offsets = earlier === null ? before : before.map((at) => earlier[at] as number);
  }
  const lines = beginnings(source);
  const marks: Mark[] = [];
  let line = 1;
  let begin = 0;
  let sourceLine = 1;
  /** Of the last mark, from the text to its source. */
  let shift = 0;
  for (let at = 0; at <= text.length; at++) {
    const from = offsets?.[at] ?? at;
    const isWithin = at > 0 && from === (offsets?.[at - 1] ?? at - 1);
    while ((lines[sourceLine] ?? Number.POSITIVE_INFINITY) <= from) sourceLine++;
    // All of what replaces a range comes from where that begins.
    if (at === begin || (from !== at + shift && !isWithin)) {
      shift = from - at;
      const column = from - (lines[sourceLine - 1] as number) + 1;
      marks.push([line, at - begin + 1, 0, sourceLine, column]);
    }
    if (text[at] !== "\n") continue;
    line++;
    begin = at + 1;
  }
  return marks;
};

/** A text in its file, and how many lines and columns of other text are before it. */
interface Placed {
  readonly marks: readonly Mark[];
  readonly before: string;
}

/** The marks of a text that contains others; the first one's file has the number 0. */
export const marksOfAll = (parts: readonly Placed[]): Mark[] =>
  parts.flatMap(({ marks, before }, file) => {
    const lines = before.split("\n");
    const columns = (lines.at(-1) as string).length;
    return marks.map(([line, column, , sourceLine, sourceColumn]): Mark => {
      const put = line === 1 ? column + columns : column;
      return [line + lines.length - 1, put, file, sourceLine, sourceColumn];
    });
  });
