/** `blindrelay check FILE`: finds what boards cannot run in a device program, without a board. */
import { type BoardMemory, describeRefusal, loadDialect } from "@blindrelay/agent-sdk/dialect";
import { Failure } from "@blindrelay/protocol/command-line";
import type { Command } from "../base/command.ts";
import { type JsonFlag, printJson, printStatus, printText } from "../base/output.ts";
import { MODULES_FIX } from "../flash/modules.ts";
import { readSource } from "../flash/program.ts";

interface CheckFlags extends JsonFlag {
  readonly board?: string;
}

const describeMemory = ({ board, variables, used, program, call, fits }: BoardMemory): string =>
  `${board}: about ${used} of ${variables} variables, ${program} of them the program's; ${call} more are needed in a call: it ${fits ? "fits" : "does not fit"}`;

export const addCheck = (cli: Command): void => {
  cli
    .command("check")
    .description("find what boards cannot run in a device program, without a board")
    .argument("<file>", "the program: .js, or .ts (types are erased)")
    .option("--board <name>", "estimate whether it fits into the memory of this board, as puck.js")
    .option(
      "--json",
      "one JSON document: {file, ok, refused, asked, modules}, and memory with --board",
    )
    .example(`
  blindrelay check ./pump.js
  blindrelay check ./pump.js --board puck.js

Each line is file:line:column, the reason and what to write instead. Exit codes: 0 boards can run it,
1 they cannot, or it does not fit, 2 there is no such file or board. Names that only a board knows,
such as analogRead, are checked on the board by \`blindrelay flash\`. The estimate of memory holds for
both packet versions, and does not know what a program collects while it runs.`)
    .action(async (file: string, flags: CheckFlags) => {
      const { BOARDS, checkProgram, estimateMemory } = await loadDialect();
      const board = BOARDS.find(({ name }) => name === flags.board);
      if (flags.board !== undefined && board === undefined) {
        const known = BOARDS.map(({ name }) => name).join(", ");
        throw new Failure("usage", `there is no board "${flags.board}": known are ${known}`);
      }
      const source = readSource(file);
      const { refused, asked, modules } = checkProgram(source);
      const runs = refused.length === 0;
      const memory = runs && flags.board !== undefined ? estimateMemory(source, flags.board) : null;
      const ok = runs && memory?.fits !== false;
      if (flags.json === true)
        printJson({ file, ok, refused, asked, modules, ...(memory === null ? {} : { memory }) });
      else {
        for (const refusal of refused) printText(describeRefusal(file, refusal));
        if (asked.length > 0) printStatus(`to be checked on the board: ${asked.join(", ")}`);
        if (modules.length > 0) printStatus(`it requires: ${modules.join(", ")}`);
        const lacking = modules.filter((name) => board?.modules.includes(name) === false);
        if (lacking.length > 0)
          printStatus(`not in the build of ${board?.name}: ${lacking.join(", ")}: ${MODULES_FIX}`);
        if (memory !== null) printText(describeMemory(memory));
        if (ok) printStatus(`${file}: boards run this`);
      }
      if (ok) return;
      if (runs) {
        const fix = "give it fewer functions and shorter names, or use a board with more";
        throw new Failure("expectation", `${file} does not fit ${flags.board}: ${fix}`);
      }
      const places = `${refused.length} ${refused.length === 1 ? "place" : "places"}`;
      throw new Failure("expectation", `boards do not run ${file} as written: ${places}`);
    });
};
