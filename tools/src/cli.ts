/**
 * All commands under one name, and the exit codes of their errors. This file runs nothing by
 * itself.
 */
import {
  asFailure,
  EXIT,
  Failure,
  type FailureKind,
  OFFERS,
  tidyCommands,
} from "@blindrelay/protocol/command-line";
import { CommanderError } from "commander";
import pkg from "../package.json" with { type: "json" };
import { Command } from "./base/command.ts";
import { jsonText, printStatus } from "./base/output.ts";
import type { Context } from "./commands/context.ts";
import type { Environment } from "./config/profile.ts";
import { Settings } from "./config/settings.ts";

const DEFAULT_PROFILE = "default";

type Add = (cli: Command, context: Context) => void;

/**
 * The commands in the order of the help. Each loads what it needs when it is used, which is most of
 * a start.
 */
const COMMANDS: Readonly<Record<string, () => Promise<Add>>> = {
  login: async () => (await import("./commands/login.ts")).addLogin,
  auth: async () => (await import("./commands/auth.ts")).addAuth,
  agent: async () => {
    const { addAgents } = await import("./commands/agents.ts");
    const { addAgentAdd } = await import("./commands/agent-add.ts");
    const { addAgentImport } = await import("./commands/agent-import.ts");
    const { addAgentSet } = await import("./commands/agent-set.ts");
    const { addAgentRekey } = await import("./commands/agent-rekey.ts");
    const { addAgentRun } = await import("./commands/agent-run.ts");
    return (cli, context) => {
      const agent = cli
        .command("agent")
        .description("manage the agents of your account, or run one")
        .example("blindrelay agent list --json");
      addAgentAdd(agent, context);
      addAgents(agent, context);
      addAgentImport(agent, context);
      addAgentSet(agent, context);
      addAgentRun(agent, context);
      addAgentRekey(agent, context);
    };
  },
  attach: async () => (await import("./commands/attach.ts")).addAttach,
  bridge: async () => (await import("./commands/bridge.ts")).addBridge,
  call: async () => (await import("./commands/call.ts")).addCall,
  events: async () => (await import("./commands/events.ts")).addEvents,
  logs: async () => (await import("./commands/logs.ts")).addLogs,
  board: async () => (await import("./commands/board-report.ts")).addBoardReport,
  check: async () => (await import("./commands/check.ts")).addCheck,
  provision: async () => (await import("./commands/provision.ts")).addProvision,
  flash: async () => {
    const { addFlash } = await import("./commands/flash.ts");
    return (cli, context) => addFlash(cli, context, exitCodeOf);
  },
  push: async () => (await import("./commands/push.ts")).addPush,
  monitor: async () => (await import("./commands/monitor.ts")).addMonitor,
  devices: async () => (await import("./commands/devices.ts")).addDevices,
  release: async () => (await import("./commands/release.ts")).addRelease,
  profile: async () => (await import("./commands/profile.ts")).addProfile,
  shell: async () => (await import("./commands/shell.ts")).addShell,
  inspect: async () => (await import("./commands/inspect.ts")).addInspect,
  token: async () => (await import("./commands/token.ts")).addToken,
  doctor: async () => (await import("./commands/doctor.ts")).addDoctor,
  completion: async () => (await import("./commands/completion.ts")).addCompletion,
};

/** Words that require all commands: the help, a wrong name, the completion. */
const ALL = Object.keys(COMMANDS);

/** The commands that a command line may refer to. */
const commandsIn = (words: readonly string[]): readonly string[] => {
  for (let i = 0; i < words.length; i++) {
    const word = words[i] as string;
    if (word === "--version" || word === "-V") return [];
    if (word === "--profile") i++;
    else if (!word.startsWith("--profile=")) {
      if (word !== "completion") return Object.hasOwn(COMMANDS, word) ? [word] : ALL;
      // After the word and `--`: what was typed, of which the last word is not whole.
      return words[i + 1] === OFFERS ? [word, ...commandsIn(words.slice(i + 3, -1))] : ALL;
    }
  }
  return ALL;
};

/** Whether the command line that was made last asks for JSON. */
let isJson = false;

