/**
 * The commands of `blindrelay-server` (docs/commands.md). This file runs nothing by itself; each
 * command's code is loaded when it runs, so that `--help` needs neither a database nor a web
 * server.
 */
import { readFileSync } from "node:fs";
import {
  addCompletion,
  Failure,
  messageOf,
  qrCodeFor,
  tidyCommands,
} from "@blindrelay/protocol/command-line";
import { decodeText, parseJson } from "@blindrelay/protocol/parse-json";
import { Command, Option } from "commander";
import { renderUnicodeCompact } from "uqr";
import pkg from "../package.json" with { type: "json" };
import { contained, fault } from "./base/contain.ts";
import { MASTER_KEY_VARIABLE } from "./control/master-key.ts";
import { addOperations, type DataFlags } from "./ops/commands.ts";
import { PASSWORD_STDIN, readPassword } from "./ops/password.ts";
import {
  CONFIG_KEYS,
  Config,
  type ConfigKey,
  flagOf,
  maskConfig,
  readConfig,
  variableOf,
} from "./settings/config.ts";
import { chosenDataFolder, dataFolderText, hideFromGit } from "./settings/default-data-dir.ts";

const CONFIG_VARIABLE = "BLINDRELAY_CONFIG";

const describe = (key: ConfigKey): string => {
  const schema = Config.properties[key] as { description?: string; default?: unknown };
  const fallback = String(key === "data" ? dataFolderText() : (schema.default ?? ""));
  return `${schema.description}${fallback === "" ? "" : ` (default: ${fallback})`}`;
};

/**
 * A list may be given in one flag, separated by commas, or in several. For other flags, the last
 * one wins.
 */
const repeated =
  (key: ConfigKey) =>
  (value: string, before?: string): string =>
    "items" in Config.properties[key] && before !== undefined ? `${before},${value}` : value;

interface InitFlags extends DataFlags {
  username: string;
  passwordStdin?: boolean;
  totp: boolean;
}

interface StartFlags extends Record<string, string | boolean | undefined> {
  config?: string;
  printConfig?: boolean;
}

export const makeCli = (): Command => {
  const cli = new Command("blindrelay-server")
    .description("The blindrelay relay: routes sealed packets unread between agents and clients.")
    .version(pkg.version)
    .exitOverride()
    .addHelpText(
      "after",
      "\nExit codes: 0 done, 1 a check failed, 2 usage, 4 store or port not reachable, 5 refused, 70 a bug in blindrelay or output that cannot be written, 130 interrupted.",
    );
  addInit(cli);
  addStart(cli);
  addOperations(cli);
  addCompletion(cli, process.stdout);
  tidyCommands(cli, process.stdout);
  return cli;
};

const addInit = (cli: Command): void => {
  cli
    .command("init")
    .description("make a store, its master key and the first admin")
    .addOption(new Option("--data <dir>", describe("data")).env(variableOf("data")))
    .addOption(new Option("--store <where>", describe("store")).env(variableOf("store")))
    .requiredOption("--username <name>", "of the first admin")
    .option("--password-stdin", PASSWORD_STDIN)
    .option("--no-totp", "one-time codes are optional, for machines without people")
    .option("--json", "answer as one JSON document")
    .addHelpText(
      "after",
      "\nExamples:\n  blindrelay-server init --username ada\n  blindrelay-server init --username ada --password-stdin --json < password.txt",
    )
    .action(async (flags: InitFlags) => {
      const data = chosenDataFolder(flags.data);
      const masterKey = process.env[MASTER_KEY_VARIABLE];
      const password = await readPassword(flags.passwordStdin);
      const { initStore } = await import("./control/data-dir.ts");
      const made = await initStore({
        data,
        store: flags.store,
        masterKey,
        username: flags.username,
        password,
        totp: flags.totp,
      });
      hideFromGit(data);
      const answer = {
        username: made.username,
        totp_secret: made.totpSecret,
        otpauth_uri: made.otpauthUri,
      };
      process.stdout.write(
        flags.json === true
          ? `${JSON.stringify(answer)}\n`
          : initText(data, answer, masterKey === undefined),
      );
    });
};

