/**
 * `blindrelay inspect`: explains a packet or a capture file: every field, the reason for a failure,
 * and the content if the secret is available.
 */
import type { ReadStream } from "node:fs";
import { open } from "node:fs/promises";
import { createInterface } from "node:readline";
import { Failure } from "@blindrelay/protocol/command-line";
import { explainRecordLine } from "../attach/record.ts";
import type { Command } from "../base/command.ts";
import { jsonText, printResult, printStatus } from "../base/output.ts";
import { checkAgentId } from "../config/settings.ts";
import type { Context } from "./context.ts";
import { explainPacket, type PacketReport, packetsIn, suiteName } from "./inspect-packet.ts";

const MEANINGS = {
  opening: "opening: a client asks for a session",
  answer: "answer: an agent's part of a session",
  data: "data",
} as const;

const asText = (report: PacketReport, line: number): string => {
  const rows: [string, string][] = [
    ["line", String(line)],
    ["packet", report.kind === null ? "broken" : MEANINGS[report.kind]],
    ["agent", report.agent_id ?? "unknown: name it with --agent"],
    ["v", `${JSON.stringify(report.v)} (${suiteName(report.v)})`],
    ["sid", report.sid ?? "missing"],
    ["seq", JSON.stringify(report.seq)],
  ];
  if (report.client_part !== null) rows.push(["client's part", report.client_part]);
  if (report.agent_part !== null) rows.push(["agent's part", report.agent_part]);
  if (report.plaintext_bytes !== null) rows.push(["plaintext", `${report.plaintext_bytes} bytes`]);
  if (report.direction !== null) rows.push(["direction", report.direction]);
  if (report.opened === true) rows.push(["content", jsonText(report.content)]);
  else if (report.opened === null && report.kind !== null) {
    rows.push(["content", "sealed: no secret at hand for this agent"]);
  }
  if (report.problem !== null) rows.push(["problem", report.problem]);
  return rows.map(([name, value]) => `${`${name}:`.padEnd(15)}${value}`).join("\n");
};

/** Rejects with a Failure (usage) if it is not a file or cannot be read. */
const openFile = async (path: string): Promise<ReadStream> => {
  try {
    const file = await open(path);
    if ((await file.stat()).isDirectory()) throw new Error("it is a folder");
    return file.createReadStream();
  } catch (error) {
    throw new Failure("usage", `cannot read ${path}: ${(error as Error).message}`, error);
  }
};

export const addInspect = (cli: Command, context: Context): void => {
  cli
    .command("inspect")
    .description("explain packets: every field, the content, and the reason for a failure")
    .argument(
      "[file]",
      "a packet, a capture with one in each line, or a record of attach (default: standard input)",
    )
    .option("--agent <agent-id>", "the agent, if the capture does not name it")
    .option("--json", "one JSON document per packet")
    .example(`
  echo '{"v":"1","sid":"…","seq":1,"p":"…"}' | blindrelay inspect --agent pump-7

Understands bare packets, \`relay\` envelopes, and lines of JSON or of a log that hold them. The secret
comes from BLINDRELAY_AGENT_TOKEN or the keyring. Exits with 1 if a packet is broken or does not
open, or if there is none.`)
    .action(async (file: string | undefined, flags: { agent?: string; json?: boolean }) => {
      if (flags.agent !== undefined) checkAgentId(flags.agent);
      const settings = context.settings();
      const input = file === undefined || file === "-" ? process.stdin : await openFile(file);
      let line = 0;
      let packets = 0;
      let wrong = 0;
      let isRecord = false;
      for await (const words of createInterface({ input, crlfDelay: Number.POSITIVE_INFINITY })) {
        line++;
        const recorded = line === 1 || isRecord ? explainRecordLine(words) : null;
        if (recorded !== null) {
          isRecord = true;
          printResult(flags, recorded.value, recorded.text);
          continue;
        }
        for (const { text, value, agentId } of packetsIn(words)) {
          const report = explainPacket(text, value, flags.agent ?? agentId, (id) =>
            settings.secretAtHand(id),
          );
          packets++;
          if (report.problem !== null) wrong++;
          printResult(
            flags,
            { line, ...report },
            `${packets > 1 ? "\n" : ""}${asText(report, line)}`,
          );
        }
      }
      if (isRecord && packets === 0) return;
      if (packets === 0) throw new Failure("expectation", `no packet in ${line} lines`);
      if (wrong > 0)
        throw new Failure("expectation", `${wrong} of ${packets} packets failed verification`);
      if (flags.json !== true) printStatus(`${packets} packets, all of the right form`);
    });
};
