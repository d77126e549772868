/** `blindrelay provision`: makes a board an agent of the user's account. */

import {
  type BoardConfig,
  boardProblem,
  changeWifi,
  type EspruinoRepl,
  provisionBoard,
  pushKeyOf,
  readBoard,
  type Wifi,
} from "@blindrelay/agent-sdk/board";
import { Failure } from "@blindrelay/protocol/command-line";
import { isForward, isVersion, type Version } from "@blindrelay/protocol/crypto";
import { nodeSuite } from "@blindrelay/protocol/suites/node";
import { InvalidArgumentError, Option } from "commander";
import {
  accountRest,
  agentPath,
  createAgent,
  demandOwnId,
  demandToken,
  keepKey,
  makeDeviceKey,
  makeKey,
  replaceKey,
} from "../account/account.ts";
import { BAD_VERSION, NOT_ON_ESPRUINO } from "../account/device-files.ts";
import type { Command } from "../base/command.ts";
import { rejectOnInterrupt, wasInterrupted } from "../base/interrupted.ts";
import { type JsonFlag, printJson, printStatus, printText } from "../base/output.ts";
import { readWifi } from "../base/wifi.ts";
import type { Key } from "../config/profile.ts";
import { checkAgentId, type Settings, socketAddress } from "../config/settings.ts";
import { provisionFolder } from "../flash/provision.ts";
import { makePushKey } from "../push/push-key.ts";
import { DEFAULT_BAUD_RATE, type PortFlags } from "../repl/port.ts";
import { ADDRESS_FORMS } from "../serial/address.ts";
import { baudRate, withBaud, withConsole } from "./board.ts";
import type { Context } from "./context.ts";

interface ProvisionFlags extends JsonFlag, PortFlags {
  readonly name?: string;
  readonly id?: string;
  readonly agent?: string;
  readonly out?: string;
  readonly target: "espruino" | "moddable";
  readonly packetVersion?: string;
  readonly relayUrl?: string;
  readonly slowCrypto?: boolean;
  readonly push: boolean;
  readonly pushKey?: string;
  readonly rekey?: boolean;
  readonly wifi?: string;
  readonly serial?: string;
  readonly serialBaud: number;
  readonly serialSetup?: object;
}

interface Made {
  readonly agentId: string;
  readonly relayToken: string;
  readonly name: string;
  /** Stores its secret in the keyring. */
  keep(): void;
  /** Undoes the changes on the relay and in the keyring. */
  undo(): Promise<void>;
  /** What is left where that fails. */
  readonly left: string;
}

/** A new agent, or an existing one that gets a new end-to-end secret. */
const makeAgent = async (settings: Settings, flags: ProvisionFlags, key: Key): Promise<Made> => {
  const rest = accountRest(settings);
  const { agent: agentId } = flags;
  if (agentId !== undefined) {
    const path = agentPath(agentId);
    const { name } = await rest.ask("Agent", "GET", path);
    const { api_token } = await rest.ask("AgentExport", "GET", `${path}/export`);
    demandToken(api_token, "agent", settings.httpUrl());
    demandOwnId(settings, agentId);
    let putBack = (): void => undefined;
    return {
      agentId,
      relayToken: api_token,
      name,
      keep: () => {
        putBack = replaceKey(settings, agentId, key);
      },
      undo: async () => putBack(),
      left: "the keyring has a secret that no board has; go back: blindrelay profile restore",
    };
  }
  const made = await createAgent(settings, flags.name ?? flags.id ?? "board", flags.id ?? null);
  return {
    agentId: made.agent_id,
    relayToken: made.api_token,
    name: made.name,
    keep: () => keepKey(settings, made.agent_id, key),
    undo: async () => {
      await rest.tell("DELETE", agentPath(made.agent_id));
      keepKey(settings, made.agent_id, null);
    },
    left: "it was created and could not be removed again",
  };
};

/** On Espruino a secret on trial takes some 600 variables at its peak: docs/espruino.md. */
const REKEY_VARIABLES = 4_000;

/** Unless one is named, the strongest that the target has. */
const chosenVersion = (flags: ProvisionFlags, hasAes: boolean): Version => {
  const isModdable = flags.target === "moddable";
  const version = flags.packetVersion ?? (isModdable ? "4" : hasAes ? "2" : "1");
  if (!isVersion(version)) throw new Failure("usage", BAD_VERSION);
  if (isForward(version) && !isModdable) throw new Failure("usage", NOT_ON_ESPRUINO);
  return version;
};

