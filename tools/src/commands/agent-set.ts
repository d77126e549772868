/** `blindrelay agent set`: the name and the labels of an agent. */
import { Failure } from "@blindrelay/protocol/command-line";
import { LABEL_KEY_PATTERN, MAX_LABEL_LENGTH, MAX_LABELS } from "@blindrelay/protocol/selector";
import type { Command } from "commander";
import { accountRest, agentPath } from "../account/account.ts";
import { type JsonFlag, oneLine, printResult } from "../base/output.ts";
import type { Context } from "./context.ts";

interface SetFlags extends JsonFlag {
  readonly name?: string;
  readonly label: readonly string[];
  readonly unlabel: readonly string[];
}

const LABEL_KEY = new RegExp(LABEL_KEY_PATTERN);
const KEY_FORM = "a key is 1 to 63 of a-z, 0-9, dot, underscore and hyphen";

const readKey = (key: string): string => {
  if (!LABEL_KEY.test(key)) throw new Failure("usage", `${JSON.stringify(key)}: ${KEY_FORM}`);
  return key;
};

/** Throws a Failure (usage). */
export const readLabel = (text: string): readonly [key: string, value: string] => {
  const [, key, value] = /^([^=]*)=(.*)$/s.exec(text) ?? [];
  if (key === undefined || value === undefined) {
    throw new Failure(
      "usage",
      `${JSON.stringify(text)}: a label is KEY=VALUE, such as site=hall-7`,
    );
  }
  if ([...value].length > MAX_LABEL_LENGTH) {
    const most = `at most ${MAX_LABEL_LENGTH} characters`;
    throw new Failure("usage", `the value of the label ${readKey(key)} may have ${most}`);
  }
  return [readKey(key), value];
};

const append = (word: string, before: readonly string[]): string[] => [...before, word];

export const addAgentSet = (agent: Command, context: Context): void => {
  agent
    .command("set")
    .description("change an agent's name and labels")
    .argument("<agent>", "the agent's id")
    .option("--name <name>", "for people")
    .option("--label <key=value>", "set a label; repeatable", append, [])
    .option("--unlabel <key>", "remove a label; repeatable", append, [])
    .option("--json", "one JSON document")
    .addHelpText(
      "after",
      `
Example:
  blindrelay agent set pump-7 --label site=hall-7 --unlabel spare
  blindrelay agent list --where label.site=hall-7

The relay can read labels, unlike what is called. An agent has at most ${MAX_LABELS} of them.`,
    )
    .action(async (agentId: string, flags: SetFlags) => {
      const { name, label, unlabel } = flags;
      if (name === undefined && label.length + unlabel.length === 0) {
        throw new Failure("usage", "nothing to change: use --name, --label or --unlabel");
      }
      const set = label.map(readLabel);
      const removed = new Set(unlabel.map(readKey));
      const rest = accountRest(context.settings());
      const path = agentPath(agentId);
      const change: { name?: string; labels?: Record<string, string> } =
        name === undefined ? {} : { name };
      if (set.length + removed.size > 0) {
        const { labels } = await rest.ask("Agent", "GET", path);
        const kept = Object.entries(labels).filter(([key]) => !removed.has(key));
        change.labels = Object.fromEntries([...kept, ...set]);
        if (Object.keys(change.labels).length > MAX_LABELS) {
          throw new Failure("usage", `an agent has at most ${MAX_LABELS} labels`);
        }
      }
      const changed = await rest.ask("Agent", "PATCH", path, change);
      const labels = Object.entries(changed.labels).map(([key, value]) => `${key}=${value}`);
      printResult(flags, changed, oneLine([changed.agent_id, changed.name, ...labels].join("  ")));
    });
};
