/** Standard output is for results, standard error for everything else (docs/commands.md). */
import { fstatSync } from "node:fs";
import { TOKEN_PATTERN } from "@blindrelay/protocol";
import { harmless, STEERING } from "@blindrelay/protocol/terminal-text";

/** For names from outside: they must not start a new line. */
export const oneLine = (text: string): string => text.replaceAll("\n", "\ufffd");

/** A time of the relay's, to the second; null: never. */
export const when = (time: string | null): string => time?.replace(/\.\d+Z$/, "Z") ?? "never";

/** JSON.stringify leaves some of them unchanged; escaped, they mean the same. */
export const jsonText = (value: unknown, indent = 0): string =>
  JSON.stringify(value, null, indent).replace(
    STEERING,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );

/**
 * For commands that serve devices: whoever collects their output may go away, or have a full disk,
 * and then only the output ends.
 */
export const serveUnread = (): void => {
  process.stdout.removeAllListeners("error").on("error", () => undefined);
};

const SECRET = new RegExp(TOKEN_PATTERN);

/** Once; false where that cannot be known. Modes mean nothing on Windows. */
let othersMayRead = (): boolean => {
  let may = false;
  try {
    const output = fstatSync(1);
    may = process.platform !== "win32" && output.isFile() && (output.mode & 0o077) !== 0;
  } catch {
    // It is closed.
  }
  othersMayRead = () => false;
  return may;
};

/** The shell makes the file of `> FILE`, mostly for everybody to read. */
const write = (text: string): void => {
  if (SECRET.test(text) && othersMayRead())
    printStatus("others on this machine may read the file with these secrets: chmod 600 it");
  process.stdout.write(`${text}\n`);
};

/** A result as text, for a person or a shell. */
export const printText = (text: string): void => write(harmless(text));

/** A result as one JSON document on one line. */
export const printJson = (value: unknown): void => write(jsonText(value));

export interface JsonFlag {
  readonly json?: boolean;
}

/** A result: as JSON with `--json`, else as text. */
export const printResult = ({ json }: JsonFlag, value: unknown, text: string): void => {
  if (json === true) printJson(value);
  else printText(text);
};

/** Lines for the user who watches. */
export const printStatus = (text: string): void => {
  process.stderr.write(`${harmless(text)}\n`);
};

/** Takes two columns of a terminal: East Asian letters and most emoji. */
const WIDE =
  /[\u1100-\u115f\u2e80-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\uffe0-\uffe6\u{20000}-\u{3fffd}]|\p{Emoji_Presentation}/u;
/** Takes none: accents written apart, joiners, variants. */
const NARROW = /[\p{Mn}\p{Me}\p{Cf}]/u;

const columnsFor = (one: string): number => (NARROW.test(one) ? 0 : WIDE.test(one) ? 2 : 1);

const widthOf = (text: string): number => {
  let columns = 0;
  for (const one of text) columns += columnsFor(one);
  return columns;
};

const GAP = "  ";
/** No column is cut to less. */
const NARROWEST = 6;

/** What a terminal shows in a row; nothing is cut elsewhere. */
const columnsOf = ({ isTTY, columns }: NodeJS.WriteStream): number =>
  isTTY === true && columns > 0 ? columns : Number.POSITIVE_INFINITY;

const cellOf = (text: string, width: number): string => {
  if (widthOf(text) <= width) return text + " ".repeat(width - widthOf(text));
  let cut = "";
  let columns = 0;
  for (const one of text) {
    columns += columnsFor(one);
    if (columns >= width) break;
    cut += one;
  }
  return `${cut}…${" ".repeat(width - widthOf(`${cut}…`))}`;
};

/**
 * Rows under a header, in columns as wide as their widest cell. For a terminal that is too narrow,
 * cells of the widest columns end with "…"; those of the first column, which names the row, do not.
 */
export const table = (
  header: readonly string[],
  rows: readonly (readonly string[])[],
  space = columnsOf(process.stdout),
): string => {
  const all = [header, ...rows.map((row) => row.map(oneLine))];
  const widths = header.map((_, column) =>
    all.reduce((most, row) => Math.max(most, widthOf(row[column] ?? "")), 0),
  );
  for (;;) {
    const others = widths.slice(1);
    const widest = 1 + others.indexOf(Math.max(...others));
    const total = widths.reduce((sum, width) => sum + width) + GAP.length * others.length;
    if (total <= space || !((widths[widest] ?? 0) > NARROWEST)) break;
    widths[widest] = (widths[widest] as number) - 1;
  }
  return all
    .map((row) =>
      row
        .map((text, column) => cellOf(text, widths[column] ?? 0))
        .join(GAP)
        .trimEnd(),
    )
    .join("\n");
};

/** A list: as JSON with `--json`, else as a table. Of an empty one, the user is told `none`. */
export const printList = <Item>(
  flags: JsonFlag,
  items: readonly Item[],
  none: string,
  header: readonly string[],
  row: (item: Item) => readonly string[],
): void => {
  if (flags.json !== true && items.length === 0) printStatus(none);
  printResult(flags, { items }, table(header, items.map(row)));
};
