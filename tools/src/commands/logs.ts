/** `blindrelay logs AGENT`: what a device logged, and why it restarted (`system.log`, sealed). */
import { CallError, type Client, restartText } from "@blindrelay/client-sdk";
import { Failure, wholeNumber } from "@blindrelay/protocol/command-line";
import { withClient } from "../account/connect.ts";
import { presentAgent } from "../account/rekey.ts";
import { callFailure } from "../base/call-failure.ts";
import type { Command } from "../base/command.ts";
import { interrupted } from "../base/interrupted.ts";
import { type JsonFlag, oneLine, printResult, printStatus } from "../base/output.ts";
import { aboutAgent, heldAgent, matchingIds } from "../fleet/agents.ts";
import { WHERE } from "../fleet/flags.ts";
import { LogReader, type LogReport } from "../fleet/logs.ts";
import { Sources } from "../fleet/sources.ts";
import type { Context } from "./context.ts";

const CONNECT_LIMIT_MS = 15_000;
const LINES = 100;
const MAX_LINES = 100_000;

interface LogsFlags extends JsonFlag {
  readonly where?: string;
  readonly follow?: boolean;
  readonly lines: number;
}

/** Milliseconds as seconds with three digits, aligned. */
const seconds = (ms: number): string => (ms / 1000).toFixed(3).padStart(10);

/** A stack's lines in one. */
const joined = (text: string): string => {
  const [first = "", ...others] = text.split("\n");
  return oneLine([first.trimEnd(), ...others.map((line) => line.trim())].join(" "));
};

const asText = (report: LogReport, isOne: boolean): string => {
  const name = isOne ? "" : `${report.agent_id} `;
  if (report.kind === "line")
    return `${name}${seconds(report.at_ms)} ${report.level.padEnd(5)} ${joined(report.text)}`;
  if (report.kind === "lost") return `${name}${report.lines} lines are lost`;
  const { reason, text } = report.restart;
  const why = restartText(oneLine(reason));
  return `${name}start ${report.boot}; ${why}${text === "" ? "" : `; last failure: ${joined(text)}`}`;
};

const inSources = (report: LogReport, sources: Sources): LogReport => {
  if (report.kind === "line") return { ...report, text: sources.show(report.text) };
  if (report.kind === "lost") return report;
  const text = sources.showBefore(report.restart.text);
  return { ...report, restart: { ...report.restart, text } };
};

export const addLogs = (cli: Command, context: Context): void => {
  cli
    .command("logs")
    .description("print what a device logged, and the reason of its last restart")
    .argument("[agent]", "the agent's id")
    .option("--where <selector>", WHERE)
    .option("--follow", "go on with later lines, until Ctrl-C")
    .option("--lines <n>", "at most this many of the latest", wholeNumber(1, MAX_LINES), LINES)
    .option("--json", "one JSON document per line")
    .example(`
  blindrelay logs pump-7 --follow

The first line is about the start: {"kind":"start","agent_id","boot","restart":{"reason","text"},
"dropped","at"}; reason is first, reset, stop, throw, memory or push, text that of the last failure, and
dropped counts lines that are no longer kept. The others are {"kind":"line","agent_id","n","at_ms",
"level","text","at"}: at_ms since the start of the device; at is when this command read it. With --follow
the device is waited for, and another start is told as the first one; {"kind":"lost","agent_id","lines"}
are lines that it dropped before they could be read. Errors of a program that was flashed or pushed from
here show file, line and column of its source. Exit codes: 3 it keeps no log, 4 it is offline.`)
    .action(async (agent: string | undefined, flags: LogsFlags) => {
      if ((agent === undefined) === (flags.where === undefined))
        throw new Failure("usage", "name an agent, or --where SELECTOR");
      const settings = context.settings();
      const secret = agent === undefined ? null : settings.checkedSecretOf(agent);
      const ids = agent === undefined ? await matchingIds(settings, flags.where ?? "") : [agent];
      const print = (report: LogReport): void =>
        printResult(flags, report, asText(report, agent !== undefined));
      const { buildsDir } = settings;
      const failures: Failure[] = [];
      const one = async (client: Client, id: string): Promise<void> => {
        const handle =
          secret === null
            ? await heldAgent(client, settings, id)
            : await presentAgent(client, settings, id, secret);
        if (handle === null) {
          printStatus(`${id} skipped: the keyring has no secret for it`);
          return;
        }
        const sources = new Sources(buildsDir);
        const reader = new LogReader(
          handle,
          (report) => print(inSources(report, sources)),
          (text) => printStatus(aboutAgent(id, text)),
          (reason) => sources.ask(handle, reason),
        );
        try {
          await reader.read(flags.lines);
          if (flags.follow === true) reader.follow();
        } catch (error) {
          if (!(error instanceof CallError)) throw error;
          const failure = callFailure(error);
          if (flags.follow === true && failure.kind === "unreachable") {
            reader.follow();
            return;
          }
          if (agent !== undefined) throw failure;
          printStatus(aboutAgent(id, failure.message));
          failures.push(failure);
        }
      };
      await withClient(settings, CONNECT_LIMIT_MS, async (client) => {
        await Promise.all(ids.map((id) => one(client, id)));
        if (flags.follow === true) await interrupted();
      });
      const [failure] = failures;
      if (failure !== undefined && failures.length === ids.length) throw failure;
    });
};
