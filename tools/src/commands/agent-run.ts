/**
 * `blindrelay agent run PROGRAM`: runs a device program as an agent on Node. It waits out temporary
 * failures (the relay is down, restarts, or locks the address out); a failure that needs a person
 * ends the command with its exit code.
 */
import { statSync } from "node:fs";
import { resolve } from "node:path";
import { pathToFileURL } from "node:url";
import {
  describeRefusal,
  dialectWarning,
  isSyntax,
  loadDialect,
} from "@blindrelay/agent-sdk/dialect";
import type { Agent, AgentStatus, RunningAgent, StateProblem } from "@blindrelay/agent-sdk/node";
import { Failure, messageOf } from "@blindrelay/protocol/command-line";
import { identify } from "../account/identity.ts";
import type { Command } from "../base/command.ts";
import { interrupted } from "../base/interrupted.ts";
import { type JsonFlag, printJson, printStatus, serveUnread } from "../base/output.ts";
import { claimUncaught, describeThrown, isOfProgram } from "../base/uncaught.ts";
import { PASSPHRASE_VARIABLE } from "../config/passphrase.ts";
import type { Settings } from "../config/settings.ts";
import { readSource } from "../flash/program.ts";
import { makePushKey } from "../push/push-key.ts";
import { askForRestart, isSupervised, reportAlive, supervise } from "../push/supervisor.ts";
import type { Context } from "./context.ts";
import { version } from "./version-flags.ts";

type DeviceProgram = (agent: Agent) => void | Promise<void>;

interface RunFlags extends JsonFlag {
  readonly agent?: string;
  readonly provision?: boolean;
  readonly stateDir?: string;
  readonly name?: string;
  readonly firmwareVersion?: string;
  readonly allowPush?: boolean;
  readonly pushKey?: string;
  /** False with --no-rekey. */
  readonly rekey: boolean;
  readonly stubs?: string;
}

/**
 * Before the first login these mean that the configuration is wrong, not that something changed.
 */
const CREDENTIALS = ["INVALID_TOKEN", "WRONG_TOKEN_KIND", "REVOKED", "BAD_MESSAGE"];

/** How that process gets the push key: later the file may be gone. */
const PUSH_KEY = "BLINDRELAY_PUSH_KEY";
/** Environment variables of the process that runs the agent, until it has read them. */
const SECRETS = [
  "BLINDRELAY_RELAY_TOKEN",
  "BLINDRELAY_AGENT_TOKEN",
  "BLINDRELAY_DEVICE_SECRET",
  PUSH_KEY,
];

/** The path of a file; `what`: as errors call it. */
const fileAt = (path: string, what: string): string => {
  const file = resolve(path);
  const found = statSync(file, { throwIfNoEntry: false });
  if (found === undefined) throw new Failure("usage", `there is no ${what} ${path}`);
  if (found.isDirectory()) throw new Failure("usage", `${path} is a folder: name a file`);
  return file;
};

/** Gives this process the globals of a file of stubs, over the bundled ones. */
const connectStubs = async (path: string, id: string): Promise<void> => {
  const file = fileAt(path, "file of stubs");
  const { default: bundled } = await import("@blindrelay/agent-sdk/stubs");
  const begun = performance.now();
  const device = {
    id,
    group: "",
    boots: 1,
    now: () => performance.now() - begun,
    random: Math.random,
    log: (text: string) => printStatus(text),
  };
  let stubs: unknown;
  try {
    const { default: make } = (await import(pathToFileURL(file).href)) as { default?: unknown };
    stubs = typeof make === "function" ? make(device) : undefined;
  } catch (error) {
    throw new Failure("usage", `the stubs cannot be loaded: ${describeThrown(error)}`, error);
  }
  if (typeof stubs !== "object" || stubs === null) {
    const form = "export default (device) => ({ digitalRead: (pin) => 0 })";
    throw new Failure("usage", `${path}: stubs are the device's globals: ${form}`);
  }
  for (const [name, value] of Object.entries({ ...bundled(device), ...stubs })) {
    Object.defineProperty(globalThis, name, { value, configurable: true, writable: true });
  }
};

