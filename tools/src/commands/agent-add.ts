/** `blindrelay agent add`: an agent and its secret, or those of a whole list. */
import { existsSync } from "node:fs";
import { join } from "node:path";
import { Failure } from "@blindrelay/protocol/command-line";
import { isForward, isVersion, type Version } from "@blindrelay/protocol/crypto";
import { makeFolder } from "@blindrelay/protocol/file-owner";
import { Option } from "commander";
import {
  accountRest,
  agentPath,
  createAgent,
  demandToken,
  keepKey,
  makeDeviceKey,
  makeKey,
} from "../account/account.ts";
import { addMany, type MadeDevice, patiently } from "../account/add-many.ts";
import {
  BAD_VERSION,
  DEVICE_FORMATS,
  type DeviceFormat,
  deviceText,
  NOT_ON_ESPRUINO,
} from "../account/device-files.ts";
import type { Command } from "../base/command.ts";
import { interrupted } from "../base/interrupted.ts";
import { type JsonFlag, printJson, printStatus, printText } from "../base/output.ts";
import { writeWholeFile, writing } from "../base/whole-file.ts";
import type { Settings } from "../config/settings.ts";
import { ProgressLine } from "../flash/progress.ts";
import type { Context } from "./context.ts";

interface AddFlags extends JsonFlag {
  readonly id?: string;
  readonly packetVersion: string;
  readonly deviceKey?: boolean;
  readonly env?: boolean;
  readonly from?: string;
  readonly out?: string;
  readonly format?: DeviceFormat;
}

const ENDINGS: { readonly [format in DeviceFormat]: string } = {
  env: "env",
  espruino: "js",
  moddable: "json",
};

const addOne = async (
  settings: Settings,
  name: string,
  version: Version,
  flags: AddFlags,
): Promise<void> => {
  if (settings.profile === null && flags.env !== true) {
    throw new Failure(
      "usage",
      "there is no profile to keep the end-to-end secret in: run blindrelay login, or use --env to print it",
    );
  }
  const made = await createAgent(settings, name, flags.id ?? null);
  const device = flags.deviceKey === true ? makeDeviceKey() : null;
  const key = makeKey(version, device?.key);
  try {
    keepKey(settings, made.agent_id, key);
  } catch (error) {
    // Without its secret it could never be called.
    await accountRest(settings).tell("DELETE", agentPath(made.agent_id));
    throw error;
  }
  const { api_token, ...open } = made;
  if (flags.json === true) {
    const { agent_token, ...rest } = key;
    const secrets = { api_token, agent_token, ...(device && { device_secret: device.secret }) };
    printJson({ ...open, ...(flags.env === true ? secrets : {}), ...rest });
  } else if (flags.env === true) {
    const url = settings.httpUrl();
    printText(deviceText("env", { url, agentId: made.agent_id, relayToken: api_token, key }));
    if (device !== null) printText(`BLINDRELAY_DEVICE_SECRET=${device.secret}`);
  } else {
    printText(made.agent_id);
    if (process.stderr.isTTY) {
      const program = `blindrelay agent run ./program.js --agent ${made.agent_id}`;
      printStatus(`next: ${program}, or blindrelay provision --agent ${made.agent_id} PORT`);
    }
  }
};

/**
 * A file for each device that has none yet, until `signal` is aborted; whether that is all. Rejects
 * with a Failure.
 */
const writeFiles = async (
  settings: Settings,
  folder: string,
  format: DeviceFormat,
  made: readonly MadeDevice[],
  signal: AbortSignal,
): Promise<boolean> => {
  const rest = accountRest(settings);
  writing(folder, () => makeFolder(folder));
  for (const { agentId } of made) {
    if (signal.aborted) return false;
    const path = join(folder, `${agentId}.${ENDINGS[format]}`);
    if (existsSync(path)) continue;
    const exported = await patiently(signal, () =>
      rest.ask("AgentExport", "GET", `${agentPath(agentId)}/export`),
    );
    demandToken(exported.api_token, "agent", settings.httpUrl());
    const key = settings.demandProfile().keyring[agentId] ?? null;
    const { relay_url: url, api_token: relayToken } = exported;
    writeWholeFile(path, `${deviceText(format, { url, agentId, relayToken, key })}\n`);
  }
  return true;
};

