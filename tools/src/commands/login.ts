/** `blindrelay login`: password and one-time code once, then a profile with the account token. */

import { Failure } from "@blindrelay/protocol/command-line";
import { asking } from "@blindrelay/protocol/prompt";
import type { LoginAnswer } from "@blindrelay/protocol/schema/rest";
import { demandToken } from "../account/account.ts";
import type { Command } from "../base/command.ts";
import { firstLines } from "../base/first-lines.ts";
import { type JsonFlag, printJson, printStatus, printText } from "../base/output.ts";
import { Rest, RestFailure } from "../base/rest.ts";
import { isSealed } from "../config/profile.ts";
import { httpBase, type Settings } from "../config/settings.ts";
import type { Context } from "./context.ts";
import { enrol } from "./enrol.ts";

interface LoginFlags extends JsonFlag {
  readonly url?: string;
  readonly username?: string;
  readonly passwordStdin?: boolean;
}

interface Given {
  readonly username: string;
  readonly password: string;
  /** "" if there is none. */
  readonly code: string;
}

const PLAIN = "the profile is not encrypted; to encrypt it: blindrelay profile passphrase";

const NEXT = 'next: blindrelay agent add "Pump in hall 7" --id pump-7, or blindrelay agent list';

export const addLogin = (cli: Command, context: Context): void => {
  cli
    .command("login")
    .description("log in to a relay and keep a profile (mode 0600) for the other commands")
    .option("--url <url>", "the relay; BLINDRELAY_URL")
    .option("--username <name>", "asked for if omitted")
    .option(
      "--password-stdin",
      "read the password from the first line of standard input, a one-time code from the second",
    )
    .option("--json", "one JSON document")
    .example(`
  blindrelay login --url https://relay.example

If the relay requires one-time codes and you have none, the first login enrols your authenticator.
The profile is plain text that only you can read; blindrelay profile passphrase encrypts it.`)
    .action(async (flags: LoginFlags) => {
      const settings = context.settings();
      const url = flags.url === undefined ? settings.loginUrl() : httpBase(flags.url);
      const rest = new Rest(url, null);
      // Whatever answers is known to be a relay before the password is sent.
      await rest.ask("AuthConfig", "GET", "/auth/config").catch(noRelayThere(url));
      const given = flags.passwordStdin === true ? await readGiven(flags) : await askFor(flags);
      // The relay would count it as a wrong one.
      if (given.password === "")
        throw new Failure("usage", "there is no password; nothing was sent");
      const logIn = ({ username, password, code }: Given): Promise<LoginAnswer> =>
        rest.ask("LoginAnswer", "POST", "/auth/login", {
          username,
          password,
          ...(code === "" ? {} : { totp_code: code }),
        });
      let { user, access_token } = await logIn(given);
      if (user.api_token === null) {
        ({ user } = await enrol(url, access_token, (code) => logIn({ ...given, code })));
      }
      if (user.api_token === null)
        throw new Failure("refused", "the relay returned no account token");
      demandToken(user.api_token, "account", url);
      keep(settings, url, user.username, user.api_token);
      if (flags.json === true) {
        printJson({ url, username: user.username, profile: settings.profilePath });
      } else {
        printText(`logged in to ${url} as ${user.username}; profile ${settings.profilePath}`);
        if (!process.stderr.isTTY) return;
        if (!isSealed(settings.profilePath)) printStatus(PLAIN);
        printStatus(NEXT);
      }
    });
};

/** A relay has no such path: the address has one that nobody answers for. */
const noRelayThere =
  (url: string) =>
  (error: unknown): never => {
    if (!(error instanceof RestFailure && error.code === "NOT_FOUND")) throw error;
    const text = `${url} is not a relay's address, but ${new URL(url).origin} may be`;
    throw new Failure("refused", text, error);
  };

/** Keeps the keyring when the same account logs in again; refuses to replace another account's. */
const keep = (settings: Settings, url: string, username: string, accountToken: string): void => {
  settings.update((profile) => {
    const keys = Object.keys(profile?.keyring ?? {}).length;
    const isAnother = profile !== null && (profile.url !== url || profile.username !== username);
    if (isAnother && keys > 0) {
      throw new Failure(
        "usage",
        `this profile holds ${keys} secrets of ${profile.username} at ${profile.url}; use --profile NAME`,
      );
    }
    return { keyring: {}, ...profile, url, username, account_token: accountToken };
  });
};

const readGiven = async (flags: LoginFlags): Promise<Given> => {
  if (flags.username === undefined) {
    throw new Failure(
      "usage",
      "whose password is it? blindrelay login --username NAME --password-stdin",
    );
  }
  const [password = "", code = ""] = await firstLines(process.stdin, 2);
  return { username: flags.username, password, code: code.trim() };
};

const WITHOUT_TERMINAL =
  "give the password on standard input: blindrelay login --username NAME --password-stdin";

const askFor = (flags: LoginFlags): Promise<Given> =>
  asking(WITHOUT_TERMINAL, async (person) => {
    const username = flags.username ?? (await person.ask("User name: "));
    const password = await person.askHidden("Password: ");
    const code = await person.ask("One-time code (empty if you have none): ");
    return { username, password, code: code.trim() };
  });
