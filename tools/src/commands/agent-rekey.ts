/** `blindrelay agent rekey`: a new end-to-end secret over the air. */
import { Failure } from "@blindrelay/protocol/command-line";
import type { Command } from "commander";
import { connectClient } from "../account/connect.ts";
import { rekeyAgent } from "../account/rekey.ts";
import { type JsonFlag, printResult, printStatus } from "../base/output.ts";
import { checkAgentId } from "../config/settings.ts";
import { matching } from "../fleet/agents.ts";
import { readPushKey } from "../push/push-key.ts";
import type { Context } from "./context.ts";

interface RekeyFlags extends JsonFlag {
  readonly where?: string;
  readonly pushKey?: string;
}

const CONNECT_LIMIT_MS = 30_000;
const AT_ONCE = 8;

export const addAgentRekey = (agent: Command, context: Context): void => {
  agent
    .command("rekey")
    .description("give an agent a new end-to-end secret over the air; the old one ends")
    .argument("[agent]", "the agent's id")
    .option("--where <selector>", "all agents that match and whose secret the keyring has")
    .option("--push-key <file>", "of a device that was provisioned with one")
    .option("--json", "one JSON document for each agent, without secrets")
    .addHelpText(
      "after",
      `
Example:
  blindrelay agent rekey pump-7
  blindrelay agent rekey --where label.site=hall-7 --push-key ./push.key

The device has the new secret on trial until it has answered under it; the keyring keeps both so long.
Interrupted, or with the agent out of reach, run it again: it goes on. Everybody else who calls the agent
needs the new secret afterwards: blindrelay agent export pump-7. Under packet versions 1 and 2 whoever
has the old secret and a recording of this finds the new one.`,
    )
    .action(async (agentId: string | undefined, flags: RekeyFlags) => {
      if ((agentId === undefined) === (flags.where === undefined)) {
        throw new Failure("usage", "name an agent, or use --where");
      }
      const settings = context.settings();
      settings.demandProfile();
      const pushKey = flags.pushKey === undefined ? null : readPushKey(flags.pushKey);
      const found = flags.where === undefined ? null : await matching(settings, flags.where);
      const ids = found?.map(({ agent_id }) => agent_id) ?? [checkAgentId(agentId as string)];
      const client = await connectClient(settings, CONNECT_LIMIT_MS);
      const failures: Failure[] = [];
      const one = async (id: string): Promise<void> => {
        try {
          await rekeyAgent(client, settings, id, pushKey);
          printResult(flags, { agent_id: id, outcome: "ok" }, `${id} has a new secret`);
        } catch (error) {
          if (!(error instanceof Failure)) throw error;
          failures.push(error);
          if (found === null) return;
          const { message } = error;
          printResult(
            flags,
            { agent_id: id, outcome: "error", error: message },
            `${id}: ${message}`,
          );
        }
      };
      try {
        const waiting = [...ids];
        const work = async (): Promise<void> => {
          for (let id = waiting.shift(); id !== undefined; id = waiting.shift()) await one(id);
        };
        await Promise.all(Array.from({ length: AT_ONCE }, work));
      } finally {
        client.close();
      }
      if (failures.length === 0) return;
      if (found === null) throw failures[0];
      printStatus(`${ids.length - failures.length} of ${ids.length} have a new secret`);
      throw new Failure("expectation", `${failures.length} failed; run the same command again`);
    });
};
