/**
 * Device programs in the form that boards' engines accept: one file, without types. What an engine
 * would not run is found before anything is started.
 */
import { extname } from "node:path";
import { fileURLToPath } from "node:url";
import { describeRefusal, loadDialect } from "@blindrelay/agent-sdk/dialect";
import { Failure } from "@blindrelay/protocol/command-line";
import { ScenarioError } from "../scenario/problems.ts";
import {
  asFunctionBody,
  parseProgramText,
  readProgramFile,
  type Tree,
} from "../scenario/program-file.ts";

/** The file of a program, as named in an order. */
export const programFile = (name: string): string =>
  name.startsWith("kind:")
    ? fileURLToPath(
        new URL(`../devices/${name.slice(5)}${extname(import.meta.filename)}`, import.meta.url),
      )
    : name;

/** Evaluated by XsDevice, so that `name` can be started. Throws a ScenarioError. */
export const xsProgram = (file: string, shown: string, name: string): string => {
  const { text, tree } = parseProgramText(readProgramFile(file, shown), shown);
  const problems = (tree.body as Tree[])
    .filter(({ type, source }) => type === "ImportDeclaration" || (source ?? null) !== null)
    .map(({ loc }) => {
      const { line, column } = (loc as { start: { line: number; column: number } }).start;
      const message = "a device program for XS is one file: bundle what it imports into it";
      return { file: shown, line, column: column + 1, message };
    });
  if (problems.length > 0) throw new ScenarioError(problems);
  const body = asFunctionBody(text, tree);
  return `{ const __x = {}; (function () { "use strict"; ${body}\n}).call(undefined); programs[${JSON.stringify(name)}] = withStorage(__x.default); }`;
};

/** Stored as "program" in an Espruino's Storage. Throws a Failure. */
export const espruinoProgram = async (file: string, shown: string): Promise<string> => {
  const { text } = parseProgramText(readProgramFile(file, shown), shown);
  const { checkProgram, exactDecimals, toModule } = await loadDialect();
  const { refused } = checkProgram(text);
  if (refused.length > 0) {
    const list = refused.map((refusal) => describeRefusal(shown, refusal)).join("\n  ");
    throw new Failure("usage", `Espruino does not run this as written:\n  ${list}`);
  }
  return exactDecimals(toModule(text));
};
