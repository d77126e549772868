/** `blindrelay profile`: lists the profiles, and sets the passphrase for a profile's secrets. */
import { readdirSync } from "node:fs";
import { dirname } from "node:path";
import { text } from "node:stream/consumers";
import type { Command } from "commander";
import { askPassphrase } from "../config/passphrase.ts";
import { isSealed } from "../config/profile.ts";
import type { Settings } from "../config/settings.ts";
import { Failure } from "../failure.ts";
import { type JsonFlag, printJson, printResult, printText } from "../output.ts";
import type { Context } from "./context.ts";

interface PassphraseFlags {
  readonly remove?: boolean;
  readonly stdin?: boolean;
  readonly json?: boolean;
}

const MIN_LENGTH = 8;

const readNew = async (flags: PassphraseFlags): Promise<string> => {
  const given = flags.stdin
    ? (await text(process.stdin)).replace(/\r?\n$/, "")
    : askPassphrase("New passphrase");
  if (given.length < MIN_LENGTH) {
    throw new Failure("usage", `a passphrase has ${MIN_LENGTH} characters or more`);
  }
  if (!flags.stdin && askPassphrase("Once more") !== given) {
    throw new Failure("usage", "the two differ; nothing was changed");
  }
  return given;
};

const listNames = (settings: Settings): string[] => {
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
    .description("list and show profiles, or encrypt one with a passphrase")
    .addHelpText("after", "\nExample:\n  blindrelay profile passphrase");

  profile
    .command("list")
    .description("names of all profiles; --profile chooses one")
    .option("--json", "one JSON document")
    .addHelpText("after", "\nExample:\n  blindrelay profile list")
    .action((flags: JsonFlag) => {
      const items = listNames(context.settings());
      if (flags.json === true) printJson({ items });
      else if (items.length > 0) printText(items.join("\n"));
    });

  profile
    .command("show")
    .description("relay, account and agents of a profile, without secrets")
    .option("--json", "one JSON document")
    .addHelpText("after", "\nExample:\n  blindrelay --profile work profile show")
    .action((flags: JsonFlag) => {
      const settings = context.settings();
      const shown = settings.profile;
      if (shown === null) throw new Failure("usage", `there is no profile ${settings.profilePath}`);
      const open = {
        path: settings.profilePath,
        url: shown.url,
        username: shown.username,
        passphrase: isSealed(settings.profilePath),
        agents: Object.keys(shown.keyring),
      };
      if (flags.json === true) printJson(open);
      else {
        const guard = open.passphrase ? "encrypted with a passphrase" : "not encrypted";
        printText(
          `${open.path}\n${open.username} at ${open.url}, ${guard}\n${open.agents.join("\n")}`,
        );
      }
    });

  profile
    .command("passphrase")
    .description("encrypt token and keyring with a passphrase, change it, or remove it")
    .option("--remove", "remove the passphrase: anyone who can read the file can read them")
    .option("--stdin", "read the new one from standard input")
    .option("--json", "one JSON document")
    .addHelpText(
      "after",
      `
Example:
  blindrelay profile passphrase

Commands then ask for it on the terminal, or take it from BLINDRELAY_PASSPHRASE. Nobody can recover it.`,
    )
    .action(async (flags: PassphraseFlags) => {
      const settings = context.settings();
      if (settings.profile === null) {
        throw new Failure("usage", "there is no profile yet: blindrelay login");
      }
      const under = flags.remove === true ? null : await readNew(flags);
      settings.update((kept) => kept, under);
      printResult(
        flags,
        { passphrase: under !== null },
        under === null ? "the passphrase was removed" : "the secrets are now encrypted with it",
      );
    });
};