const addStart = (cli: Command): void => {
  const start = cli
    .command("start")
    .description("run the relay until SIGTERM or SIGINT, which drain it")
    .option("--config <file>", `JSON file of these settings (or ${CONFIG_VARIABLE})`)
    .option("--print-config", "print the resulting settings, passwords hidden, and exit")
    .addHelpText("after", "\nExample:\n  blindrelay-server start --port 8080 --metrics-port 9090");
  for (const key of CONFIG_KEYS) {
    start.option(`${flagOf(key)} <value>`, `${describe(key)}; ${variableOf(key)}`, repeated(key));
  }
  start.action(async (flags: StartFlags) => {
    const { config: path = process.env[CONFIG_VARIABLE], printConfig, ...settings } = flags;
    const config = readConfig(settings, process.env, path === undefined ? {} : readFile(path));
    if (printConfig === true) {
      process.stdout.write(`${JSON.stringify(maskConfig(config), null, 2)}\n`);
      return;
    }
    const [{ createLog }, { firstSignal }, { startServer }] = await Promise.all([
      import("./log.ts"),
      import("./signals.ts"),
      import("./server.ts"),
    ]);
    const log = createLog(config.logLevel);
    // Before the relay is announced, because an early signal must drain too.
    for (const signal of ["SIGINT", "SIGTERM"]) process.removeAllListeners(signal);
    const signalled = firstSignal(log);
    const server = await startServer(config, { log, masterKey: process.env[MASTER_KEY_VARIABLE] });
    // A bug ends what it occurred in. What nothing has contained is at least logged and counted.
    process
      .removeAllListeners("uncaughtException")
      .on("uncaughtException", (error) =>
        fault("process", "an error was contained nowhere", error),
      );
    const listening = { event: "listening", url: server.url, metrics_url: server.metricsUrl };
    process.on(
      "SIGHUP",
      contained("process", "the certificate was not read", () => server.reloadTls()),
    );
    if (process.stdout.isTTY === true) printNext(server.url);
    const failure = await Promise.race([signalled, server.failed, unwritten(listening)]);
    await server.stop();
    if (failure instanceof Failure) throw failure;
  });
};

/** What a person does next. On standard error: the first line of the output is a program's. */
const printNext = (url: string): void => {
  process.stderr.write(`the console: ${url}/console\n`);
  process.stderr.write(`in another terminal: blindrelay login --url ${url}\n`);
};

/**
 * Writes the answer of a command that keeps running; resolves only if that failed. Whoever started
 * the relay waits for this line, so here, unlike for other answers, a closed pipe is a failure too.
 */
const unwritten = (answer: object): Promise<Failure> =>
  new Promise((resolve) => {
    const onError = contained("process", "the first line's end is not known", (error: Error) => {
      resolve(new Failure("fault", `the first line could not be written: ${error.message}`));
    });
    process.stdout.removeAllListeners("error").on("error", onError);
    process.stdout.write(`${JSON.stringify(answer)}\n`);
  });

const readFile = (path: string): Record<string, unknown> => {
  try {
    const value = parseJson(decodeText(readFileSync(path)));
    if (typeof value === "object" && value !== null && !Array.isArray(value)) {
      return value as Record<string, unknown>;
    }
  } catch (error) {
    const cause = messageOf(error);
    throw new Failure("usage", `cannot read the configuration file: ${cause}`, error);
  }
  throw new Failure("usage", `${path} must hold one JSON object`);
};

const initText = (
  data: string,
  made: { username: string; totp_secret: string | null; otpauth_uri: string | null },
  ownsKey: boolean,
): string => {
  const qrCode = qrCodeFor(
    renderUnicodeCompact,
    made.otpauth_uri ?? "",
    process.stdout,
    process.env.TERM,
  );
  return [
    `Made a store ${ownsKey ? "and a master key " : ""}in ${data}, and the admin ${made.username}.`,
    ...(made.totp_secret === null
      ? []
      : [
          `Put this into an authenticator app: ${made.totp_secret}`,
          `or this as a QR code: ${made.otpauth_uri}`,
          ...(qrCode === "" ? [] : [qrCode]),
        ]),
    ownsKey
      ? `Keep a copy of ${data}/key apart from backups of the store.`
      : `Keep the key that is in ${MASTER_KEY_VARIABLE}: the store is useless without it.`,
    "",
  ].join("\n");
};
