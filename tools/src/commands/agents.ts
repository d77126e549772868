/**
 * `blindrelay agent list, show, rm, rotate, export`: the agents of the user's account, over REST.
 */

import { Failure } from "@blindrelay/protocol/command-line";
import { encodeKeyring } from "@blindrelay/protocol/keyring";
import { asking } from "@blindrelay/protocol/prompt";
import type { Agent, RotateAgentAnswer } from "@blindrelay/protocol/schema/rest";
import { Option } from "commander";
import {
  accountRest,
  agentPath,
  demandOwnId,
  demandToken,
  dropPendingKey,
  keepKey,
  keepPendingKey,
  listAgents,
} from "../account/account.ts";
import { DEVICE_FORMATS, type DeviceFormat, deviceText } from "../account/device-files.ts";
import { labelsText } from "../account/labels.ts";
import type { Command } from "../base/command.ts";
import {
  type JsonFlag,
  oneLine,
  printJson,
  printList,
  printResult,
  printStatus,
  printText,
  when,
} from "../base/output.ts";
import { isRefused, RestFailure } from "../base/rest.ts";
import { checkVersion, type Settings } from "../config/settings.ts";
import { type FleetFlags, WHERE } from "../fleet/flags.ts";
import type { Context } from "./context.ts";

interface ExportFlags extends JsonFlag {
  readonly format?: DeviceFormat | "json" | "keyring";
}

const FORMATS = [...DEVICE_FORMATS, "json", "keyring"];

export const addAgents = (agent: Command, context: Context): void => {
  agent
    .command("list")
    .description("the agents of your account")
    .option("--where <selector>", WHERE)
    .option("--json", "one JSON document")
    .example("blindrelay agent list --where online=true")
    .action(async (flags: JsonFlag & Pick<FleetFlags, "where">) => {
      const items = await listAgents(accountRest(context.settings()), flags.where);
      const none =
        flags.where === undefined
          ? "you have no agents yet: blindrelay agent add NAME"
          : `no agent matches ${flags.where}`;
      const header = ["AGENT", "STATUS", "LAST SEEN", "RUNTIME", "FIRMWARE", "NAME", "LABELS"];
      printList(flags, items, none, header, (each) => [
        each.agent_id,
        each.online ? "online" : "offline",
        when(each.last_seen),
        each.runtime ?? "",
        each.firmware_version ?? "",
        each.name,
        labelsText(each.labels),
      ]);
    });

  agent
    .command("show")
    .description("one agent, as the relay knows it")
    .argument("<agent>", "the agent's id")
    .option("--json", "one JSON document")
    .example("blindrelay agent show pump-7")
    .action(async (agentId: string, flags: JsonFlag) => {
      const settings = context.settings();
      const shown = await accountRest(settings)
        .ask("Agent", "GET", agentPath(agentId))
        .catch(suggesting(settings, agentId));
      printResult(flags, shown, listFields(shown));
    });

  agent
    .command("rm")
    .description("delete an agent; its connection and its tokens end at once")
    .argument("<agent>", "the agent's id")
    .option("--yes", "do not ask")
    .option("--json", "one JSON document")
    .example("blindrelay agent rm pump-7 --yes")
    .action(async (agentId: string, flags: JsonFlag & { yes?: boolean }) => {
      const settings = context.settings();
      const path = agentPath(agentId);
      if (flags.yes !== true) await confirm(`Delete ${agentId} for good?`);
      await accountRest(settings).tell("DELETE", path).catch(suggesting(settings, agentId));
      try {
        demandOwnId(settings, agentId);
        keepKey(settings, agentId, null);
      } catch (error) {
        // The agent is gone; its secret, if it is left behind, opens nothing.
        printStatus(`its secret stays in the keyring: ${(error as Error).message}`);
      }
      printResult(flags, { agent_id: agentId, deleted: true }, `deleted ${agentId}`);
    });

  agent
    .command("rotate")
    .description("give an agent a new relay token; the old one ends at once")
    .argument("<agent>", "the agent's id")
    .option(
      "--secret",
      "also make a new end-to-end secret in the keyring, if the device was in other hands",
    )
    .option("--json", "one JSON document; its only secret is the relay token")
    .example(`
  blindrelay agent rotate pump-7
  blindrelay agent rotate pump-7 --secret

--secret changes the keyring alone: the device answers again once it has been given the new secret, which
blindrelay agent export pump-7 --env prints. From then on it refuses packets under the old one. Whoever
holds the old one still reads what was recorded under it and, with the relay's help, still calls a device
that has it, or is that device towards clients that use it.
If the command is interrupted, run it again: the new secret is kept before the relay is asked.`)
    .action(async (agentId: string, flags: JsonFlag & { secret?: boolean }) => {
      const settings = context.settings();
      if (flags.secret === true && settings.profile === null) {
        throw new Failure(
          "usage",
          "there is no keyring for the secret: run blindrelay login first",
        );
      }
      const path = `${agentPath(agentId)}/rotate-token`;
      const rest = accountRest(settings);
      if (flags.secret !== true) {
        const rotated = await rest
          .ask("RotateAgentAnswer", "POST", path)
          .catch(suggesting(settings, agentId));
        demandToken(rotated.api_token, "agent", settings.httpUrl());
        printToken(flags, rotated);
        return;
      }
      demandOwnId(settings, agentId);
      const key = keepPendingKey(settings, agentId);
      let rotated: RotateAgentAnswer;
      try {
        rotated = await rest.ask("RotateAgentAnswer", "POST", path);
        demandToken(rotated.api_token, "agent", settings.httpUrl());
      } catch (error) {
        if (isRefused(error)) dropPendingKey(settings, agentId, key);
        else printStatus("the relay may or may not have a new token: run this again");
        throw error;
      }
      printToken(flags, rotated);
      try {
        keepKey(settings, agentId, key);
      } catch (error) {
        printStatus("the new end-to-end secret is kept as pending: fix this, then run this again");
        throw error;
      }
      printStatus(`the keyring holds a new end-to-end secret for ${agentId}`);
    });

  agent
    .command("export")
    .description("print what a device needs to be this agent, secrets included")
    .argument("<agent>", "the agent's id")
    .addOption(
      new Option("--format <format>", "env (lines for a shell) by default").choices(FORMATS),
    )
    .addOption(new Option("--env", "the same as --format env").conflicts(["format", "json"]))
    .addOption(new Option("--json", "the same as --format json").conflicts("format"))
    .example(`
  (umask 077; blindrelay agent export pump-7 > pump-7.env)
  blindrelay agent export pump-7 --format moddable > config.json
  blindrelay agent export pump-7 --format keyring > pump-7.keyring.json

With --format keyring it prints the end-to-end secret alone, for agent import and the console. Else the relay token comes from the relay, the end-to-end secret from the keyring; if the keyring
does not have it, it is omitted with a notice. Use it for one device only: two devices with one identity break each other.`)
    .action(async (agentId: string, flags: ExportFlags) => {
      const format = flags.json === true ? "json" : (flags.format ?? "env");
      const settings = context.settings();
      if (format === "keyring") {
        printText(entryOf(settings, agentId));
        return;
      }
      const path = `${agentPath(agentId)}/export`;
      const exported = await accountRest(settings)
        .ask("AgentExport", "GET", path)
        .catch(suggesting(settings, agentId));
      demandToken(exported.api_token, "agent", settings.httpUrl());
      const key = settings.profile?.keyring[agentId] ?? null;
      if (key === null) printStatus(`the keyring holds no end-to-end secret for ${agentId}`);
      if (format === "json") {
        const { relay: _, ...kept } = key ?? {};
        printJson({ ...exported, ...kept });
        return;
      }
      const { relay_url: url, api_token: relayToken } = exported;
      printText(deviceText(format, { url, agentId, relayToken, key }));
    });
};

