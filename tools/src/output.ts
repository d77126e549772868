/** Standard output is for answers, standard error for all else (commands.md). */

/** What agents and relays say must not steer the terminal it is printed on. */
const harmless = (text: string): string =>
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for.
  text.replace(/[\u0000-\u0009\u000b-\u001f\u007f-\u009f]/g, "\ufffd");

/** Lines of answer for a person or a shell. */
export const answer = (text: string): void => {
  process.stdout.write(`${harmless(text)}\n`);
};

/** One JSON document on one line. */
export const answerJson = (value: unknown): void => {
  process.stdout.write(`${JSON.stringify(value)}\n`);
};

/** Lines for the person who watches. */
export const tell = (text: string): void => {
  process.stderr.write(`${harmless(text)}\n`);
};

/** Rows under a header, in columns as wide as their widest cell. */
export const table = (header: readonly string[], rows: readonly (readonly string[])[]): string => {
  const all = [header, ...rows];
  const widths = header.map((_, column) => Math.max(...all.map((row) => row[column]?.length ?? 0)));
  return all
    .map((row) =>
      row
        .map((cell, column) => cell.padEnd(widths[column] ?? 0))
        .join("  ")
        .trimEnd(),
    )
    .join("\n");
};
