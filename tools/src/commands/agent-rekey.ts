/** `blindrelay agent rekey`: a new end-to-end secret over the air. */
import {
  type Client,
  type FleetOutcome,
  type OutcomeKind,
  outcomeOf,
  outcomesText,
  rollOut,
} from "@blindrelay/client-sdk";
import { Failure, type FailureKind } from "@blindrelay/protocol/command-line";
import { withClient } from "../account/connect.ts";
import { rekeyAgent } from "../account/rekey.ts";
import type { Command } from "../base/command.ts";
import { type JsonFlag, printResult, printStatus } from "../base/output.ts";
import { checkAgentId } from "../config/settings.ts";
import { matchingIds } from "../fleet/agents.ts";
import { lineOf, lineText } from "../fleet/outcome-line.ts";
import { readPushKey } from "../push/push-key.ts";
import type { Context } from "./context.ts";

interface RekeyFlags extends JsonFlag {
  readonly where?: string;
  readonly pushKey?: string;
}

const CONNECT_LIMIT_MS = 30_000;
const AT_ONCE = 8;

/** What a failure says of one agent of many; others are errors. Usage: its secret is not here. */
const OUTCOMES: { readonly [kind in FailureKind]?: OutcomeKind } = {
  unreachable: "offline",
  timeout: "unknown",
  refused: "skipped",
  usage: "skipped",
};

export const addAgentRekey = (agent: Command, context: Context): void => {
  agent
    .command("rekey")
    .description("give an agent a new end-to-end secret over the air; the old one ends")
    .argument("[agent]", "the agent's id")
    .option("--where <selector>", "all agents that match and whose secret the keyring has")
    .option("--push-key <file>", "of a device that was provisioned with one")
    .option("--json", "a JSON line for each agent, as of call --where; without secrets")
    .example(`
  blindrelay agent rekey pump-7
  blindrelay agent rekey --where label.site=hall-7 --push-key ./push.key

The device has the new secret on trial until it has answered under it; the keyring keeps both so long.
Interrupted, or with the agent out of reach, run it again: it goes on. With --where each agent gets an
outcome as with call --where. Everybody else who calls the agent needs the new secret afterwards:
blindrelay agent export pump-7. Under packet versions 1 and 2 whoever has the old secret and a recording
of this finds the new one.`)
    .action(async (agentId: string | undefined, flags: RekeyFlags) => {
      if ((agentId === undefined) === (flags.where === undefined)) {
        throw new Failure("usage", "name an agent, or use --where");
      }
      const settings = context.settings();
      settings.demandProfile();
      const pushKey = flags.pushKey === undefined ? null : readPushKey(flags.pushKey);
      const found = flags.where === undefined ? null : await matchingIds(settings, flags.where);
      const ids = found ?? [checkAgentId(agentId as string)];
      const one = async (client: Client, id: string): Promise<FleetOutcome> => {
        try {
          await rekeyAgent(client, settings, id, pushKey);
          return outcomeOf(id, "ok", null);
        } catch (error) {
          // Of one agent it is the command's own.
          if (!(error instanceof Failure) || found === null) throw error;
          return outcomeOf(id, OUTCOMES[error.kind] ?? "error", error.message);
        }
      };
      const outcomes: FleetOutcome[] = [];
      await withClient(settings, CONNECT_LIMIT_MS, async (client) => {
        const made = rollOut(ids, (id) => one(client, id), { atOnce: AT_ONCE });
        for await (const outcome of made) {
          outcomes.push(outcome);
          const line = lineOf(outcome);
          const isOk = outcome.outcome === "ok";
          printResult(flags, line, isOk ? `${line.agent_id} has a new secret` : lineText(line));
        }
      });
      if (outcomes.every(({ outcome }) => outcome === "ok")) return;
      printStatus(`${ids.length} agents: ${outcomesText(outcomes)}`);
      throw new Failure("expectation", "not all have a new secret; run the same command again");
    });
};