/** What is asked for, with what the flags name. */
interface Asked {
  readonly settings: Settings;
  readonly flags: ProvisionFlags;
  readonly wifi: Wifi | null;
  readonly pushKey: string | null;
}

/** Where a configuration goes. */
interface Writer {
  write(config: BoardConfig): Promise<void>;
  /** Nothing is written any more. */
  stop(): Promise<void>;
  /** What a signal leaves. */
  left(): string;
}

const provisionOne = async (
  { settings, flags, wifi, pushKey }: Asked,
  version: Version,
  writer: Writer,
): Promise<BoardConfig> => {
  const device = isForward(version) ? makeDeviceKey() : null;
  const key = makeKey(version, device?.key);
  const url = flags.relayUrl === undefined ? settings.socketUrl() : socketAddress(flags.relayUrl);
  // From here on there is something to undo.
  const stopped = rejectOnInterrupt(() => writer.left());
  stopped.catch(() => undefined);
  const made = await makeAgent(settings, flags, key);
  const config: BoardConfig = {
    url,
    agent_id: made.agentId,
    relay_token: made.relayToken,
    agent_token: key.agent_token,
    v: version,
    ...(device === null ? {} : { device_key: device.secret }),
    name: made.name,
    ...(flags.push ? {} : { push: false }),
    ...(pushKey === null ? {} : { push_key: pushKey }),
    ...(flags.rekey === undefined ? {} : { rekey: flags.rekey }),
    ...(wifi === null ? {} : { wifi }),
    ...serialOf(flags),
  };
  try {
    made.keep();
    // The signal may have come while the agent was made.
    if (wasInterrupted()) await stopped;
    await Promise.race([writer.write(config), stopped]);
  } catch (error) {
    // First: meanwhile a board could become an agent that is gone.
    await writer.stop().catch(() => undefined);
    await made.undo().catch((failed: Error) => {
      printStatus(`${made.agentId}: ${made.left}: ${failed.message}`);
    });
    throw error;
  }
  return config;
};

const serialOf = (flags: ProvisionFlags): Pick<BoardConfig, "serial"> => {
  if (flags.serial === undefined) return {};
  const serial = { port: flags.serial, baud: flags.serialBaud };
  const { serialSetup: options } = flags;
  return { serial: options === undefined ? serial : { ...serial, options } };
};

const setup = (text: string): object => {
  try {
    const value: unknown = JSON.parse(text);
    if (typeof value === "object" && value !== null && !Array.isArray(value)) return value;
  } catch {
    // Reported below.
  }
  throw new InvalidArgumentError('an object in JSON, such as \'{"rx":"D8","tx":"D6"}\'');
};

/** To a board, loopback is the board itself; with a bridge, the bridge's address and TLS apply. */
const warnOfAddress = ({ url, serial }: BoardConfig): void => {
  if (serial !== undefined) return;
  if (/^wss?:\/\/(127\.|localhost|\[::1\])/.test(url)) {
    printStatus(`${url} is this machine's own: a board elsewhere needs --relay-url`);
  }
  if (url.startsWith("wss:")) {
    printStatus(
      "Espruino's TLS verifies no certificate: anyone on the network path can read the relay token",
    );
  }
};

/** Whether only a Wi-Fi is specified, which is allowed for a board that is already an agent. */
const wantsOnlyWifi = (flags: ProvisionFlags): boolean => {
  const { wifi, name, id, agent, out, packetVersion, relayUrl, serial, slowCrypto, push } = flags;
  const { pushKey, rekey } = flags;
  const identity = [name, id, agent, out, packetVersion, relayUrl, serial];
  const others = [...identity, slowCrypto, pushKey, rekey];
  return wifi !== undefined && push && others.every((flag) => flag === undefined);
};

const needKeyring = ({ profile }: Settings): void => {
  if (profile !== null) return;
  throw new Failure("usage", "there is no keyring for the secret: run blindrelay login first");
};

/** The board's configuration; `next`: the command still to be typed, null if it already runs. */
interface Provisioned {
  readonly config: BoardConfig;
  readonly next: string | null;
}

