/**
 * `blindrelay auth status, token, rotate, logout, key`: the account of the profile, and the tokens
 * that stand for it.
 */

import { Failure } from "@blindrelay/protocol/command-line";
import { accountRest, demandToken } from "../account/account.ts";
import type { Command } from "../base/command.ts";
import { type JsonFlag, printJson, printResult, printStatus, printText } from "../base/output.ts";
import { addAuthKey } from "./auth-key.ts";
import type { Context } from "./context.ts";

export const addAuth = (cli: Command, context: Context): void => {
  const auth = cli
    .command("auth")
    .description("the account token, and access keys that reach less")
    .example("blindrelay auth status");

  auth
    .command("status")
    .description("who you are at which relay, and where the account token comes from")
    .option("--json", "one JSON document: {url, username, role, totp_enabled, source, expires_at}")
    .example("blindrelay auth status --json")
    .action(async (flags: JsonFlag) => {
      const settings = context.settings();
      const user = await accountRest(settings).ask("User", "GET", "/account");
      const { username, role, totp_enabled } = user;
      const source = settings.accountSource;
      const url = settings.httpUrl();
      // An account token has no end of its own.
      const shown = { url, username, role, totp_enabled, source, expires_at: null };
      const factor = totp_enabled ? "with a second factor" : "without a second factor";
      printResult(
        flags,
        shown,
        `${username} (${role}, ${factor}) at ${url}\naccount token: ${source}, valid until it is rotated`,
      );
    });

  auth
    .command("token")
    .description("print the account token, for programs; CI takes an access key")
    .option("--json", "one JSON document: {url, account_token}")
    .example("BLINDRELAY_ACCOUNT_TOKEN=$(blindrelay auth token) node report.js")
    .action((flags: JsonFlag) => {
      const settings = context.settings();
      const account_token = settings.accountToken();
      if (flags.json === true) printJson({ url: settings.httpUrl(), account_token });
      else printText(account_token);
    });

  auth
    .command("rotate")
    .description("replace the account token, if it may be in other hands; the old one ends at once")
    .option("--json", "one JSON document: {rotated_at, profile}")
    .example(`
  blindrelay auth rotate

All programs with the old token, and their connections, end at once. The profile keeps the new one;
print it with: blindrelay auth token. Access keys stay: end those with blindrelay auth key rm.`)
    .action(async (flags: JsonFlag) => {
      const settings = context.settings();
      settings.demandProfile();
      if (settings.accountSource !== settings.profilePath) {
        throw new Failure(
          "usage",
          "BLINDRELAY_ACCOUNT_TOKEN is set: unset it to rotate the profile's token",
        );
      }
      const rest = accountRest(settings);
      // Nothing ends before the file that gets the new token is known to be writable.
      settings.update((profile) => profile);
      const { api_token, rotated_at } = await rest.ask(
        "RotateAccountAnswer",
        "POST",
        "/auth/token/rotate",
      );
      demandToken(api_token, "account", settings.httpUrl());
      try {
        settings.update((profile) => profile && { ...profile, account_token: api_token });
      } catch (error) {
        printStatus("the old account token has ended; this is the only copy of the new one:");
        printText(api_token);
        throw error;
      }
      printResult(
        flags,
        { rotated_at, profile: settings.profilePath },
        `the profile ${settings.profilePath} holds a new account token`,
      );
      printStatus("access keys stay valid: blindrelay auth key list shows them");
    });

  auth
    .command("logout")
    .description("remove the account token from the profile; its keyring stays")
    .option("--json", "one JSON document: {profile}")
    .example(`
  blindrelay auth logout

The token itself stays valid for whoever has a copy. To end it, run \`blindrelay auth rotate\` first.`)
    .action((flags: JsonFlag) => {
      const settings = context.settings();
      settings.demandProfile();
      const { profilePath } = settings;
      settings.forgetToken();
      printResult(
        flags,
        { profile: profilePath },
        `logged out; the keyring stays in ${profilePath}`,
      );
    });

  addAuthKey(auth, context);
};
