/**
 * `blindrelay shell [AGENT]`: calls by typing `method {json}`, with history, completion of methods
 * and agents, and events as they arrive. `--serial` makes it a terminal on the agent's serial port.
 */
import { chmodSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { createInterface, type Interface } from "node:readline";
import { type Agent, CallError, type Client } from "@blindrelay/client-sdk";
import { Failure } from "@blindrelay/protocol/command-line";
import { giveToOwner, makeFolder } from "@blindrelay/protocol/file-owner";
import { withClient } from "../account/connect.ts";
import { presentAgent } from "../account/rekey.ts";
import { asFailure } from "../base/call-failure.ts";
import type { Command } from "../base/command.ts";
import { methodsOf, readParams, similarMethod } from "../base/methods.ts";
import { jsonText, oneLine, printJson, printStatus, printText } from "../base/output.ts";
import type { Settings } from "../config/settings.ts";
import { printAbove } from "./above-prompt.ts";
import type { Context } from "./context.ts";
import { runSerial, type SerialFlags, withSerialOptions } from "./shell-serial.ts";

interface ShellFlags extends SerialFlags {
  readonly serial?: boolean;
  readonly json?: boolean;
}

const CONNECT_LIMIT_MS = 30_000;
const CALL_LIMIT_MS = 30_000;
const MAX_HISTORY = 1_000;

const HELP = `METHOD [JSON]   call it, such as: echo {"a": 1}
.agent ID       talk to another agent
.agents         agents of the keyring
.methods        methods of this agent
.help           this
.exit           leave; Ctrl-D too
Ctrl-C          cancel the running call, or else leave`;

const DOT_COMMANDS = [".agent", ".agents", ".methods", ".help", ".exit"];

/** Parses a line into method and parameters. Throws a Failure (usage) if it is not a call. */
export const readLine = (line: string): { readonly method: string; readonly params?: object } => {
  const [, method = "", json = ""] = /^(\S+)\s*(.*)$/s.exec(line.trim()) ?? [];
  return json.trim() === "" ? { method } : { method, params: readParams(json) };
};

/** Completions of the typed text, and the part of it that they replace. */
export const complete = (
  line: string,
  methods: readonly string[],
  agents: readonly string[],
): [string[], string] => {
  const agentPart = /^\.agent\s+(\S*)$/.exec(line);
  if (agentPart !== null) {
    const part = agentPart[1] ?? "";
    return [agents.filter((id) => id.startsWith(part)), part];
  }
  if (/\s/.test(line)) return [[], line];
  const offers = [...methods, ...DOT_COMMANDS].filter((word) => word.startsWith(line));
  // The only completion is complete: parameters follow.
  return [offers.length === 1 ? [`${offers[0]} `] : offers, line];
};

const historyOf = (
  settings: Settings,
): { load(): string[]; save(lines: readonly string[]): void } => {
  const path = join(dirname(settings.profilePath), "shell-history");
  return {
    load() {
      try {
        return readFileSync(path, "utf8").split("\n").filter(Boolean);
      } catch {
        return [];
      }
    },
    // Parameters may be secret: only the owner may read the file.
    save(lines) {
      try {
        makeFolder(dirname(path));
        writeFileSync(path, `${lines.slice(0, MAX_HISTORY).join("\n")}\n`, { mode: 0o600 });
        giveToOwner(path, dirname(path));
        chmodSync(path, 0o600);
      } catch {
        // The shell also works without a folder for its history.
      }
    },
  };
};

class Shell {
  private readonly settings: Settings;
  private readonly client: Client;
  private readonly json: boolean;
  private agent: Agent | null = null;
  private methods: string[] = [];
  private stopListening: () => void = () => undefined;
  /** How an event is printed while the user may be typing. */
  announce: (print: () => void) => void = (print) => print();

  constructor(settings: Settings, client: Client, json: boolean) {
    this.settings = settings;
    this.client = client;
    this.json = json;
  }

  get prompt(): string {
    return `${this.agent?.id ?? "no agent"}> `;
  }

  readonly completer = (line: string): [string[], string] =>
    complete(line, this.methods, this.agents());

  /** Talks to an agent from now on. Rejects with a Failure if its secret is not available. */
  async use(agentId: string): Promise<void> {
    const secret = this.settings.checkedSecretOf(agentId);
    this.stopListening();
    const agent = await presentAgent(this.client, this.settings, agentId, secret);
    this.agent = agent;
    this.methods = [];
    const stopEvents = agent.on("event", (event, data) => {
      this.announce(() => {
        if (this.json) printJson({ kind: "event", agent_id: agentId, event, data: data ?? null });
        else printStatus(`${agentId} ${oneLine(event)} ${jsonText(data ?? null)}`);
      });
    });
    const stopGaps = agent.on("gap", (count, of) => {
      this.announce(() => {
        if (this.json) printJson({ kind: "gap", agent_id: agentId, [of]: count });
        else printStatus(`${agentId}: ${count} ${of} were lost`);
      });
    });
    this.stopListening = () => {
      stopEvents();
      stopGaps();
    };
    try {
      this.methods = await methodsOf(agent);
    } catch (error) {
      if (!(error instanceof CallError)) throw error;
      printStatus(`${agentId}: ${oneLine(error.message)}`);
    }
  }

  /**
   * Handles one line; true if it ends the shell. `signal` gives up a call. Rejects with a Failure
   * or CallError.
   */
  async run(line: string, signal: AbortSignal): Promise<boolean> {
    const [typed = "", argument = ""] = line.trim().split(/\s+/);
    // Without its dot, unless the agent has such a method.
    const dotted = DOT_COMMANDS.includes(`.${typed}`) && !this.methods.includes(typed);
    const command = dotted ? `.${typed}` : typed;
    if (command === "") return false;
    if (command === ".exit") return true;
    if (command === ".help") printText(HELP);
    else if (command === ".agents") printText(this.agents().join("\n"));
    else if (command === ".methods") printText(this.methods.join("\n"));
    else if (command === ".agent") await this.use(argument);
    else if (command.startsWith("."))
      throw new Failure("usage", `there is no ${command}: see .help`);
    else await this.call(line, signal);
    return false;
  }

  private async call(line: string, signal: AbortSignal): Promise<void> {
    if (this.agent === null) throw new Failure("usage", "name an agent first: .agent ID");
    const { method, params } = readLine(line);
    let result: unknown;
    try {
      result = await this.agent.call(method, params, { timeoutMs: CALL_LIMIT_MS, signal });
    } catch (error) {
      const similar = error instanceof CallError ? similarMethod(error, method, this.methods) : "";
      if (similar !== "") printStatus(similar);
      throw error;
    }
    const text = jsonText(result);
    const { isTTY, columns } = process.stdout;
    const isWide = isTTY && !this.json && columns > 0 && text.length > columns;
    printText(isWide ? jsonText(result, 2) : text);
  }

  private agents(): string[] {
    return Object.keys(this.settings.profile?.keyring ?? {});
  }
}

const makePrompt = (shell: Shell, history: string[]): Interface => {
  const terminal = process.stdin.isTTY === true;
  return createInterface({
    input: process.stdin,
    output: process.stderr,
    terminal,
    ...(terminal ? { history, completer: shell.completer, historySize: MAX_HISTORY } : {}),
    removeHistoryDuplicates: true,
  });
};

const interact = async (shell: Shell, settings: Settings): Promise<void> => {
  const interactive = process.stdin.isTTY === true;
  const history = historyOf(settings);
  const prompt = makePrompt(shell, history.load());
  prompt.on("history", (lines: string[]) => history.save(lines));
  let isOpen = true;
  prompt.on("close", () => {
    isOpen = false;
  });
  const ask = (): void => {
    // Ctrl-D may have been typed while a call was under way.
    if (!interactive || !isOpen) return;
    prompt.setPrompt(shell.prompt);
    prompt.prompt();
  };
  let underWay: AbortController | null = null;
  if (interactive) {
    shell.announce = (print) => {
      // During a call there is no prompt to redraw, unless the user types ahead.
      if (underWay !== null && prompt.line === "") print();
      else printAbove(prompt, process.stderr, print);
    };
  }
  // Ctrl-C cancels the current call, else it exits.
  prompt.on("SIGINT", () => (underWay === null ? prompt.close() : underWay.abort()));
  if (interactive) printStatus(".help lists what can be typed");
  ask();
  for await (const line of prompt) {
    underWay = new AbortController();
    try {
      if (await shell.run(line, underWay.signal)) break;
    } catch (error) {
      const failure = asFailure(error);
      // A script ends at its first failure; an interactive shell continues.
      if (!interactive || !(failure instanceof Failure)) throw failure;
      printStatus(failure.message);
    } finally {
      underWay = null;
    }
    ask();
  }
  shell.announce = (print) => print();
  prompt.close();
};

const checkFlags = (agentId: string | undefined, flags: ShellFlags): void => {
  if (flags.serial === true) {
    if (agentId === undefined) throw new Failure("usage", "--serial needs an agent");
    if (flags.json === true) throw new Failure("usage", "--json does not go with --serial");
    return;
  }
  const alone = (["port", "baud", "dtr", "rts"] as const).find((name) => flags[name] !== undefined);
  if (alone !== undefined) throw new Failure("usage", `--${alone} goes with --serial`);
};

export const addShell = (cli: Command, context: Context): void => {
  withSerialOptions(
    cli
      .command("shell")
      .description("type calls to an agent and see its events")
      .argument("[agent]", "the agent's id")
      .option("--serial", "a terminal on the serial port of a bridged agent; Ctrl-] ends"),
  )
    .option("--json", "results and events as one JSON document per line; not with --serial")
    .example(`
  blindrelay shell pump-7
  echo 'valve.open {"percent": 40}' | blindrelay shell pump-7
  blindrelay shell printer-1 --serial --baud 115200

What can be typed:
${HELP}`)
    .action(async (agentId: string | undefined, flags: ShellFlags) => {
      checkFlags(agentId, flags);
      const settings = context.settings();
      const secret = agentId === undefined ? null : settings.checkedSecretOf(agentId);
      await withClient(settings, CONNECT_LIMIT_MS, async (client) => {
        if (flags.serial === true && agentId !== undefined && secret !== null) {
          await runSerial(await presentAgent(client, settings, agentId, secret), flags);
          return;
        }
        const shell = new Shell(settings, client, flags.json ?? false);
        if (agentId !== undefined) await shell.use(agentId);
        await interact(shell, settings);
      });
    });
};