const onBoard = async (board: EspruinoRepl, asked: Asked): Promise<Provisioned> => {
  const { settings, flags, wifi, pushKey } = asked;
  await board.attach(true);
  const found = await readBoard(board);
  if (wifi !== null && !found.modules.includes("Wifi")) {
    printStatus(
      'this Espruino has no module "Wifi": its program has to bring a driver (docs/espruino.md)',
    );
  }
  const next = `next: blindrelay flash ${board.port.name} --program FILE`;
  if (wifi !== null && found.agentId !== null && wantsOnlyWifi(flags)) {
    const config = await changeWifi(board, wifi);
    printStatus(
      `${config.agent_id} keeps its secrets; only its Wi-Fi was changed, to "${wifi.ssid}"`,
    );
    if (config.wifi === undefined) return { config, next }; // Its SDK knows no Wi-Fi.
    await board.type("load()");
    return { config, next: null };
  }
  needKeyring(settings);
  const problem = boardProblem(found, flags.slowCrypto ?? false, flags.serial !== undefined);
  if (problem !== null) throw new Failure("device", problem);
  if (flags.rekey === true && found.variables < REKEY_VARIABLES) {
    const few = `this board has ${found.variables} variables`;
    throw new Failure("device", `${few}: --rekey needs ${REKEY_VARIABLES}, so omit it`);
  }
  if (flags.serial !== undefined) {
    const kind = await board.evaluate(`typeof global[${JSON.stringify(flags.serial)}]`);
    if (kind !== "object") throw new Failure("device", `this board has no UART ${flags.serial}`);
  }
  const version = chosenVersion(flags, found.aes);
  if (version === "2" && !found.aes) {
    throw new Failure("device", "this board has no AES: omit --packet-version, or set it to 1");
  }
  const isKept = found.guarded && pushKey === null;
  if (isKept) printStatus("it keeps its push key: `push` needs that key's file, --push-key FILE");
  const key = isKept ? await pushKeyOf(board) : pushKey;
  let left = "the board stays as it was";
  const config = await provisionOne({ ...asked, pushKey: key }, version, {
    write: (config) => {
      left = "the board may have no agent now: repeat the command";
      if (found.agentId !== null) printStatus(`the board was ${found.agentId} until now`);
      return provisionBoard(board, nodeSuite(), config);
    },
    stop: () => board.close(),
    left: () => left,
  });
  return { config, next };
};

