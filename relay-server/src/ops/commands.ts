/**
 * Administration of a data folder without HTTP: backup, check and users (docs/commands.md). Each
 * command's code is loaded when it runs: `--help` needs no database.
 */

import { Failure } from "@blindrelay/protocol/command-line";
import { type Command, Option } from "commander";
import type { RekeyResult } from "../control/key-rotation.ts";
import { MASTER_KEY_VARIABLE } from "../control/master-key.ts";
import { readConfig, variableOf } from "../settings/config.ts";
import { chosenDataFolder, dataFolderText } from "../settings/default-data-dir.ts";
import type { Finding } from "./check.ts";
import { PASSWORD_STDIN, readPassword } from "./password.ts";
import type { Unlocked } from "./users.ts";

const NEW_MASTER_KEY_VARIABLE = "BLINDRELAY_NEW_MASTER_KEY";

export interface DataFlags {
  data?: string;
  store?: string;
  json?: boolean;
}

/** Adds the commands to `blindrelay-server`. */
export const addOperations = (cli: Command): void => {
  withData(cli.command("backup"))
    .description("copy the store to a file while the relay runs; the master key is left out")
    .requiredOption("--to <file>", "a file that does not exist yet")
    .addHelpText(
      "after",
      "\nExample:\n  blindrelay-server backup --to /backup/relay-$(date +%F).sqlite",
    )
    .action(async (flags: DataFlags & { to: string }) => {
      const { backupStore } = await import("./backup.ts");
      const made = backupStore(dataOf(flags).data, flags.store, flags.to);
      say(flags, made, `Wrote ${made.file} (${made.bytes} bytes). Keep the master key elsewhere.`);
    });

  withData(cli.command("check"))
    .description(
      "look for anything that could keep the relay from running; exits with 1 if it finds something",
    )
    .addOption(
      new Option("--tls-cert <file>", "look at this certificate too").env(variableOf("tlsCert")),
    )
    .addHelpText("after", "\nExample:\n  blindrelay-server check")
    .action(async (flags: DataFlags & { tlsCert?: string }) => {
      const { data, store } = readConfig({ data: dataOf(flags).data, store: flags.store });
      const settings = { data, store, tlsCert: flags.tlsCert };
      const { checkRelay } = await import("./check.ts");
      const findings = await checkRelay(settings, process.env[MASTER_KEY_VARIABLE], Date.now());
      const ok = findings.every((finding) => finding.ok);
      say(flags, { ok, findings }, findings.map(line).join("\n"));
      if (!ok) process.exitCode = 1;
    });

  withData(cli.command("rekey"))
    .description("rotate the master key; every account and agent token is replaced")
    .addOption(
      new Option("--grace-days <n>", "how many days the old tokens stay valid as well")
        .default(0, "0: they expire at once")
        .argParser(wholeDays),
    )
    .addHelpText(
      "after",
      '\nExample:\n  blindrelay-server rekey --grace-days 14\n\nStop the relay first, and read "Rotating the master key" in docs/keys-and-backups.md.',
    )
    .action(async (flags: DataFlags & { graceDays: number }) => {
      const { graceDays } = flags;
      const { rekey } = await import("../control/key-rotation.ts");
      const newMasterKey = process.env[NEW_MASTER_KEY_VARIABLE];
      const made = await rekey({ ...dataOf(flags), newMasterKey, graceDays });
      const endMs = made.oldTokensUntilMs;
      const until = endMs === null ? null : new Date(endMs).toISOString();
      const answer = {
        accounts: made.accounts,
        agents: made.agents,
        totp_secrets: made.totpSecrets,
        recovery_codes_ended: made.recoveryCodesEnded,
        old_tokens_until: until,
        old_key: made.oldKey,
      };
      say(flags, answer, rekeyText(made, until));
    });

  cli
    .command("rebalance")
    .description("ask a share of a running node's links to move to other nodes; no call is lost")
    .requiredOption("--share <percent>", "1% to 100% of its links", percentOf)
    .addOption(dataOption())
    .option("--json", "answer as one JSON document")
    .addHelpText(
      "after",
      "\nExample:\n  blindrelay-server rebalance --share 30% --data /var/lib/blindrelay",
    )
    .action(async (flags: DataFlags & { share: number }) => {
      const { data } = dataOf(flags);
      const { askNode } = await import("./node-socket.ts");
      const isTerminal = process.stderr.isTTY === true;
      const show = ({ asked, moved }: { asked: number; moved: number }) => {
        if (isTerminal) process.stderr.write(`\r${moved} of ${asked} links have moved `);
      };
      const made = await askNode(data, flags.share, show).finally(() => {
        if (isTerminal) process.stderr.write("\r\x1b[K");
      });
      const { links, asked, moved } = made;
      say(flags, made, `Asked ${asked} of ${links} links to move; ${moved} have left this node.`);
    });

  const user = cli.command("user").description("manage users without HTTP");
  withData(user.command("add"))
    .description("make an account; if one-time codes are required, its first login enrols")
    .argument("<name>", "letters, digits or any of . _ @ -")
    .option("--admin", "with the admin role")
    .option("--password-stdin", PASSWORD_STDIN)
    .addHelpText(
      "after",
      "\nExamples:\n  blindrelay-server user add grace\n  blindrelay-server user add grace --password-stdin < password.txt",
    )
    .action(
      async (username: string, flags: DataFlags & { admin?: boolean; passwordStdin?: boolean }) => {
        const data = dataOf(flags);
        const password = await readPassword(flags.passwordStdin);
        const role = flags.admin === true ? "admin" : "user";
        const { makeUser } = await import("./users.ts");
        const { id } = await makeUser(data, { username, password, role });
        say(
          flags,
          { id, username, role },
          `Made the ${role === "admin" ? "admin" : "user"} ${username}.`,
        );
      },
    );
  withData(user.command("list"))
    .description("list all users")
    .addHelpText("after", "\nExample:\n  blindrelay-server user list --json")
    .action(async (flags: DataFlags) => {
      const { listUsers } = await import("./users.ts");
      const users = await listUsers(dataOf(flags));
      const lines = users.map(
        ({ username, role, totp_enabled, disabled, created_at }) =>
          `${username.padEnd(24)} ${role.padEnd(6)} ${totp_enabled ? "two factors" : "password only"}  since ${created_at.slice(0, 10)}${disabled ? "  disabled" : ""}`,
      );
      say(flags, { users }, lines.join("\n"));
    });
  addResets(user);
  addUnlock(cli);
  for (const [name, disabled] of [
    ["disable", true],
    ["enable", false],
  ] as const) {
    withData(user.command(name))
      .description(
        disabled
          ? "disable a user; logins, tokens and links end, even while the relay runs"
          : "enable a disabled user; account and agent tokens are valid again",
      )
      .argument("<name>", "the user's name")
      .addHelpText("after", `\nExample:\n  blindrelay-server user ${name} grace`)
      .action(async (username: string, flags: DataFlags) => {
        const { setDisabled } = await import("./users.ts");
        await setDisabled(dataOf(flags), username, disabled);
        say(flags, { username, disabled }, `${disabled ? "Disabled" : "Enabled"} ${username}.`);
      });
  }
};

