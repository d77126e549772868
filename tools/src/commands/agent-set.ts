/** `blindrelay agent set`: the name and the labels of an agent. */
import { Failure } from "@blindrelay/protocol/command-line";
import { MAX_LABELS } from "@blindrelay/protocol/selector";
import { accountRest, agentPath } from "../account/account.ts";
import { labelsText, readLabel, readLabelKey } from "../account/labels.ts";
import type { Command } from "../base/command.ts";
import { type JsonFlag, oneLine, printResult } from "../base/output.ts";
import type { Context } from "./context.ts";

interface SetFlags extends JsonFlag {
  readonly name?: string;
  readonly label: readonly string[];
  readonly unlabel: readonly string[];
}

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
    .example(`
  blindrelay agent set pump-7 --label site=hall-7 --unlabel spare
  blindrelay agent list --where label.site=hall-7

The relay can read labels, unlike what is called. An agent has at most ${MAX_LABELS} of them.`)
    .action(async (agentId: string, flags: SetFlags) => {
      const { name, label, unlabel } = flags;
      if (name === undefined && label.length + unlabel.length === 0) {
        throw new Failure("usage", "nothing to change: use --name, --label or --unlabel");
      }
      const set = label.map(readLabel);
      const removed = new Set(unlabel.map(readLabelKey));
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
      const { agent_id: id, name: now, labels } = changed;
      printResult(flags, changed, oneLine([id, now, labelsText(labels)].join("  ").trimEnd()));
    });
};