const asksForJson = (words: readonly string[]): boolean => {
  const end = words.indexOf("--");
  return words.slice(0, end < 0 ? words.length : end).includes("--json");
};

/** Where else a command's name is known: `logout` is `auth logout`. */
const elsewhere = (cli: Command, message: string): string => {
  const [, name] = /unknown command '(.*)'/.exec(message) ?? [];
  const inner = cli.commands.find(({ commands }) => commands.some((one) => one.name() === name));
  return inner === undefined ? message : `error: it is: ${cli.name()} ${inner.name()} ${name}\n`;
};

/** With --json, `exitCodeOf` prints errors of usage too. */
const tellErrors = (cli: Command): void => {
  const tell = (command: Command): void => {
    if (isJson) command.configureOutput({ writeErr: () => undefined });
    command.commands.forEach(tell);
  };
  tell(cli);
  cli.configureOutput({ outputError: (text, write) => write(elsewhere(cli, text)) });
};

/**
 * The whole command, or as much of it as `words`, a command line, needs. `env`: the commands read
 * their settings from it.
 */
export const makeCli = async (
  env: Environment,
  words: readonly string[] = [],
): Promise<Command> => {
  const cli = new Command("blindrelay")
    .description("Calls agents through a relay that cannot read what it carries, and runs agents.")
    .version(pkg.version)
    .option("--profile <name>", "which profile to use; BLINDRELAY_PROFILE")
    .exitOverride()
    .example(`
  blindrelay login --url https://relay.example
  blindrelay agent add "Pump in hall 7" --id pump-7
  blindrelay call pump-7 system.info

Environment variables, which override the default profile, not --profile: BLINDRELAY_URL, BLINDRELAY_ACCOUNT_TOKEN, BLINDRELAY_AGENT_ID,
BLINDRELAY_RELAY_TOKEN, BLINDRELAY_AGENT_TOKEN, BLINDRELAY_PACKET_VERSION, BLINDRELAY_STATE_DIR.
BLINDRELAY_PASSPHRASE unlocks an encrypted profile.

Exit codes: 0 done, 1 an expectation failed, 2 usage, 3 the agent answered with an error, 4 relay or
agent not reachable, 5 refused, 6 timed out, 7 device or port, 70 a bug in blindrelay or
output that cannot be written, 130 interrupted.`);

  const context: Context = {
    settings: () => {
      const { profile } = cli.opts<{ profile?: string }>();
      const name = profile ?? (env.BLINDRELAY_PROFILE || DEFAULT_PROFILE);
      return new Settings(env, name, profile !== undefined);
    },
  };

  isJson = asksForJson(words);
  const adds = [...new Set(commandsIn(words))].map((name) =>
    (COMMANDS[name] as () => Promise<Add>)(),
  );
  for (const add of await Promise.all(adds)) add(cli, context);
  tidyCommands(cli, process.stdout);
  tellErrors(cli);
  return cli;
};

const printError = (kind: FailureKind, message: string): void =>
  printStatus(jsonText({ error: { kind, exit_code: EXIT[kind], message } }));

/** Standard input may break as any stream does: a socket is reset, a terminal is gone. */
const asKnownFailure = (error: unknown): unknown =>
  error instanceof Error && error === process.stdin.errored
    ? new Failure("usage", `standard input cannot be read: ${error.message}`, error)
    : asFailure(error);

/** The exit code for an error thrown by a command; also prints it. */
export const exitCodeOf = (thrown: unknown): number => {
  const error = asKnownFailure(thrown);
  if (error instanceof CommanderError) {
    if (error.exitCode === 0) return 0;
    if (isJson) printError("usage", error.message.replace(/^error: /, ""));
    return EXIT.usage;
  }
  if (error instanceof Failure) {
    // An agent's own error is a JSON object already.
    const isObject = error.message.startsWith("{");
    if (error.kind === "agentError" && (isObject || !isJson)) printStatus(error.message);
    else if (isJson) printError(error.kind, error.message);
    else printStatus(`blindrelay: ${error.message}`);
    return error.exitCode;
  }
  printStatus(
    `blindrelay: a bug in blindrelay: ${error instanceof Error ? error.stack : String(error)}`,
  );
  return EXIT.fault;
};