const addResets = (user: Command): void => {
  withData(user.command("reset-password"))
    .description("set a password; logins, session tokens and the account token end")
    .argument("<name>", "the user's name")
    .option("--password-stdin", PASSWORD_STDIN)
    .addHelpText(
      "after",
      "\nExample:\n  blindrelay-server user reset-password grace --data ./relay\n\nAccess keys stay valid: `user disable` ends those, too.",
    )
    .action(async (username: string, flags: DataFlags & { passwordStdin?: boolean }) => {
      const data = dataOf(flags);
      const { resetPassword } = await import("./users.ts");
      await resetPassword(data, username, await readPassword(flags.passwordStdin));
      const rest = "its account token is a new one, and its access keys stay valid";
      say(flags, { username }, `Set the password of ${username}; ${rest}.`);
    });
  withData(user.command("reset-totp"))
    .description("remove a lost second factor and its recovery codes")
    .argument("<name>", "the user's name")
    .addHelpText("after", "\nExample:\n  blindrelay-server user reset-totp grace --data ./relay")
    .action(async (username: string, flags: DataFlags) => {
      const { resetTotp } = await import("./users.ts");
      await resetTotp(dataOf(flags), username);
      const then = "if one-time codes are required, the next login enrols again";
      say(flags, { username }, `Removed the second factor of ${username}; ${then}.`);
    });
};

