/**
 * All commands under one name, and what their errors mean as exit codes. Runs nothing by itself.
 */
import { Command, CommanderError } from "commander";
import pkg from "../package.json" with { type: "json" };
import { addAgentRun } from "./commands/agent-run.ts";
import { addAgents } from "./commands/agents.ts";
import { addBridge } from "./commands/bridge.ts";
import { addCall } from "./commands/call.ts";
import { addCheck } from "./commands/check.ts";
import { addCompletion } from "./commands/completion.ts";
import type { Context } from "./commands/context.ts";
import { addDevices } from "./commands/devices.ts";
import { addDoctor } from "./commands/doctor.ts";
import { addEvents } from "./commands/events.ts";
import { addFlash } from "./commands/flash.ts";
import { addInspect } from "./commands/inspect.ts";
import { addLogin } from "./commands/login.ts";
import { addMonitor } from "./commands/monitor.ts";
import { addProfile } from "./commands/profile.ts";
import { addProvision } from "./commands/provision.ts";
import { addRelease } from "./commands/release.ts";
import { addShell } from "./commands/shell.ts";
import { addToken } from "./commands/token.ts";
import { type Environment, Settings } from "./config/settings.ts";
import { EXIT, Failure } from "./failure.ts";
import { printStatus } from "./output.ts";

const DEFAULT_PROFILE = "default";

/** The whole command. `env`: what the commands read their settings from. */
export const makeProgram = (env: Environment): Command => {
  const program = new Command("blindrelay")
    .description("Calls agents through a relay that cannot read what it carries, and runs agents.")
    .version(pkg.version)
    .option("--profile <name>", "which profile to use; BLINDRELAY_PROFILE")
    .exitOverride()
    .addHelpText(
      "after",
      `
Example:
  blindrelay login --url https://relay.example
  blindrelay agent add "Pump in hall 7" --id pump-7
  blindrelay call pump-7 system.info

Environment, before the profile: BLINDRELAY_URL, BLINDRELAY_ACCOUNT_TOKEN, BLINDRELAY_AGENT_ID,
BLINDRELAY_RELAY_TOKEN, BLINDRELAY_AGENT_TOKEN, BLINDRELAY_PACKET_VERSION, BLINDRELAY_STATE_DIR.
BLINDRELAY_PASSPHRASE opens a profile that is under one.

Exit codes: 0 done, 1 an expectation failed, 2 usage, 3 the agent answered with an error, 4 relay or
agent not reachable, 5 refused, 6 timed out, 7 device or port, 70 a bug in blindrelay.`,
    );

  const context: Context = {
    settings: () => {
      const name = program.opts<{ profile?: string }>().profile ?? env.BLINDRELAY_PROFILE;
      return new Settings(env, name || DEFAULT_PROFILE);
    },
  };

  addLogin(program, context);
  const agent = program
    .command("agent")
    .description("the agents of your account, and running one")
    .addHelpText("after", "\nExample:\n  blindrelay agent list --json");
  addAgents(agent, context);
  addAgentRun(agent, context);
  addBridge(program, context);
  addCall(program, context);
  addEvents(program, context);
  addCheck(program);
  addProvision(program, context);
  addFlash(program, context, exitCodeOf);
  addMonitor(program, context);
  addDevices(program, context);
  addRelease(program, context);
  addProfile(program, context);
  addShell(program, context);
  addInspect(program, context);
  addToken(program, context);
  addDoctor(program, context);
  addCompletion(program, context);
  return program;
};

/** The exit code for what a command threw; tells a person why. */
export const exitCodeOf = (error: unknown): number => {
  if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : EXIT.usage;
  if (error instanceof Failure) {
    printStatus(
      error.exitCode === EXIT.agentError ? error.message : `blindrelay: ${error.message}`,
    );
    return error.exitCode;
  }
  printStatus(
    `blindrelay: a bug in blindrelay: ${error instanceof Error ? error.stack : String(error)}`,
  );
  return EXIT.fault;
};
