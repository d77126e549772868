/** An event while the user types, tested on a small model of a terminal's screen. */
import { once } from "node:events";
import { createInterface } from "node:readline";
import { PassThrough } from "node:stream";
import { expect, it, onTestFinished } from "vitest";
import { printAbove } from "./above-prompt.ts";

const COLUMNS = 20;

/** The parts of a terminal that readline uses: CR, LF, and the sequences CSI n A, B, C, D, G, J. */
class Screen {
  readonly lines: string[][] = [[]];
  row = 0;
  column = 0;

  write(text: string): void {
    for (const [, sequence, final, character] of text.matchAll(
      // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for.
      /\x1b\[(\d*)([A-Z])|([\s\S])/g,
    )) {
      if (final !== undefined) this.move(final, Number(sequence || (final === "J" ? 0 : 1)));
      else this.put(character as string);
    }
  }

  private put(character: string): void {
    if (character === "\r") this.column = 0;
    else if (character === "\n") {
      this.row++;
      this.column = 0; // a terminal driver turns it into CR LF
    } else {
      if (this.column === COLUMNS) {
        this.row++;
        this.column = 0;
      }
      this.lines[this.row] ??= [];
      (this.lines[this.row] as string[])[this.column++] = character;
    }
    this.lines[this.row] ??= [];
  }

  private move(final: string, count: number): void {
    if (final === "A") this.row = Math.max(0, this.row - count);
    else if (final === "B") this.row += count;
    else if (final === "C") this.column += count;
    else if (final === "D") this.column = Math.max(0, this.column - count);
    else if (final === "G") this.column = count - 1;
    else if (final === "J") {
      this.lines.length = this.row + 1;
      this.lines[this.row] = (this.lines[this.row] ?? []).slice(0, this.column);
    } else throw new Error(`CSI ${final}`);
  }

  text(): string[] {
    return this.lines.map((line) => line.join("").trimEnd()).filter((line) => line !== "");
  }
}

const someone = (typed: string) => {
  const screen = new Screen();
  const output = Object.assign(new PassThrough(), { isTTY: true, columns: COLUMNS, rows: 24 });
  output.on("data", (bytes: Buffer) => screen.write(bytes.toString()));
  const input = new PassThrough();
  const prompt = createInterface({ input, output, terminal: true, prompt: "pump-7> " });
  onTestFinished(() => prompt.close());
  prompt.prompt();
  input.write(typed);
  return { screen, output, prompt, input };
};

it.each([
  ["nothing", ""],
  ["half a line", 'set {"a'],
  ["more than one row", 'set {"percent": 40, "of": "everything"}'],
])("keeps %s that was typed", async (_what, typed) => {
  const { screen, output, prompt, input } = someone(typed);
  await new Promise((resolve) => setImmediate(resolve));
  const before = screen.text();
  for (const event of ["one", "two"]) {
    printAbove(prompt, output, () => output.write(`pump-7 ${event}\n`));
  }
  await new Promise((resolve) => setImmediate(resolve));
  expect(screen.text()).toEqual(["pump-7 one", "pump-7 two", ...before]);
  expect(prompt.line).toBe(typed);
  const line = once(prompt, "line");
  input.write("!\r");
  expect(await line).toEqual([`${typed}!`]);
});
