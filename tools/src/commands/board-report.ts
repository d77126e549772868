/** `blindrelay board report PORT`: what a board is and does, as one text to paste into a report. */

import pkg from "../../package.json" with { type: "json" };
import type { Command } from "../base/command.ts";
import { rejectOnInterrupt } from "../base/interrupted.ts";
import { type JsonFlag, oneLine, printResult, printStatus } from "../base/output.ts";
import { type Row, reportBoard } from "../flash/board-report.ts";
import type { PortFlags } from "../repl/port.ts";
import { ADDRESS_FORMS } from "../serial/address.ts";
import { withBaud, withConsole } from "./board.ts";

type ReportFlags = JsonFlag & PortFlags;

const asText = (rows: readonly Row[]): string =>
  rows.map(([name, found]) => `${name}: ${oneLine(found)}`).join("\n");

export const addBoardReport = (cli: Command): void => {
  const board = cli
    .command("board")
    .description("what an attached board is and does")
    .example("blindrelay board report /dev/ttyUSB0");
  withBaud(
    board
      .command("report")
      .description("print what a board is and does, as one text to paste into a report")
      .argument("<port>", ADDRESS_FORMS),
  )
    .option("--json", "one JSON document")
    .example(`
  blindrelay board report /dev/ttyUSB0 > report.txt

It stops the program on the board for about a minute and starts it again, writes one file of 256 bytes
into Storage and erases it, and arms the watchdog, which stays armed until the power is cut. It needs no
account. The text holds no secret, id, address, name or serial number.
Exit codes: 2 usage; 7 device or port.`)
    .action(async (port: string, flags: ReportFlags) => {
      const found = await withConsole(port, flags, (board) => {
        printStatus("the program on the board is stopped, and started again when this is done");
        return reportBoard(
          board,
          rejectOnInterrupt(() => "its program runs again"),
        );
      });
      const { platform, arch } = process;
      const rows: Row[] = [
        ["blindrelay", pkg.version],
        ["host", `Node ${process.versions.node}, ${platform} ${arch}`],
        ["rate", `${flags.baud} baud`],
        ...found,
      ];
      printResult(flags, Object.fromEntries(rows), asText(rows));
    });
};
