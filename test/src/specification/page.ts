/**
 * docs/specification.md against the tests and against the specification's own text: a row for each
 * statement, a test for each row, a decision for whatever is not shown.
 */

/** Lines that only introduce what follows; they are not statements. */
const INTRODUCTIONS = [
  "This document covers the whole service: the REST API, the relay WebSocket endpoint and the encrypted packet format carried inside relay sessions.",
  "The service is a control plane with three surfaces:",
  "Additional surfaces:",
  "Relay rules:",
];

export interface Row {
  readonly id: string;
  readonly statement: string;
  /** Paths from the root. */
  readonly files: readonly string[];
  /** The `*.test.ts` file without its ending. */
  readonly test: string;
}

export interface Page {
  readonly rows: readonly Row[];
  readonly decisions: ReadonlyMap<string, string>;
}

/** Tables whose first column is `row`: four columns are statements, two are decisions. */
export const readPage = (markdown: string): Page => {
  const rows: Row[] = [];
  const decisions = new Map<string, string>();
  for (const cells of markdown.split("\n").flatMap(cellsOf)) {
    const [id, first, where, test] = cells as [string, string, string?, string?];
    if (!/^[a-z0-9_]+(\.[a-z0-9_]+)+$/.test(id)) continue;
    if (where === undefined || test === undefined) decisions.set(id, first);
    else rows.push({ id, statement: first, files: quoted(where), test });
  }
  return { rows, decisions };
};

/** The statements of specification.txt in order: table rows, list items and sentences. */
export const readStatements = (specification: string): string[] => {
  const statements: string[] = [];
  let above = "";
  for (const line of specification.split("\n").map((each) => each.trim())) {
    const [cells] = cellsOf(line);
    const isTableHead = cells !== undefined && !above.startsWith("|");
    above = line;
    if (line === "" || line.startsWith("#") || isTableHead || /^\|[-| ]+\|$/.test(line)) continue;
    statements.push(
      cells === undefined
        ? line.replace(/^(\d+\.|-) /, "")
        : cells.join(" · ").replace(/[ ·]+$/, ""),
    );
  }
  return statements.filter((statement) => !INTRODUCTIONS.includes(statement));
};

/** Names of the tests in a source: each is in its own call, at the beginning of a line. */
export const readTests = (source: string): string[] =>
  [...source.matchAll(/^test(?:\.\w+(?:\([^)]*\))?)?\(\s*"([^"]+)"/gm)].map(
    ([, name]) => name as string,
  );

/**
 * The errors of the page, one sentence each. `tests`: names by test file, as in the last column.
 */
export const checkPage = (
  { rows, decisions }: Page,
  tests: ReadonlyMap<string, readonly string[]>,
  exists: (path: string) => boolean,
): string[] => {
  const problems: string[] = [];
  const known = new Map(rows.map((row) => [row.id, row]));
  const ids = rows.map(({ id }) => id);
  for (const id of ids.filter((each, i) => ids.indexOf(each) !== i))
    problems.push(`${id} stands twice`);
  for (const { id, statement, files, test } of rows) {
    if (!(tests.get(test) ?? []).includes(id)) problems.push(`${id} has no test in ${test}`);
    if (files.length === 0) problems.push(`${id} names no file`);
    for (const file of files)
      if (!exists(file)) problems.push(`${id} names ${file}, which is not there`);
    if (statement.includes("not shown") && !decisions.has(id))
      problems.push(`${id} has no decision`);
  }
  for (const [file, names] of tests) {
    for (const name of names) {
      if (known.get(name)?.test !== file) problems.push(`the test ${name} in ${file} has no row`);
    }
    if (new Set(names).size < names.length) problems.push(`${file} has two tests of one name`);
  }
  for (const id of decisions.keys())
    if (!known.has(id)) problems.push(`no row ${id} to decide about`);
  return problems;
};

/** Where the page's statements differ from the specification's; both in order. */
export const compareStatements = (
  rows: readonly Row[],
  statements: readonly string[],
): string[] => {
  const onPage = rows.map(({ statement }) => statement);
  const missing = statements.filter((each) => count(statements, each) > count(onPage, each));
  const invented = onPage.filter((each) => count(onPage, each) > count(statements, each));
  const problems = [
    ...missing.map((each) => `not on the page: ${each}`),
    ...invented.map((each) => `not in the specification: ${each}`),
  ];
  const moved = onPage.findIndex((each, i) => each !== statements[i]);
  return problems.length > 0 || moved < 0 ? problems : [`out of order: ${onPage[moved]}`];
};

const count = (all: readonly string[], one: string): number =>
  all.filter((each) => each === one).length;

/** The cells of a table row; `\|` is a bar inside a cell. */
const cellsOf = (line: string): string[][] =>
  line.startsWith("|")
    ? [
        line
          .replace(/^\||\|$/g, "")
          .split(/(?<!\\)\|/)
          .map((cell) => cell.trim().replaceAll("\\|", "|")),
      ]
    : [];

const quoted = (cell: string): string[] =>
  [...cell.matchAll(/`([^`]+)`/g)].map(([, path]) => path as string);