/** Asks about a mistyped agent. */
const suggesting =
  (settings: Settings, agentId: string) =>
  (error: unknown): never => {
    const isUnknown =
      error instanceof RestFailure && ["AGENT_NOT_FOUND", "NOT_FOUND"].includes(error.code ?? "");
    const similar = isUnknown ? settings.similarAgent(agentId) : "";
    if (similar === "") throw error;
    throw new Failure("refused", `there is no agent ${agentId}${similar}`, error);
  };

/** Throws a Failure (usage) if the keyring does not have it. */
const entryOf = (settings: Settings, agentId: string): string => {
  const key = settings.demandProfile().keyring[agentId];
  if (key === undefined) {
    const similar = settings.similarAgent(agentId);
    throw new Failure("usage", `the keyring holds no secret for ${agentId}${similar}`);
  }
  const { relay = settings.httpUrl(), ...kept } = key;
  const entry = { ...kept, packet_version: checkVersion(kept.packet_version, "the keyring") };
  return encodeKeyring(relay, new Map([[agentId, entry]]));
};

const printToken = (flags: JsonFlag, rotated: RotateAgentAnswer): void =>
  printResult(flags, rotated, `BLINDRELAY_RELAY_TOKEN=${rotated.api_token}`);

/** What the relay does not know is omitted; --json shows everything. */
const listFields = (shown: Agent): string =>
  Object.entries({ ...shown, last_seen: when(shown.last_seen) })
    .filter(([, value]) => value !== null)
    .map(([name, value]) => [
      `${name.replaceAll("_", " ")}:`,
      typeof value === "string" ? oneLine(value) : JSON.stringify(value),
    ])
    .map(([name, value]) => `${name?.padEnd(18)}${value}`)
    .join("\n");

const confirm = async (question: string): Promise<void> => {
  const reply = await asking("use --yes", (person) => person.ask(`${question} [y/N] `));
  if (!/^y(es)?$/i.test(reply.trim())) throw new Failure("usage", "nothing was deleted");
};
