/** `blindrelay call AGENT METHOD [JSON]`: one sealed call; prints the bare result. */
import { type Agent, CallError } from "@blindrelay/client-sdk";
import { parseJson } from "@blindrelay/protocol/parse-json";
import type { Command } from "commander";
import { callFailure } from "../call-failure.ts";
import { checkCallLength } from "../call-length.ts";
import { checkToken } from "../check-token.ts";
import { checkAgentId } from "../config/settings.ts";
import { connectClient } from "../connect.ts";
import { Failure } from "../failure.ts";
import { readInput } from "../first-lines.ts";
import { methodsOf, similarMethod } from "../methods.ts";
import { printJson, printStatus } from "../output.ts";
import type { Context } from "./context.ts";
import { seconds } from "./number-flags.ts";

const MAX_TIMEOUT_S = 2_000_000;

interface CallFlags {
  readonly timeout: number;
  readonly idempotent?: boolean;
  readonly wait?: boolean;
  readonly json?: boolean;
}

/** In characters; more than any relay passes on. */
const MAX_PARAMS = 16 * 1_048_576;

/** JSON-RPC accepts an object, an array, or nothing. */
const readParams = async (given: string | undefined): Promise<object | undefined> => {
  if (given === undefined) return undefined;
  let value: unknown;
  try {
    value = parseJson(given === "-" ? await readInput(process.stdin, MAX_PARAMS) : given);
  } catch (error) {
    throw new Failure("usage", `the parameters are ${(error as Error).message}`);
  }
  if (typeof value === "object" && value !== null) return value;
  throw new Failure("usage", "the parameters must be a JSON object or array");
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
  cli
    .command("call")
    .description("call a method of an agent and print its result as JSON")
    .argument("<agent>", "the agent's id")
    .argument("<method>", "such as system.info")
    .argument("[json]", "parameters: an object or array; - reads them from standard input")
    .option(
      "--timeout <seconds>",
      "until the answer, including the connection",
      seconds(MAX_TIMEOUT_S),
      30,
    )
    .option("--idempotent", "may be executed twice, so retry if the outcome is unknown")
    .option("--wait", "wait until relay and agent are there, up to the timeout")
    .option("--json", "no effect: the result is always one JSON document")
    .addHelpText(
      "after",
      `
Example:
  blindrelay call pump-7 valve.open '{"percent": 40}' --timeout 5
  blindrelay call pump-7 valve.open '{"percent": 40}' --wait --timeout 3600   # a sleeping board

An error of the agent is printed to standard error as a JSON-RPC error object (exit 3). Other exit
codes: 2 usage, 4 agent offline or relay not reachable, 5 not your agent or refused, 6 no verified
answer in time (also if the secret is wrong), or "timed out, did not run": the agent refused the
call because it came after the timeout.`,
    )
    .action(async (agent: string, method: string, json: string | undefined, flags: CallFlags) => {
      const deadline = performance.now() + flags.timeout * 1000;
      const params = await readParams(json);
      const settings = context.settings();
      const secret = settings.secretOf(checkAgentId(agent));
      checkToken(secret.agentToken, "e2e", "agent token");
      const client = await connectClient(settings, flags.timeout * 1000, {
        waits: flags.wait ?? false,
      });
      try {
        const handle = client.agent(agent, secret.agentToken, { version: secret.version });
        const options = () => ({
          timeoutMs: Math.max(1, deadline - performance.now()),
          idempotent: flags.idempotent ?? false,
          waitForAgent: flags.wait ?? false,
        });
        await checkCallLength(handle, method, params, options());
        printJson(
          await handle
            .call(method, params, options())
            .catch(helped(handle, method, flags.json === true)),
        );
      } catch (error) {
        if (error instanceof CallError) throw callFailure(error);
        throw error;
      } finally {
        client.close();
      }
    });
};
