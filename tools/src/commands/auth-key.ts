/** `blindrelay auth key add, list, rm`: access keys, for CI and for other people. */
import { Failure } from "@blindrelay/protocol/command-line";
import type { AccessKey } from "@blindrelay/protocol/schema/rest";
import { KEY_SCOPES, type KeyScope, parseKeySelector } from "@blindrelay/protocol/selector";
import { InvalidArgumentError, Option } from "commander";
import { accountRest } from "../account/account.ts";
import type { Command } from "../base/command.ts";
import { type JsonFlag, oneLine, printList, printResult, when } from "../base/output.ts";
import type { Context } from "./context.ts";
import { period } from "./times.ts";

interface AddFlags extends JsonFlag {
  readonly scope: readonly KeyScope[];
  readonly where?: string;
  /** Milliseconds. */
  readonly expires?: number;
}

const selector = (text: string): string => {
  try {
    parseKeySelector(text);
    return text;
  } catch (error) {
    throw new InvalidArgumentError((error as Error).message);
  }
};

const scopeOption = (): Option =>
  new Option("--scope <scope>", `what it may do; repeatable: ${KEY_SCOPES.join(", ")}`)
    .argParser((word: string, before: readonly KeyScope[] = []) => {
      const scope = KEY_SCOPES.find((each) => each === word);
      if (scope === undefined) throw new InvalidArgumentError(`one of ${KEY_SCOPES.join(", ")}`);
      return [...before, scope];
    })
    .makeOptionMandatory();

const rowOf = (key: AccessKey): string[] => [
  oneLine(key.name),
  key.scopes.join(","),
  oneLine(key.where ?? "all agents"),
  when(key.expires_at),
  when(key.last_used_at),
];

export const addAuthKey = (auth: Command, context: Context): void => {
  const key = auth
    .command("key")
    .description("access keys: for CI and for people who are to have less than the account")
    .example("blindrelay auth key list");

  key
    .command("add")
    .description("make an access key, and print it: it is shown only now")
    .argument("<name>", "for people, and for the audit log")
    .addOption(scopeOption())
    .option("--where <selector>", "only these agents, by id and label.KEY", selector)
    .option("--expires <period>", "its end from now, such as 30d (default: none)", period)
    .option("--json", "one JSON document, with the key as api_token")
    .example(`
  blindrelay auth key add ci --scope read --scope call --where label.site=hall-7 --expires 30d

Programs take it in place of the account token: BLINDRELAY_ACCOUNT_TOKEN. read: GET of agents and
releases. call: /wss and session tokens. agents: all of /agents. releases: all of /releases that your
role allows. Other agents do not exist for it. End-to-end secrets are not part of it: to call a device
needs its secret too (blindrelay agent export). A new password or account token does not end it.`)
    .action(async (name: string, flags: AddFlags) => {
      const { scope, where, expires } = flags;
      const body = {
        name,
        scopes: [...new Set(scope)],
        where,
        expires_at:
          expires === undefined ? undefined : new Date(Date.now() + expires).toISOString(),
      };
      const rest = accountRest(context.settings());
      const made = await rest.ask("AccessKeyCreated", "POST", "/account/keys", body);
      printResult(flags, made, made.api_token);
    });

  key
    .command("list")
    .description("your access keys, without the keys themselves")
    .option("--json", "one JSON document")
    .example("blindrelay auth key list")
    .action(async (flags: JsonFlag) => {
      const items = await accountRest(context.settings()).list("AccessKeyPage", "/account/keys");
      const none = "you have no access keys: blindrelay auth key add NAME";
      printList(flags, items, none, ["NAME", "SCOPES", "AGENTS", "EXPIRES", "LAST USED"], rowOf);
    });

  key
    .command("rm")
    .description("remove an access key; what was made with it ends within two seconds")
    .argument("<name>", "the key's name")
    .option("--json", "one JSON document: {id, name, deleted}")
    .example("blindrelay auth key rm ci")
    .action(async (name: string, flags: JsonFlag) => {
      const rest = accountRest(context.settings());
      const items = await rest.list("AccessKeyPage", "/account/keys");
      const found = items.find((each) => each.name === name);
      if (found === undefined) {
        const fix = "blindrelay auth key list shows yours";
        throw new Failure("refused", `there is no access key ${JSON.stringify(name)}: ${fix}`);
      }
      await rest.tell("DELETE", `/account/keys/${encodeURIComponent(found.id)}`);
      printResult(flags, { id: found.id, name, deleted: true }, `removed ${oneLine(name)}`);
    });
};