const loadProgram = async (path: string): Promise<DeviceProgram> => {
  const file = fileAt(path, "device program");
  let loaded: { readonly default?: unknown };
  try {
    loaded = await import(pathToFileURL(file).href);
  } catch (error) {
    const syntax = error instanceof SyntaxError ? await syntaxError(path) : null;
    throw new Failure(
      "usage",
      `the device program cannot be loaded: ${syntax ?? describeThrown(error)}`,
    );
  }
  if (typeof loaded.default === "function") return loaded.default as DeviceProgram;
  throw new Failure("usage", `${path} does not export a function: export default (agent) => {…}`);
};

/** The place of a syntax error in the program itself; null if the error is in an imported file. */
const syntaxError = async (path: string): Promise<string | null> => {
  const { checkProgram } = await loadDialect();
  const found = checkProgram(readSource(path)).refused.find(isSyntax);
  return found === undefined ? null : describeRefusal(path, found);
};

/** Node lacks the limits of boards, but warns about them for programs that will run on one. */
const warnOfDialect = async (path: string): Promise<void> => {
  const { checkProgram } = await loadDialect();
  const warning = dialectWarning(path, checkProgram(readSource(path)).refused);
  if (warning !== null) printStatus(warning);
};

/**
 * Reports what the program throws outside of its handlers, and continues, as a board does.
 * `agent`: keeps it in its log; null before it has one.
 */
const forgiveProgram = (agent: () => Agent | null): (() => void) =>
  claimUncaught((error) => {
    if (!isOfProgram(error)) return false;
    const what = "the device program failed outside of its handlers; the agent continues";
    const text = `${what}: ${describeThrown(error)}`;
    const log = agent()?.log;
    if (log === undefined) printStatus(`error: ${text}`);
    else log("error", text);
    return true;
  });

/** A program that throws at its start is its author's mistake, not ours. */
const guarded =
  (program: DeviceProgram) =>
  async (agent: Agent): Promise<void> => {
    try {
      await program(agent);
    } catch (error) {
      throw new Failure("usage", `the device program failed: ${describeThrown(error)}`, error);
    }
  };

const howFor = (problem: StateProblem): string => {
  if (problem === "locked" || problem === "medium") return "";
  return problem === "pushKey"
    ? "; to give it another one, remove push.key there"
    : "; with a new agent_token, add --provision";
};

/** Maps errors that prevent an agent from starting to exit codes. */
const explained = async <T>(stateDir: string, begin: () => Promise<T>): Promise<T> => {
  const { ConfigError, StateError } = await import("@blindrelay/agent-sdk/node");
  try {
    return await begin();
  } catch (error) {
    if (error instanceof StateError) {
      const reason = error.cause === undefined ? "" : messageOf(error.cause);
      const cause = error.message.includes(reason) ? "" : `: ${reason}`;
      const where = error.message.includes(stateDir) ? "" : ` (the state folder is ${stateDir})`;
      const text = `${error.message}${cause}${where}${howFor(error.problem)}`;
      throw new Failure("device", text, error);
    }
    if (error instanceof ConfigError) throw new Failure("refused", error.message, error);
    throw error;
  }
};

/** Loads a pushed program from its file; its trial reports any problem with it. */
const loadPushed = async (file: string, path: string): Promise<DeviceProgram> => {
  printStatus(`running the pushed program, not ${path}`);
  const { default: program } = await import(pathToFileURL(file).href);
  if (typeof program === "function") return program;
  throw new Error("it does not export a function");
};

const pushKeyIn = (flags: RunFlags): string | undefined =>
  flags.pushKey === undefined ? undefined : makePushKey(flags.pushKey);

