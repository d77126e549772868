/** `blindrelay profile`: lists the profiles, and sets the passphrase for a profile's secrets. */
import { readdirSync } from "node:fs";
import { dirname } from "node:path";
import { Failure } from "@blindrelay/protocol/command-line";
import { atAddress } from "../account/account.ts";
import type { Command } from "../base/command.ts";
import { readInput } from "../base/first-lines.ts";
import { type JsonFlag, printJson, printResult, printText } from "../base/output.ts";
import { askPassphrase } from "../config/passphrase.ts";
import { isSealed, listCopies, restoreCopy } from "../config/profile.ts";
import { httpBase, type Settings } from "../config/settings.ts";
import type { Context } from "./context.ts";

interface PassphraseFlags extends JsonFlag {
  readonly remove?: boolean;
  readonly stdin?: boolean;
}

const MIN_LENGTH = 8;

const readNew = async (flags: PassphraseFlags): Promise<string> => {
  const given = flags.stdin
    ? (await readInput(process.stdin)).replace(/\r?\n$/, "")
    : askPassphrase("New passphrase");
  if (given.length < MIN_LENGTH) {
    throw new Failure("usage", `a passphrase has ${MIN_LENGTH} characters or more`);
  }
  if (!flags.stdin && askPassphrase("Once more") !== given) {
    throw new Failure("usage", "the two differ; nothing was changed");
  }
  return given;
};

export const listNames = (settings: Settings): string[] => {
  try {
    return readdirSync(dirname(settings.profilePath))
      .filter((name) => name.endsWith(".json"))
      .map((name) => name.slice(0, -".json".length))
      .sort();
  } catch {
    return [];
  }
};

export const addProfile = (cli: Command, context: Context): void => {
  const profile = cli
    .command("profile")
    .description("list, show, restore and change profiles, or encrypt one with a passphrase")
    .example("blindrelay profile passphrase");

  profile
    .command("list")
    .description("names of all profiles; --profile chooses one")
    .option("--json", "one JSON document")
    .example("blindrelay profile list")
    .action((flags: JsonFlag) => {
      const items = listNames(context.settings());
      if (flags.json === true) printJson({ items });
      else if (items.length > 0) printText(items.join("\n"));
    });

  profile
    .command("show")
    .description("relay, account and agents of a profile, without secrets")
    .option("--json", "one JSON document")
    .example("blindrelay --profile work profile show")
    .action((flags: JsonFlag) => {
      const settings = context.settings();
      const shown = settings.demandProfile();
      const open = {
        path: settings.profilePath,
        url: shown.url,
        username: shown.username,
        passphrase: isSealed(settings.profilePath),
        agents: Object.keys(shown.keyring),
      };
      const guard = open.passphrase ? "encrypted with a passphrase" : "not encrypted";
      const { path, username, url, agents } = open;
      const text = `${path}\n${username} at ${url}, ${guard}\n${agents.join("\n")}`;
      printResult(flags, open, text);
    });

  profile
    .command("set-url")
    .description("change the address of the profile's relay, after it has moved")
    .argument("<url>", "an http or https address; another relay wants a login instead")
    .option("--json", "one JSON document: {profile, url}")
    .example("blindrelay profile set-url https://relay.example")
    .action((given: string, flags: JsonFlag) => {
      const settings = context.settings();
      const url = httpBase(given);
      settings.demandProfile();
      settings.update((kept) => kept && atAddress(kept, url));
      const { profilePath } = settings;
      printResult(flags, { profile: profilePath, url }, `${profilePath} is for ${url} now`);
    });

  profile
    .command("restore")
    .description("go back to the last good copy of the profile's file")
    .option("--list", "show the copies, and change nothing")
    .option("--copy <n>", "which copy; 1 is the newest", "1")
    .option("--json", "one JSON document")
    .example(`
  blindrelay profile restore --list
  blindrelay profile restore

Each change of a profile keeps a copy of the file before it, up to three. The present file is kept,
too, under another name.`)
    .action((flags: JsonFlag & { list?: boolean; copy: string }) => {
      const path = context.settings().profilePath;
      const copies = listCopies(path);
      if (flags.list === true) {
        const lines = copies.map(({ written_at, agents }, i) => {
          const holds =
            agents === null
              ? "encrypted"
              : `${agents.length} ${agents.length === 1 ? "secret" : "secrets"}`;
          return `${i + 1}  ${written_at}  ${holds}`;
        });
        printResult(flags, { items: copies }, lines.join("\n") || "there are no copies");
        return;
      }
      const copy = copies[Number(flags.copy) - 1];
      if (copy === undefined) {
        throw new Failure("usage", `there is no good copy ${flags.copy} of ${path}`);
      }
      const aside = restoreCopy(path, copy);
      printResult(
        flags,
        { profile: path, restored: copy.path, kept: aside },
        `restored ${copy.path}${aside === null ? "" : `; the file before it is ${aside}`}`,
      );
    });

  profile
    .command("passphrase")
    .description("encrypt token and keyring with a passphrase, change it, or remove it")
    .option("--remove", "remove the passphrase: anyone who can read the file can read them")
    .option("--stdin", "read the new one from standard input")
    .option("--json", "one JSON document")
    .example(`
  blindrelay profile passphrase

Commands then ask for it on the terminal, or take it from BLINDRELAY_PASSPHRASE. Nobody can recover it.`)
    .action(async (flags: PassphraseFlags) => {
      const settings = context.settings();
      settings.demandProfile();
      const under = flags.remove === true ? null : await readNew(flags);
      settings.update((kept) => kept, under);
      printResult(
        flags,
        { passphrase: under !== null },
        under === null ? "the passphrase was removed" : "the secrets are now encrypted with it",
      );
    });
};
