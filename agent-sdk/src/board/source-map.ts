/**
 * Where a place of a program on a board is in its source. Espruino names places of a file in its
 * Storage, as `    at inner (program:4:39)`, and Node those of a pushed program's file; the program
 * on the device has other columns than its source, and modules behind it.
 */

/** A place of the program on the device, and where in which of the files it comes from. */
export type Mark = readonly [
  line: number,
  column: number,
  file: number,
  sourceLine: number,
  sourceColumn: number,
];

export interface SourceMap {
  /** Paths, the program's first. */
  readonly files: readonly string[];
  /**
   * In order. What follows a mark on its line comes from what follows its source, up to the source
   * of the next mark. Null: the program is its source.
   */
  readonly marks: readonly Mark[] | null;
}

export interface Place {
  readonly path: string;
  /** From 1. */
  readonly line: number;
  /** From 1. */
  readonly column: number;
}

/** Null for code that a build has added. */
export const placeOf = (map: SourceMap, line: number, column: number): Place | null => {
  const path = map.files[0] as string;
  if (map.marks === null) return { path, line, column };
  const on = map.marks.filter((mark) => mark[0] === line);
  const index = on.findLastIndex((mark) => mark[1] <= column);
  const mark = on[index];
  if (mark === undefined) return null;
  const [, markColumn, file, sourceLine, sourceColumn] = mark;
  const next = on[index + 1];
  const limit =
    next !== undefined && next[2] === file && next[3] === sourceLine
      ? Math.max(sourceColumn, next[4])
      : Number.POSITIVE_INFINITY;
  return {
    path: map.files[file] as string,
    line: sourceLine,
    column: Math.min(sourceColumn + column - markColumn, limit),
  };
};

/**
 * The two slots of a board, and of an agent on Node. A path is looked for where one may begin, so
 * that the time for a device's text grows with its length only.
 */
const PLACES =
  /(?<![\w.:/\\-])program(?:\.1)?:(\d+):(\d+)(?![\w:])|(?<![^\s()"'])[^\s()"']*[/\\]program\.[01]\.mjs(?:\?[^\s():]{0,32})?:(\d+):(\d+)(?![\w:])/g;

/**
 * What a device said, with places of its program as FILE:LINE:COLUMN of the source. `show`: a path
 * as the user is to read it.
 */
export const inSource = (
  text: string,
  map: SourceMap | null,
  show: (path: string) => string = (path) => path,
): string => {
  if (map === null) return text;
  return text.replace(PLACES, (said, ...numbers: (string | undefined)[]) => {
    const [line, column] = numbers.slice(0, 4).filter((digits) => digits !== undefined);
    const place = placeOf(map, Number(line), Number(column));
    return place === null ? said : `${show(place.path)}:${place.line}:${place.column}`;
  });
};