const start = async (
  settings: Settings,
  path: string,
  flags: RunFlags,
  isPushable: boolean,
): Promise<RunningAgent> => {
  if (flags.stubs !== undefined) await connectStubs(flags.stubs, flags.agent ?? "");
  const load = async (): Promise<DeviceProgram> => {
    const program = guarded(await loadProgram(path));
    await warnOfDialect(path);
    return program;
  };
  // If another program was pushed, this one is not even read. Else its mistakes come first: no
  // relay is waited for.
  const program = isPushable
    ? async (agent: Agent): Promise<void> => (await load())(agent)
    : await load();
  const url = settings.socketUrl();
  const pushKey = isPushable ? process.env[PUSH_KEY] : pushKeyIn(flags);
  const { agentId, relayToken, stateDir, deviceSecret, ...secret } = await identify(
    settings,
    flags,
  );
  const keys = { agentToken: secret.agentToken, packetVersion: secret.version };
  // Not inherited by what a pushed program starts.
  if (isPushable) for (const name of SECRETS) delete process.env[name];
  const sdk = await import("@blindrelay/agent-sdk/node");
  if (flags.provision === true) await explained(stateDir, () => sdk.provision(stateDir, keys));
  return explained(stateDir, () =>
    sdk.startAgent({
      url,
      agentId,
      relayToken,
      ...keys,
      deviceKey: deviceSecret ?? undefined,
      stateDir,
      program,
      pushes: isPushable
        ? { load: (file) => loadPushed(file, path), restart: askForRestart }
        : undefined,
      pushKey,
      rekey: flags.rekey,
      name: flags.name,
      firmwareVersion: flags.firmwareVersion,
      log: (level, message, fields, thrown) => {
        // runUntilStopped reports the state of the link.
        if (level === "debug" || level === "info" || Object.hasOwn(fields ?? {}, "waitMs")) return;
        const more = fields === undefined ? "" : ` ${JSON.stringify(fields)}`;
        printStatus(`${level}: ${message}${more}${sdk.programFrames(thrown)}`);
      },
    }),
  );
};

/**
 * Runs the agent in a separate process, which is all that a pushed program can break. Ends with the
 * exit code of that process, which has reported the reason.
 */
const startSupervised = async (
  settings: Settings,
  path: string,
  flags: RunFlags,
): Promise<never> => {
  const pushKey = pushKeyIn(flags);
  const { agentId, relayToken, agentToken, version, deviceSecret, stateDir } = await identify(
    settings,
    flags,
  );
  const { endTrial, provision } = await import("@blindrelay/agent-sdk/node");
  if (flags.provision === true)
    await explained(stateDir, () => provision(stateDir, { agentToken, packetVersion: version }));
  const code = await supervise({
    args: [
      ...["agent", "run", path, "--allow-push"],
      ...(flags.rekey ? [] : ["--no-rekey"]),
      ...(flags.name === undefined ? [] : ["--name", flags.name]),
      ...(flags.firmwareVersion === undefined ? [] : ["--firmware-version", flags.firmwareVersion]),
      ...(flags.stubs === undefined ? [] : ["--stubs", flags.stubs]),
      ...(flags.json === true ? ["--json"] : []),
    ],
    env: {
      BLINDRELAY_URL: settings.socketUrl(),
      BLINDRELAY_AGENT_ID: agentId,
      BLINDRELAY_RELAY_TOKEN: relayToken,
      BLINDRELAY_AGENT_TOKEN: agentToken,
      BLINDRELAY_PACKET_VERSION: version,
      BLINDRELAY_DEVICE_SECRET: deviceSecret ?? undefined,
      BLINDRELAY_STATE_DIR: stateDir,
      [PUSH_KEY]: pushKey,
      // No longer needed, and not for the program.
      BLINDRELAY_ACCOUNT_TOKEN: undefined,
      [PASSPHRASE_VARIABLE]: undefined,
    },
    ended: (reason) => endTrial(stateDir, reason),
  });
  process.exit(code);
};