export const addProvision = (cli: Command, context: Context): void => {
  withBaud(
    cli
      .command("provision")
      .description("make a board an agent: create it, and write its configuration to the board")
      .argument("[port]", ADDRESS_FORMS),
  )
    .option("--name <name>", "a name for people")
    .option("--id <agent-id>", "propose an id (default: the relay makes one)")
    .option("--agent <agent-id>", "an agent of your account: it gets a new end-to-end secret")
    .option("--out <dir>", "write the board's files into a folder instead of to a board")
    .addOption(
      new Option("--target <runtime>", "with --out: what runs on the board")
        .choices(["espruino", "moddable"])
        .default("espruino"),
    )
    .option("--relay-url <url>", "the relay's address as seen by the board, if it differs")
    .option(
      "--packet-version <v>",
      'the default is the strongest: "2" for an Espruino with AES, else "1"; "4" for Moddable',
    )
    .option("--wifi <ssid>", "the Wi-Fi that it joins; the password is read from standard input")
    .option("--serial <uart>", "no network: the UART connected to a bridge, such as Serial1")
    .option("--serial-baud <rate>", "that UART's rate", baudRate, DEFAULT_BAUD_RATE)
    .option("--serial-setup <json>", "options for Espruino's Serial.setup, such as pins", setup)
    .option("--slow-crypto", "accept a board without native SHA-256")
    .option("--no-push", "do not accept programs over the relay; saves 3.8 KB of flash")
    .option(
      "--push-key <file>",
      "accept only programs that are proven with this key; made if there is no such file",
    )
    .option(
      "--rekey",
      "an Espruino: let `agent rekey` replace its secret; saves a visit, takes 5.7 KB",
    )
    .option("--no-rekey", "Moddable, with --out: do not let `agent rekey` replace its secret")
    .option("--json", "one JSON document, without secrets")
    .example(`
  blindrelay provision /dev/ttyUSB0 --name "Pump in hall 7" --id pump-7
  blindrelay provision /dev/ttyUSB0 --id pump-7 --wifi "hall 7"    # asks for the password
  blindrelay provision /dev/ttyUSB0 --wifi "hall 8"                # later: another network only
  blindrelay provision /dev/ttyUSB0 --id pump-7 --serial Serial1   # then: flash, and bridge
  blindrelay provision --out ./pump-7 --id pump-7
  blindrelay provision --target moddable --out ./pump-7 --id pump-7    # then: flash --target moddable
  blindrelay provision /dev/ttyUSB0 --id pump-7 --push-key ./pumps.key    # then: push --push-key

Secrets are not printed. With --wifi it asks for the password, or reads it from the first line of
standard input; leave it empty for an open network. It is stored in the board's Storage; with --out in
DIR/blindrelay.json, and for Moddable in the project's agent.json. If --wifi is the only option, a board
that is already an agent changes only its network. The end-to-end secret is made here and stored in the
profile's keyring, so that \`call\` finds it. A folder made with --out is for one board, because its files
contain secrets. Copied onto it again, they change nothing; but a board whose storage was erased needs a
new folder, because the boot counts that it used are forgotten. With --push-key, who may call the board
cannot program it over the relay: that takes the key's file, too, which belongs apart from the keyring and
may be for many boards. A board keeps its push key until --push-key names another one. Exit codes: 2
usage, 4 relay not reachable, 5 refused, 7 device or port. If it fails, the agent it created is removed
again.`)
    .action(async (port: string | undefined, flags: ProvisionFlags) => {
      if ((port === undefined) === (flags.out === undefined)) {
        throw new Failure("usage", "name a port, or --out DIR");
      }
      if (flags.agent !== undefined && (flags.id !== undefined || flags.name !== undefined)) {
        throw new Failure("usage", "--agent names an existing agent: omit --id and --name");
      }
      if (flags.serial === undefined && flags.serialSetup !== undefined) {
        throw new Failure("usage", "--serial-setup requires --serial, such as --serial Serial1");
      }
      if (flags.serial !== undefined && flags.wifi !== undefined) {
        throw new Failure("usage", "--serial is for a board without a network: omit --wifi");
      }
      if (flags.pushKey !== undefined && !flags.push) {
        throw new Failure("usage", "--no-push accepts no programs at all: omit --push-key");
      }
      const isModdable = flags.target === "moddable";
      if (isModdable && (flags.out === undefined || flags.serial !== undefined)) {
        throw new Failure("usage", "--target moddable is for --out DIR, without --serial");
      }
      if (flags.rekey === true && !flags.push && !isModdable) {
        throw new Failure("usage", "--rekey is in the files with push only: omit --no-push");
      }
      if (flags.id !== undefined) checkAgentId(flags.id);
      // What files are for has AES: Moddable, and nearly every Espruino.
      const version = chosenVersion(flags, true);
      const settings = context.settings();
      if (!wantsOnlyWifi(flags)) needKeyring(settings);
      const wifi = flags.wifi === undefined ? null : await readWifi(flags.wifi);
      const pushKey = flags.pushKey === undefined ? null : makePushKey(flags.pushKey);
      if (wifi?.password === "") printStatus(`no password: "${wifi.ssid}" is an open network`);
      const asked: Asked = { settings, flags, wifi, pushKey };
      const inFolder = async (): Promise<Provisioned> => {
        const config = await provisionOne(asked, version, {
          write: async (made) => {
            provisionFolder(flags.out as string, made, flags.target);
            printStatus("for one board; if its storage is ever erased, it needs a new folder");
          },
          stop: async () => undefined,
          left: () => "nothing was made",
        });
        return { config, next: null };
      };
      const { config, next } =
        port === undefined
          ? await inFolder()
          : await withConsole(port, flags, (board) => onBoard(board, asked));
      warnOfAddress(config);
      const place = port ?? (flags.out as string);
      if (flags.json === true) {
        printJson({ agent_id: config.agent_id, packet_version: config.v, url: config.url, place });
      } else {
        printText(`${place} is ${config.agent_id} now (packet version ${config.v})`);
        if (next !== null) printStatus(next);
      }
    });
};
