/** docs/commands.md names every command and every flag of the three programs, and no others. */
import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import { expect, it } from "vitest";
import { addCompletion } from "../protocol/src/command-line.ts";
import { addOperations } from "../relay-server/src/ops/commands.ts";
import { CONFIG_KEYS, flagOf } from "../relay-server/src/settings/config.ts";
import { makeCli as makeSimulatorCli } from "../simulator/src/cli.ts";
import { makeCli } from "../tools/src/cli.ts";

const page = readFileSync(resolve(import.meta.dirname, "../docs/commands.md"), "utf8").replaceAll(
  "\\|",
  "/",
);

type Command = Parameters<typeof addOperations>[0];

const FLAG = /--[a-z][a-z0-9-]*/g;
/** Flags of every command, documented once. */
const EVERYWHERE = new Set(["--json", "--help"]);

const flagsIn = (text: string): string[] =>
  [...new Set(text.match(FLAG))].filter((flag) => !EVERYWHERE.has(flag)).sort();

/** Rows that begin with a command: its words -> the flags in the last column of all its rows. */
const documented = (program: string): Map<string, string[]> => {
  const flagsOf = new Map<string, string>();
  const row = new RegExp(`^\\| \`${program} ([a-z -]*)[^\`]*\` \\|.*\\|(.*)\\|$`, "gm");
  for (const [, words = "", flags = ""] of page.matchAll(row)) {
    const [, command = "", own = ""] = /^(.*?) *(--.*)?$/.exec(words.trim()) ?? [];
    flagsOf.set(command, `${flagsOf.get(command) ?? ""} ${own} ${flags}`);
  }
  return new Map([...flagsOf].map(([command, flags]) => [command, flagsIn(flags)]));
};

/** Every command that performs an action, by its words. */
const leaves = (command: Command, words: string[] = []): [string, Command][] =>
  command.commands.length === 0
    ? [[words.join(" "), command]]
    : command.commands.flatMap((child) => leaves(child, [...words, child.name()]));

const known = (cli: Command): Record<string, string[]> =>
  Object.fromEntries(
    leaves(cli).map(([name, { options }]) => [
      name,
      flagsIn(options.map(({ long }) => long).join(" ")),
    ]),
  );

it("names the commands of blindrelay with their flags", async () => {
  expect(Object.fromEntries(documented("blindrelay"))).toEqual(known(await makeCli({})));
});

it("names the commands of blindrelay-server with their flags", async () => {
  const program = (await makeCli({})).createCommand("blindrelay-server");
  addOperations(program);
  addCompletion(program, process.stdout);
  const { init, start, ...others } = Object.fromEntries(documented("blindrelay-server"));
  expect(others).toEqual(known(program));
  expect([init?.includes("--username"), start]).toEqual([true, []]);
});

it("names the commands of blindrelay-sim with their flags", () => {
  const cli = makeSimulatorCli(() => undefined);
  expect(Object.fromEntries(documented("blindrelay-sim"))).toEqual(known(cli));
});

it("names the settings of blindrelay-server start", () => {
  const table = /^\| flag of `start`[\s\S]*?\n\n/m.exec(page)?.[0] ?? "";
  const others = ["--config", "--print-config"];
  expect(flagsIn(table.replace(/^.*default.*\n/, ""))).toEqual(
    [...CONFIG_KEYS.map(flagOf), ...others].sort(),
  );
});

it("names the scripts of the checkout", () => {
  const { scripts } = JSON.parse(
    readFileSync(resolve(import.meta.dirname, "../package.json"), "utf8"),
  ) as { scripts: Record<string, string> };
  // Those that set the checkout up first are for people; the others are steps of `npm test`.
  const typed = Object.keys(scripts).filter((name) => `pre${name}` in scripts);
  const rows = page.matchAll(/^\| `npm (?:run )?(?:--silent )?([a-z]+)/gm);
  expect([...rows].map(([, name]) => name).sort()).toEqual(typed.sort());
});
