/**
 * Makes a board an agent: writes its configuration and its boot count, which belong together. The
 * count continues what the board contains, whichever secret it belonged to.
 */
import { Failure } from "@blindrelay/protocol/command-line";
import {
  decodeJson,
  encodeJson,
  isObject,
  isVersion,
  type Suite,
  type Version,
} from "@blindrelay/protocol/crypto";
import { provisionBootCount } from "../core/bootcount.ts";
import type { StoragePort } from "../ports.ts";
import { answerOf, isList, isName, isText, noAnswer } from "./answer.ts";
import { CONFIG_FILE } from "./board.ts";
import type { EspruinoRepl } from "./repl.ts";
import { type BoardFile, eraseFile, writeFile } from "./upload.ts";
import type { Wifi } from "./wifi.ts";

/** "blindrelay.json" on a board; agent-sdk/src/espruino/files.ts reads it. */
export interface BoardConfig {
  /** ws:// or wss:// of the relay, with its path. */
  readonly url: string;
  readonly agent_id: string;
  readonly relay_token: string;
  readonly agent_token: string;
  readonly v: Version;
  /** The private half of the device's own key, under "3" and "4", which only Moddable has here. */
  readonly device_key?: string;
  readonly name?: string;
  /**
   * False: it accepts no programs over the relay; `blindrelay flash` omits that code from the file.
   */
  readonly push?: false;
  /** It accepts only programs that are proven with this push key. */
  readonly push_key?: string;
  /**
   * Whether the agent's secret can be replaced over the relay; absent: on Moddable, where there is
   * room for it.
   */
  readonly rekey?: boolean;
  /** The network that the SDK joins; without it, joining is left to the board. */
  readonly wifi?: Wifi;
  /** The UART with a bridge at its other end, on a board without a network. */
  readonly serial?: {
    /** Such as "Serial1". */
    readonly port: string;
    readonly baud: number;
    /** The second argument of Espruino's `Serial.setup`, such as `{"rx": "D8", "tx": "D6"}`. */
    readonly options?: object;
  };
}

const BOOT_FILES = ["boot.0", "boot.1"];
/** The session token of a board that sleeps: another agent's would be refused, and counted. */
const SESSION_FILE = "session";

/** The boot files of a board that becomes this agent, in the order in which they are written. */
const bootFiles = (
  suite: Suite,
  config: BoardConfig,
  held: { readonly [name: string]: string | null },
): BoardFile[] => {
  const files = new Map<string, string>();
  const storage: StoragePort = {
    read: (name) => files.get(name) ?? held[name] ?? null,
    write: (name, text) => {
      files.set(name, text);
    },
  };
  const result = provisionBootCount(storage, suite, config.agent_token);
  if (!result.ok) throw new Failure("device", result.advice);
  return [...files].map(([name, content]) => ({ name, content }));
};

/** Escaped, so that a name is the same in a file and on a board, where strings are bytes. */
const encodeConfig = ({ name, ...rest }: BoardConfig): string => {
  const text = JSON.stringify(rest);
  return name === undefined ? text : `${text.slice(0, -1)},"name":${encodeJson(name)}}`;
};

/** The file with it on a board. */
export const configFile = (config: BoardConfig): BoardFile => ({
  name: CONFIG_FILE,
  content: encodeConfig(config),
});

/** A board's strings are bytes, and a network's name is compared by its bytes. */
const inBytes = (wifi: Wifi): Wifi => ({
  ...wifi,
  ssid: String.fromCharCode(...new TextEncoder().encode(wifi.ssid)),
});

const isHeld = (value: unknown): value is string | null => value === null || isText(value);

const isUart = (value: unknown): boolean => isObject(value) && isName(value.port);

/** What this command needs of it. */
const isConfig = (value: unknown): value is BoardConfig =>
  isObject(value) &&
  isName(value.agent_id) &&
  isText(value.url) &&
  isVersion(value.v) &&
  (value.serial === undefined || isUart(value.serial));

/**
 * Writes them to a board and reads them back. `suite`: of any packet version. Rejects with a
 * Failure (device).
 */
export const provisionBoard = async (
  board: EspruinoRepl,
  suite: Suite,
  config: BoardConfig,
): Promise<void> => {
  const names = JSON.stringify(BOOT_FILES);
  const read = `${names}.map(function(n){var t=require("Storage").read(n);return t===undefined?null:""+t})`;
  const held = await answerOf(board, isList(isHeld), read);
  const byName = Object.fromEntries(BOOT_FILES.map((name, i) => [name, held[i] ?? null]));
  const { wifi } = config;
  const files = [
    ...bootFiles(suite, config, byName),
    // The configuration last: a board that was unplugged in between is not provisioned.
    configFile(wifi ? { ...config, wifi: inBytes(wifi) } : config),
  ];
  await eraseFile(board, CONFIG_FILE);
  await eraseFile(board, SESSION_FILE);
  for (const file of files) await writeFile(board, file, () => undefined);
};

/**
 * Gives an agent's board another Wi-Fi and nothing else: the same secrets, the same boot count.
 * Returns its previous configuration, or rejects with a Failure (device).
 */
export const changeWifi = async (board: EspruinoRepl, wifi: Wifi): Promise<BoardConfig> => {
  const text = await answerOf(board, isText, `""+require("Storage").read("${CONFIG_FILE}")`);
  const before = decodeJson(text);
  if (!isConfig(before)) throw noAnswer(board);
  if (before.serial !== undefined) {
    const why = `${before.agent_id} has no network: its messages go through ${before.serial.port}`;
    throw new Failure("device", `${why}; provision it again, with --id or --agent`);
  }
  await writeFile(board, configFile({ ...before, wifi: inBytes(wifi) }), () => undefined);
  return before;
};

/** The push key in a board's configuration. */
export const pushKeyOf = (board: EspruinoRepl): Promise<string> =>
  answerOf(board, isText, `JSON.parse(require("Storage").read("${CONFIG_FILE}")).push_key`);
