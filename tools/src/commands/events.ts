/** `blindrelay events [AGENT]`: prints the events of agents, and their connects and disconnects. */
import type { CallError, Client } from "@blindrelay/client-sdk";
import { Failure, wholeNumber } from "@blindrelay/protocol/command-line";
import { withClient } from "../account/connect.ts";
import { presentAgent } from "../account/rekey.ts";
import { checkToken } from "../base/check-token.ts";
import type { Command } from "../base/command.ts";
import { interrupted } from "../base/interrupted.ts";
import { type JsonFlag, jsonText, oneLine, printResult, printStatus } from "../base/output.ts";
import type { Secret, Settings } from "../config/settings.ts";
import { matchingIds } from "../fleet/agents.ts";
import { WHERE } from "../fleet/flags.ts";
import type { Context } from "./context.ts";

const CONNECT_LIMIT_MS = 30_000;

interface EventsFlags extends JsonFlag {
  readonly count?: number;
  readonly where?: string;
}

type Report =
  | {
      readonly kind: "event";
      readonly agent_id: string;
      readonly event: string;
      readonly data: unknown;
    }
  | { readonly kind: "presence"; readonly agent_id: string; readonly status: string }
  | { readonly kind: "gap"; readonly agent_id: string; readonly packets: number }
  | { readonly kind: "gap"; readonly agent_id: string; readonly events: number }
  | {
      readonly kind: "interrupted" | "reopened";
      readonly agent_id: string;
      readonly reason: string;
    };

/** `at`: when it arrived here, ISO 8601. */
type Line = Report & { readonly at: string };

export const asText = (line: Report): string => {
  if (line.kind === "presence") return `${oneLine(line.agent_id)} is ${line.status}`;
  if ("reason" in line) {
    const what = line.kind === "interrupted" ? "no events come for now" : "events may be missing";
    return `${line.agent_id}: ${what}: ${oneLine(line.reason)}`;
  }
  if (line.kind === "gap") {
    const lost = "events" in line ? `${line.events} events` : `${line.packets} packets`;
    return `${line.agent_id}: ${lost} were lost`;
  }
  return `${line.agent_id} ${oneLine(line.event)} ${jsonText(line.data ?? null)}`;
};

interface Listened extends Secret {
  readonly id: string;
}

/** The specified agent, else those in the keyring, of which some may have to match. */
const listened = async (
  settings: Settings,
  agent: string | undefined,
  where: string | undefined,
): Promise<Listened[]> => {
  if (agent !== undefined) return [{ id: agent, ...settings.checkedSecretOf(agent) }];
  const kept = Object.keys(settings.profile?.keyring ?? {});
  const matched = where === undefined ? kept : await matchingIds(settings, where);
  const ids = matched.filter((id) => kept.includes(id));
  return ids.map((id) => ({ id, ...(settings.keptSecretOf(id) as Secret) }));
};

export const addEvents = (cli: Command, context: Context): void => {
  cli
    .command("events")
    .description("print events and presence of one agent, or of all in the keyring, until Ctrl-C")
    .argument("[agent]", "the agent's id")
    .option("--where <selector>", WHERE)
    .option("--json", "one JSON document per line")
    .option("--count <n>", "end after this many events", wholeNumber(1, null))
    .example(`
  blindrelay events pump-7 --json

Lines begin with the time of arrival, which is "at" in JSON: {"kind":"event","agent_id","event",
"data","at"}, {"kind":"presence","agent_id","status","at"} (the relay's claim),
{"kind":"gap","agent_id","packets","at"} (this many packets of the agent were lost), with "events"
in place of "packets" if the agent counted the events that it could not send,
{"kind":"interrupted","agent_id","reason","at"} (the agent dropped the session, restarted or was cut
off) and {"kind":"reopened","agent_id","reason","at"} (a new session was opened: events in between
are missing).`)
    .action(async (agent: string | undefined, flags: EventsFlags) => {
      if (agent !== undefined && flags.where !== undefined)
        throw new Failure("usage", "name an agent, or --where SELECTOR");
      const settings = context.settings();
      const secrets = await listened(settings, agent, flags.where);
      for (const { agentToken } of secrets) checkToken(agentToken, "e2e", "agent token");
      if (secrets.length === 0)
        printStatus("the keyring holds no agent: only presence will be shown");
      const follow = (client: Client): Promise<void> =>
        new Promise<void>((resolve, reject) => {
          let left = flags.count ?? Number.POSITIVE_INFINITY;
          const print = (report: Report): void => {
            if (left <= 0) return;
            const line: Line = { ...report, at: new Date().toISOString() };
            printResult(flags, line, `${line.at} ${asText(line)}`);
            if (report.kind === "event") left--;
            if (left <= 0) resolve();
          };
          const listen = async ({ id, ...secret }: Listened): Promise<void> => {
            const handle = await presentAgent(client, settings, id, secret, { waits: true });
            handle.on("event", (event, data) =>
              print({ kind: "event", agent_id: id, event, data }),
            );
            handle.on("gap", (count, of) => {
              const lost = of === "events" ? { events: count } : { packets: count };
              print({ kind: "gap", agent_id: id, ...lost });
            });
            handle.on("interrupted", (reason) =>
              print({ kind: "interrupted", agent_id: id, reason }),
            );
            handle.on("reopened", (reason) => print({ kind: "reopened", agent_id: id, reason }));
          };
          for (const one of secrets) listen(one).catch(reject);
          client.on("presence", ({ agentId, online }) => {
            const isAll = agent === undefined && flags.where === undefined;
            if (!isAll && !secrets.some(({ id }) => id === agentId)) return;
            print({ kind: "presence", agent_id: agentId, status: online ? "online" : "offline" });
          });
          followLink(client, reject);
          interrupted().then(() => {
            left = 0;
            resolve();
          });
        });
      await withClient(settings, CONNECT_LIMIT_MS, follow, { presence: true });
    });
};

/** Reports the link's state to the user; only a final refusal ends the command. */
const followLink = (client: Client, onRefused: (error: CallError) => void): void => {
  client.on("link", (report) => {
    if (report.state === "refused") onRefused(report.reason);
    else
      printStatus(report.state === "online" ? "connected again" : oneLine(report.reason.message));
  });
};
