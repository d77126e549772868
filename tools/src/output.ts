/** Standard output is for results, standard error for everything else (docs/commands.md). */

/**
 * Text from agents and relays must not control the terminal it is printed on, nor reverse its
 * characters (Unicode's bidirectional controls): all control characters except the line end.
 */
const STEERING =
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for.
  /[\u0000-\u0009\u000b-\u001f\u007f-\u009f\u2028\u2029\u202a-\u202e\u2066-\u2069]/g;

const harmless = (text: string): string => text.replace(STEERING, "\ufffd");

/** For names from outside: they must not start a new line. */
export const oneLine = (text: string): string => text.replaceAll("\n", "\ufffd");

/** JSON.stringify leaves some of them unchanged; escaped, they mean the same. */
export const jsonText = (value: unknown, indent = 0): string =>
  JSON.stringify(value, null, indent).replace(
    STEERING,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );

/** A result as text, for a person or a shell. */
export const printText = (text: string): void => {
  process.stdout.write(`${harmless(text)}\n`);
};

/** A result as one JSON document on one line. */
export const printJson = (value: unknown): void => {
  process.stdout.write(`${jsonText(value)}\n`);
};

/** The flag of every command that can print JSON. */
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

const GAP = "  ";
/** No column is cut to less. */
const NARROWEST = 6;

/** What a terminal shows in a row; nothing is cut elsewhere. */
const columnsOf = ({ isTTY, columns }: NodeJS.WriteStream): number =>
  isTTY === true && columns > 0 ? columns : Number.POSITIVE_INFINITY;

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
  const widths = header.map((_, column) => Math.max(...all.map((row) => row[column]?.length ?? 0)));
  for (;;) {
    const others = widths.slice(1);
    const widest = 1 + others.indexOf(Math.max(...others));
    const total = widths.reduce((sum, width) => sum + width) + GAP.length * others.length;
    if (total <= space || !((widths[widest] ?? 0) > NARROWEST)) break;
    widths[widest] = (widths[widest] as number) - 1;
  }
  const cell = (text: string, width: number): string =>
    text.length > width ? `${text.slice(0, width - 1)}…` : text.padEnd(width);
  return all
    .map((row) =>
      row
        .map((text, column) => cell(text, widths[column] ?? 0))
        .join(GAP)
        .trimEnd(),
    )
    .join("\n");
};