const addListed = async (
  settings: Settings,
  file: string,
  version: Version,
  flags: AddFlags,
): Promise<void> => {
  const { readDeviceList } = await import("../account/device-list.ts");
  const devices = readDeviceList(file);
  settings.demandProfile();
  const line = new ProgressLine();
  const stop = new AbortController();
  interrupted().then(() => stop.abort());
  const told = (done: number) => line.show("", done, devices.length, "agents");
  let made: MadeDevice[];
  let isWhole = true;
  try {
    made = await addMany(settings, devices, version, told, stop.signal);
    line.clear();
    const { out, format = "env" } = flags;
    if (out !== undefined) isWhole = await writeFiles(settings, out, format, made, stop.signal);
  } catch (error) {
    line.clear();
    printStatus(`what was made is kept: run the same command again, and it goes on`);
    throw error;
  }
  const shown = made.map(({ agentId, name, isNew }) => ({ agent_id: agentId, name, new: isNew }));
  if (flags.json === true) printJson({ items: shown });
  else for (const { agentId } of made) printText(agentId);
  const fresh = made.filter(({ isNew }) => isNew).length;
  printStatus(`${fresh} made, ${made.length - fresh} were there already`);
  if (isWhole && made.length === devices.length) return;
  throw new Failure("expectation", "interrupted: run the same command again, and it goes on");
};

export const addAgentAdd = (agent: Command, context: Context): void => {
  agent
    .command("add")
    .description("create an agent and its end-to-end secret, which never leaves this machine")
    .argument("[name]", "for people")
    .option("--id <agent-id>", "propose an id (default: the relay makes one)")
    .option(
      "--packet-version <v>",
      '"1", or "2" for boards with native AES; "3" and "4": the same with forward secrecy',
      "1",
    )
    .option("--device-key", 'with "3" or "4": a key that only this device has; see --env')
    .option("--env", "print what the device needs, both secrets included")
    .addOption(
      new Option("--from <csv>", "the agents of a list: name,id,labels").conflicts(["id", "env"]),
    )
    .option("--out <dir>", "with --from: write a file for each device, secrets included")
    .addOption(
      new Option("--format <format>", "of these files (default: env)").choices(DEVICE_FORMATS),
    )
    .option("--json", "one JSON document; secrets only with --env")
    .example(`
  blindrelay agent add "Pump in hall 7" --id pump-7
  blindrelay agent run ./pump.js --agent pump-7
  blindrelay agent add Door --packet-version 3 --device-key --env
  blindrelay agent add --from devices.csv --out ./devices

The end-to-end secret is kept in the profile's keyring, where \`call\` and \`agent run\` find it. For
another machine: blindrelay agent export pump-7 --env. Without a profile nothing can be kept: use --env.

Under "3" and "4" (not on Espruino) what was said stays secret from whoever later gets the secret. With
--device-key clients also refuse everybody but the device, even with the secret. --env prints the key's
private half, BLINDRELAY_DEVICE_SECRET, once: it is for the device and is kept nowhere else.

The first line of devices.csv is name,id,labels; such as: Pump 7,pump-7,site=hall-7;floor=2
An empty id is made from the name. Nothing is made if a line is wrong. Interrupted, run it again: an
agent that is there, with its secret in the keyring, is left alone, labels included.`)
    .action(async (name: string | undefined, flags: AddFlags) => {
      const { packetVersion: version, from, out, format } = flags;
      if (!isVersion(version)) throw new Failure("usage", BAD_VERSION);
      if (flags.deviceKey === true && !isForward(version)) {
        throw new Failure("usage", '--device-key goes with --packet-version "3" or "4"');
      }
      if (flags.deviceKey === true && flags.env !== true) {
        throw new Failure("usage", "--device-key goes with --env, which prints its private half");
      }
      if (format === "espruino" && isForward(version)) throw new Failure("usage", NOT_ON_ESPRUINO);
      if ((name === undefined) === (from === undefined)) {
        throw new Failure("usage", "name the agent, or use --from devices.csv");
      }
      if (from === undefined && (out !== undefined || format !== undefined)) {
        throw new Failure("usage", "--out and --format are for --from");
      }
      if (format !== undefined && out === undefined) {
        throw new Failure("usage", "--format is for the files of --out DIR");
      }
      const settings = context.settings();
      if (name !== undefined) await addOne(settings, name, version, flags);
      else if (from !== undefined) await addListed(settings, from, version, flags);
    });
};
