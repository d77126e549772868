import { expect, it } from "vitest";
import {
  asFailure,
  Failure,
  givenText,
  joinKeys,
  messageOf,
  textOfThrown,
  tidyCommands,
  wholeNumber,
  wrapHelp,
} from "./command-line.ts";

const HELP = `
Example:
  blindrelay call pump-7 valve.open '{"percent": 40}' --timeout 5

An error of the agent is printed to standard error
as an object. Exit codes: 2 usage.

METHOD [JSON]   call it, which is a long line of a table
`;

it("prose of a help fills a narrow terminal between words; examples and tables stay", () => {
  const lines = wrapHelp(HELP, 30).split("\n");
  expect(lines).toContain(`  blindrelay call pump-7 valve.open '{"percent": 40}' --timeout 5`);
  expect(lines).toContain("METHOD [JSON]   call it, which is a long line of a table");
  expect(lines.slice(4, 8)).toEqual([
    "An error of the agent is",
    "printed to standard error as",
    "an object. Exit codes: 2",
    "usage.",
  ]);
});

it("a help that fits is left as it is", () => {
  expect(wrapHelp(HELP, 80)).toBe(HELP);
});

it("a key that begins with a dash belongs to the option before it", () => {
  const key = `-V${"a".repeat(41)}`;
  const verify = ["release", "verify", "file", "--public-key"];
  expect(joinKeys([...verify, key, "--json"])).toEqual([
    ...verify.slice(0, 3),
    `--public-key=${key}`,
    "--json",
  ]);
  expect(joinKeys(["start", "--release-keys", `${key},${key}`])).toEqual([
    "start",
    `--release-keys=${key},${key}`,
  ]);
  for (const words of [
    ["-V"],
    ["call", key],
    ["--json", "-V"],
    ["--", key],
    ["--json", `${key}b`],
    ["a--json", key],
    ["--json=a", key],
  ])
    expect(joinKeys(words)).toEqual(words);
});

it("paragraphs that are too wide are wrapped, others of the same help are not", () => {
  const help = "One that is\nshort.\n\nOne that is longer than its\nterminal.\n  code";
  expect(wrapHelp(help, 20)).toBe(
    "One that is\nshort.\n\nOne that is longer\nthan its terminal.\n  code",
  );
});

it("a line is broken at its last space that fits, and a word that does not fit stays whole", () => {
  expect(wrapHelp("12345 789 and", 9)).toBe("12345 789\nand");
  expect(wrapHelp("12345 7890 an", 9)).toBe("12345\n7890 an");
  expect(wrapHelp("1234567890 2345", 9)).toBe("1234567890 2345");
  expect(wrapHelp("a 1234567890 2345", 9)).toBe("a\n1234567890 2345");
  // Exactly as wide as the terminal.
  expect(wrapHelp("12345\n1234 6789", 9)).toBe("12345\n1234 6789");
  expect(wrapHelp("1234 6789 1234 6789", 9)).toBe("1234 6789\n1234 6789");
});

it("prose is not joined with the lines of a table or an example around it", () => {
  const help = "name  a column\nThis is prose that is too wide.\n  code\nIt is not code.";
  expect(wrapHelp(help, 20)).toBe(
    "name  a column\nThis is prose that\nis too wide.\n  code\nIt is not code.",
  );
});

it("a failure has the exit code of its kind, and what caused it", () => {
  const cause = new Error("inner");
  const failure = new Failure("unreachable", "no way", cause);
  expect(failure).toMatchObject({ name: "Failure", exitCode: 4, message: "no way", cause });
});

it("whatever was thrown has a text", () => {
  expect(messageOf(new TypeError("why"))).toBe("why");
  expect(messageOf("why")).toBe("why");
  expect(textOfThrown(new TypeError("why"))).toBe("TypeError: why");
  expect(textOfThrown(Object.create(null))).toBe("something that cannot be shown");
});

it("a whole number is refused with its range", () => {
  const percent = wholeNumber(1, 100);
  expect([percent("1"), percent("100"), wholeNumber(0, null)("9007199254740991")]).toEqual([
    1,
    100,
    2 ** 53 - 1,
  ]);
  for (const text of ["0", "101", "1.5", "-1", "", " 1", "1e1", "0x1", "1 "]) {
    expect(() => percent(text)).toThrow("a whole number from 1 to 100");
  }
  for (const text of ["4", "9007199254740992"]) {
    expect(() => wholeNumber(5, null)(text)).toThrow("a whole number of at least 5");
  }
  // As commander knows a value that it refuses with the flag's name.
  expect(() => percent("x")).toThrow(
    expect.objectContaining({ code: "commander.invalidArgument", exitCode: 1 }),
  );
});

it("errors of every command end with its usage, and help fits the terminal", () => {
  const command = (name: string, ...commands: ReturnType<typeof made>[]) => made(name, commands);
  const made = (name: string, commands: readonly object[]) => {
    const set = { after: "", width: 0, writeOut: (_text: string): void => undefined };
    return {
      set,
      commands: commands as never[],
      name: () => name,
      createHelp: () => ({ commandUsage: (of: { name(): string }) => `${of.name()} [options]` }),
      showHelpAfterError: (text: string) => {
        set.after = text;
      },
      configureHelp: ({ minWidthToWrap }: { minWidthToWrap: number }) => {
        set.width = minWidthToWrap;
      },
      configureOutput: (given: { writeOut(text: string): void }) => Object.assign(set, given),
    };
  };
  const inner = command("inner");
  const cli = command("cli", command("outer", inner));
  const written: string[] = [];
  const output = { columns: 9, write: (text: string) => written.push(text) };
  tidyCommands(cli, output);
  expect([cli.set.after, inner.set.after]).toEqual([
    "Usage: cli [options]",
    "Usage: inner [options]",
  ]);
  expect(inner.set.width).toBe(12);
  inner.set.writeOut("12345 789 and");
  Object.assign(output, { isTTY: true });
  inner.set.writeOut("12345 789 and");
  Object.assign(output, { columns: 0 });
  inner.set.writeOut("12345 789 and");
  expect(written).toEqual(["12345 789 and", "12345 789\nand", "12345 789 and"]);
});

it("a variable's value is what was meant, without quotation marks and line ends around it", () => {
  for (const value of ["a b", "a b\r", ' "a b" ', "'a b'\r\n"])
    expect(givenText(value)).toBe("a b");
  for (const value of [undefined, "", " ", '""', "''\r"]) expect(givenText(value)).toBeNull();
  for (const value of ['"a', "a'", "\"a'"]) expect(givenText(value)).toBe(value);
});

it("only an error of process.cwd is the user's: the current folder was removed", () => {
  const other = Object.assign(new Error("x"), { syscall: "open" });
  for (const thrown of [other, "x", null, undefined]) expect(asFailure(thrown)).toBe(thrown);
  const gone = Object.assign(new Error("x"), { syscall: "uv_cwd" });
  expect(asFailure(gone)).toMatchObject({ kind: "usage", cause: gone });
});