/** Resolves when the agent should stop, rejects if continuing makes no sense. */
const runUntilStopped = (
  running: RunningAgent,
  agentId: string,
  json: boolean,
  orphaned: Promise<void> | null,
): Promise<void> =>
  new Promise((resolvePromise, reject) => {
    let wasOnline = false;
    let told: string | null = null;
    const follow = (status: AgentStatus): void => {
      if (status.state === "online") {
        wasOnline = true;
        told = null;
        if (json) printJson({ event: "online", agent_id: agentId });
        else printStatus(`${agentId} is online`);
        return;
      }
      const refused = status.code !== null && CREDENTIALS.includes(status.code);
      if (status.state === "refused" || (status.state === "waiting" && refused && !wasOnline)) {
        reject(new Failure("refused", status.advice ?? "the relay refuses this agent"));
      } else if (status.state === "waiting") {
        const { code, advice } = status;
        const waitMs = Math.round(status.waitMs ?? 0);
        if (json) printJson({ event: "offline", agent_id: agentId, code, reason: advice, waitMs });
        // Each reason once, until it changes or the agent was online; a countdown is no change.
        const reason = advice?.replace(/\d+/g, "#") ?? "";
        if (!json && reason !== told) printStatus(`${advice ?? "offline"} (it keeps trying)`);
        told = reason;
      }
    };
    running.onState(follow);
    interrupted().then(resolvePromise);
    orphaned?.then(resolvePromise);
  });

export const addAgentRun = (agent: Command, context: Context): void => {
  agent
    .command("run")
    .description("run a device program as an agent, until Ctrl-C or SIGTERM")
    .argument("<program>", "a file: export default (agent) => { agent.handle(…) }")
    .option("--agent <agent-id>", "an agent of your account; BLINDRELAY_AGENT_ID")
    .option("--provision", "bind the state folder to a new agent_token first")
    .option(
      "--state-dir <dir>",
      "this agent's own folder; BLINDRELAY_STATE_DIR, or next to the profile",
    )
    .option("--name <name>", "a name for people (default: the agent's id)")
    .option(
      "--firmware-version <version>",
      "the program's version (SemVer), shown by the relay",
      version,
    )
    .option(
      "--stubs <file>",
      "hardware that is not there: exports (device) => ({ … }), its globals",
    )
    .option("--allow-push", "accept programs over the relay (blindrelay push)")
    .option(
      "--push-key <file>",
      "accept only those (and new secrets) that are proven with this key; made if there is none",
    )
    .option("--no-rekey", "refuse a new end-to-end secret over the relay (blindrelay agent rekey)")
    .option("--json", "one JSON document per change of the link on standard output")
    .example(`
  blindrelay agent run ./pump.js --agent pump-7

Without a profile (\`blindrelay agent export pump-7 --env\` prints these lines):
  export BLINDRELAY_URL=https://relay.example BLINDRELAY_AGENT_ID=pump-7
  export BLINDRELAY_RELAY_TOKEN=… BLINDRELAY_AGENT_TOKEN=… BLINDRELAY_STATE_DIR=./pump-7
  blindrelay agent run ./pump.js

An error in a handler goes to its caller. An error in a timer or a promise is printed with file, line
and stack, and the agent continues. A warning names what boards cannot run: see \`blindrelay check\`.

With --allow-push, anyone who has the agent's end-to-end secret can replace the program, which then
runs with this command's rights. A pushed program is kept in the state folder and runs from then on,
also after a restart; without the flag, the program named here runs. The agent runs in its own process,
which is restarted if it ends or hangs for 25 s. With --push-key, pushing takes that key's
file, too, which is made if it is missing: keep it where programs are made. The state folder keeps the key
as well: it stays guarded without the flag, and another key is refused (exit 7).

A new or empty state folder is provisioned automatically. Exit codes: 2 usage, 5 the relay
refuses these credentials, 7 the state folder does not let this agent start. If the relay is
unavailable, the command waits for it.`)
    .action(async (path: string, flags: RunFlags) => {
      serveUnread();
      const settings = context.settings();
      const isPushable = flags.allowPush === true && isSupervised();
      if (flags.allowPush === true && !isPushable) await startSupervised(settings, path, flags);
      const orphaned = isPushable ? reportAlive() : null;
      let running: RunningAgent | null = null;
      const stopForgiving = forgiveProgram(() => running?.core.agent ?? null);
      try {
        running = await start(settings, path, flags, isPushable);
        const { id } = running.core.agent;
        const stopped = runUntilStopped(running, id, flags.json === true, orphaned);
        await stopped.finally(() => running?.stop());
      } finally {
        stopForgiving();
      }
    });
};
