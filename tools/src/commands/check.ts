/** `blindrelay check FILE`: finds what boards cannot run in a device program, without a board. */
import { describeRefusal, loadDialect } from "@blindrelay/agent-sdk/dialect";
import type { Command } from "commander";
import { Failure } from "../failure.ts";
import { readSource } from "../flash/program.ts";
import { type JsonFlag, printJson, printStatus, printText } from "../output.ts";

export const addCheck = (cli: Command): void => {
  cli
    .command("check")
    .description("find what boards cannot run in a device program, without a board")
    .argument("<file>", "the program: .js, or .ts (types are erased)")
    .option("--json", "one JSON document: {file, ok, refused, asked}")
    .addHelpText(
      "after",
      `
Example:
  blindrelay check ./pump.js

Each line is file:line:column, the reason and what to write instead. Exit codes: 0 boards can run it,
1 they cannot, 2 there is no such file. Names that only a board knows, such as analogRead, are
checked on the board by \`blindrelay flash\`.`,
    )
    .action(async (file: string, flags: JsonFlag) => {
      const { checkProgram } = await loadDialect();
      const { refused, asked } = checkProgram(readSource(file));
      const ok = refused.length === 0;
      if (flags.json === true) printJson({ file, ok, refused, asked });
      else {
        for (const refusal of refused) printText(describeRefusal(file, refusal));
        if (asked.length > 0) printStatus(`to be checked on the board: ${asked.join(", ")}`);
        if (ok) printStatus(`${file}: boards run this`);
      }
      if (ok) return;
      const places = `${refused.length} ${refused.length === 1 ? "place" : "places"}`;
      throw new Failure("expectation", `boards do not run ${file} as written: ${places}`);
    });
};
