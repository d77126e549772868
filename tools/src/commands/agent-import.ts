/** `blindrelay agent import`: an entry of a keyring that another machine or a console has made. */
import { Failure } from "@blindrelay/protocol/command-line";
import {
  decodeKeyring,
  type KeyringEntry,
  type KeyringText,
  MAX_KEYRING_LENGTH,
} from "@blindrelay/protocol/keyring";
import { keepOwnKeys } from "../account/account.ts";
import type { Command } from "../base/command.ts";
import { failing } from "../base/failing.ts";
import { readInput } from "../base/first-lines.ts";
import { type JsonFlag, printResult, printStatus } from "../base/output.ts";
import { readTextFile } from "../base/text-file.ts";
import type { Key } from "../config/profile.ts";
import { httpBase, type Settings } from "../config/settings.ts";
import type { Context } from "./context.ts";

interface ImportFlags extends JsonFlag {
  readonly replace?: boolean;
}

const readEntries = async (file: string): Promise<KeyringText> => {
  const isPiped = file === "-";
  const text = isPiped
    ? await readInput(process.stdin, MAX_KEYRING_LENGTH)
    : readTextFile(file, "the keyring's entry");
  return failing("usage", `${isPiped ? "standard input" : file}: `, () => decodeKeyring(text));
};

/** Throws a Failure (refused): another relay may have an agent of the same id. */
const demandSameRelay = (settings: Settings, { url }: KeyringText): void => {
  const home = httpBase(settings.demandProfile().url);
  if (url === null) return;
  const made = httpBase(url);
  if (made === home) return;
  throw new Failure(
    "refused",
    `it is for ${made}, and this profile for ${home}: use a profile of that relay (--profile NAME)`,
  );
};

/** The agents whose other secret or pinned key it would replace. */
const conflicts = (settings: Settings, keys: ReadonlyMap<string, KeyringEntry>): string[] => {
  const { keyring, pending = {} } = settings.demandProfile();
  const isOther = (key: Key | undefined, { agent_token, device_key }: KeyringEntry): boolean =>
    key !== undefined &&
    (key.agent_token !== agent_token ||
      (key.device_key !== undefined && key.device_key !== device_key));
  return [...keys].flatMap(([agentId, entry]) =>
    [keyring[agentId], pending[agentId]].some((key) => isOther(key, entry)) ? [agentId] : [],
  );
};

export const addAgentImport = (agent: Command, context: Context): void => {
  agent
    .command("import")
    .description(
      "put an agent's secret, exported elsewhere or made by the console, into the keyring",
    )
    .argument("[file]", "what `agent export` or the console wrote; - is standard input", "-")
    .option("--replace", "also where the keyring has another secret for the agent")
    .option("--json", "one JSON document, without secrets")
    .example(`
  blindrelay agent export pump-7 --format keyring | ssh hall7 blindrelay agent import
  blindrelay agent import pump-7.keyring.json
  blindrelay agent import < text-of-a-qr-code

It reads a keyring's entry, as a file or the text of a QR code, a whole profile without passphrase, and the
other outputs of agent export that have the secret. The relay is not asked. With --replace the old
secret stays in the profile's last copy: blindrelay profile restore`)
    .action(async (file: string, flags: ImportFlags) => {
      const settings = context.settings();
      settings.demandProfile();
      const entries = await readEntries(file);
      demandSameRelay(settings, entries);
      const { keys } = entries;
      const replaced = conflicts(settings, keys);
      if (replaced.length > 0 && flags.replace !== true) {
        throw new Failure(
          "refused",
          `the keyring has another secret for ${replaced.join(", ")}: if the new one is right, use --replace; nothing was changed`,
        );
      }
      keepOwnKeys(settings, keys, flags.replace === true);
      const ids = [...keys.keys()];
      if (replaced.length > 0) {
        printStatus(`replaced the secret of ${replaced.join(", ")}: blindrelay profile restore`);
      }
      printResult(flags, { imported: ids, replaced }, ids.join("\n"));
    });
};