const addUnlock = (cli: Command): void => {
  withData(cli.command("unlock"))
    .description("lift the lockout of an address or of a user name, even while the relay runs")
    .argument("<address|name>", "as the refusal names it; they are locked apart")
    .addHelpText(
      "after",
      "\nExamples:\n  blindrelay-server unlock 192.0.2.7 --data ./relay\n  blindrelay-server unlock grace --data ./relay",
    )
    .action(async (subject: string, flags: DataFlags) => {
      const { unlock } = await import("./users.ts");
      const unlocked = await unlock(dataOf(flags), subject);
      say(flags, unlocked, unlockText(unlocked));
    });
};

/** Addresses and names are locked apart: whoever unlocks one may have meant the other. */
const unlockText = ({ address, username }: Unlocked): string =>
  [
    ...(address === null ? [] : [`Unlocked the address ${address}.`]),
    ...(username === null ? [] : [`Unlocked the user name ${username} and its second factor.`]),
    ...(address === null ? ["An address that is locked out stays so: unlock ADDRESS."] : []),
    "A running relay applies this within a second.",
  ].join(" ");

const wholeDays = (text: string): number => {
  if (/^\d{1,3}$/.test(text)) return Number(text);
  throw new Failure("usage", "--grace-days takes a whole number of days");
};

const percentOf = (text: string): number => {
  if (/^([1-9]\d?|100)%$/.test(text)) return Number(text.slice(0, -1));
  throw new Failure("usage", "--share takes a whole percentage from 1% to 100%, such as 30%");
};

const rekeyText = (made: RekeyResult, until: string | null): string =>
  [
    `New tokens for ${made.accounts} accounts and ${made.agents} agents: log in and export to get them.`,
    until === null
      ? "The old tokens are no longer valid."
      : `The old tokens are valid until ${until}.`,
    `Second factors carried over: ${made.totpSecrets}; recovery codes ended: ${made.recoveryCodesEnded}.`,
    ...(made.oldKey === null
      ? [`Put the new key into ${MASTER_KEY_VARIABLE} before the next start.`]
      : [`The old key is ${made.oldKey}: backups from before need it, nothing else does.`]),
  ].join("\n");

const dataOption = (): Option =>
  new Option(
    "--data <dir>",
    `folder of the store and the master key (default: ${dataFolderText()})`,
  ).env(variableOf("data"));

const withData = (command: Command): Command =>
  command
    .addOption(dataOption())
    .addOption(new Option("--store <where>", "sqlite, or postgres://...").env(variableOf("store")))
    .option("--json", "answer as one JSON document");

const dataOf = ({ data, store }: DataFlags) => ({
  data: chosenDataFolder(data),
  store,
  masterKey: process.env[MASTER_KEY_VARIABLE],
});

const say = (flags: DataFlags, answer: object, words: string): void => {
  process.stdout.write(`${flags.json === true ? JSON.stringify(answer) : words}\n`);
};

const line = ({ what, ok, detail, fix }: Finding): string =>
  `${ok ? "ok    " : "FAILED"} ${what}: ${detail}${fix === null ? "" : `; ${fix}`}`;
