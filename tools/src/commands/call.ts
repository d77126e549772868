/** `blindrelay call AGENT METHOD [JSON]`: one sealed call; prints the bare result. */
import { type Agent, CallError, type Client } from "@blindrelay/client-sdk";
import { Failure } from "@blindrelay/protocol/command-line";
import { withClient } from "../account/connect.ts";
import { presentAgent } from "../account/rekey.ts";
import { checkCallLength } from "../base/call-length.ts";
import type { Command } from "../base/command.ts";
import { readInput } from "../base/first-lines.ts";
import { methodsOf, readParams, similarMethod } from "../base/methods.ts";
import { printJson, printStatus } from "../base/output.ts";
import { callFleet, type FleetCallFlags } from "../fleet/call.ts";
import { addRolloutFlags, atOnce, WHERE } from "../fleet/flags.ts";
import type { Context } from "./context.ts";
import { seconds } from "./number-flags.ts";

const MAX_TIMEOUT_S = 2_000_000;

type CallFlags = FleetCallFlags;

/** Flags that mean something for many agents only. */
const OF_FLEETS = ["dryRun", "staged", "abortOver", "atOnce", "resume", "junit"] as const;

const dashed = (name: string): string =>
  name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);

/** In characters; more than any relay passes on. */
const MAX_PARAMS = 16 * 1_048_576;

/** Undefined: none. */
const paramsOf = async (given: string | undefined): Promise<object | undefined> => {
  if (given === undefined) return undefined;
  return readParams(given === "-" ? await readInput(process.stdin, MAX_PARAMS) : given);
};

/** Tells a person at a terminal which method may have been meant; scripts get the error alone. */
const helped =
  (agent: Agent, method: string, isJson: boolean) =>
  async (error: unknown): Promise<never> => {
    if (error instanceof CallError && error.code === "REMOTE" && process.stderr.isTTY && !isJson) {
      const similar = similarMethod(error, method, await methodsOf(agent).catch(() => []));
      if (similar !== "") printStatus(similar);
    }
    throw error;
  };

export const addCall = (cli: Command, context: Context): void => {
  const command = cli
    .command("call")
    .description("call a method of an agent, or of each agent that matches")
    .usage("[options] <agent> <method> [json]")
    .argument("<agent>", "the agent's id; left out with --where")
    .argument("[method]", "such as system.info")
    .argument("[json]", "parameters: an object or array; - reads them from standard input")
    .option("--where <selector>", WHERE)
    .option("--dry-run", "with --where: list the agents that match, and call none")
    .option("--at-once <n>", "with --where: calls at a time (default: 32)", atOnce)
    .option("--resume <file>", "with --where: go on with this journal, or begin it")
    .option("--junit <file>", "with --where: write the outcomes as JUnit XML");
  addRolloutFlags(command)
    .option(
      "--timeout <seconds>",
      "until the answer, including the connection",
      seconds(MAX_TIMEOUT_S),
      30,
    )
    .option("--idempotent", "may be executed twice, so retry if the outcome is unknown")
    .option("--wait", "wait until relay and agent are there, up to the timeout")
    .option("--json", "with --where: one JSON line per agent; a result is always JSON")
    .example(`
  blindrelay call pump-7 valve.open '{"percent": 40}' --timeout 5
  blindrelay call pump-7 valve.open '{"percent": 40}' --wait --timeout 3600   # a sleeping board
  blindrelay call --where 'label.site=hall-7,firmware<1.5.0' valve.close --staged 5% --abort-over 2%

With --where each agent gets an outcome: ok, error, offline (not reached), unknown (sent and not
answered: it may have run) or skipped (not sent: "error" says why). With --json a line is {"agent_id",
"outcome","result","error","at"}. The journal, whose path is printed first, records each call before
it goes out. With --resume an interrupted command goes on: ok, error and unknown stay, offline and
skipped are tried again, unknown too with --idempotent. Exit codes with --where: 0 all ok, 1 not, or
no agent matches, 2 also if the journal is of another call or in use.

An error of the agent is printed to standard error as a JSON-RPC error object (exit 3). Other exit
codes: 2 usage, 4 agent offline or relay not reachable, 5 not your agent or refused, 6 no verified
answer in time (also if the secret is wrong), or "timed out, did not run": the agent refused the
call because it came after the timeout.`)
    .action(
      async (
        first: string,
        second: string | undefined,
        third: string | undefined,
        flags: CallFlags,
      ) => {
        const deadline = performance.now() + flags.timeout * 1000;
        const isFleet = flags.where !== undefined;
        if (isFleet ? third !== undefined : second === undefined) {
          throw new Failure("usage", "name an agent and a method, or a method with --where");
        }
        if (isFleet) {
          const given = await paramsOf(second);
          await callFleet(context.settings(), first, given, flags);
          return;
        }
        const wrong = OF_FLEETS.find((name) => flags[name] !== undefined);
        if (wrong !== undefined) throw new Failure("usage", `--${dashed(wrong)} needs --where`);
        const [agent, method] = [first, second as string];
        const params = await paramsOf(third);
        const settings = context.settings();
        const secret = settings.checkedSecretOf(agent);
        const waits = flags.wait ?? false;
        const ask = async (client: Client): Promise<void> => {
          const handle = await presentAgent(client, settings, agent, secret, { deadline, waits });
          const options = () => ({
            timeoutMs: Math.max(1, deadline - performance.now()),
            idempotent: flags.idempotent ?? false,
            waitForAgent: waits,
          });
          await checkCallLength(handle, method, params, options());
          const answer = handle.call(method, params, options());
          printJson(await answer.catch(helped(handle, method, flags.json === true)));
        };
        await withClient(settings, flags.timeout * 1000, ask, { waits });
      },
    );
};
