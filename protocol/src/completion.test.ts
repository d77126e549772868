import { expect, it } from "vitest";
import { addCompletion, OFFERS } from "./completion.ts";

interface Part {
  readonly name: string;
  readonly choices?: readonly string[];
  readonly variadic?: boolean;
}
interface Flag {
  readonly long?: string;
  readonly choices?: readonly string[];
  readonly required?: boolean;
  readonly hidden?: boolean;
}

/** What a program is made of, in memory. */
class Command {
  readonly commands: Command[] = [];
  readonly registeredArguments: {
    readonly variadic: boolean;
    readonly argChoices?: readonly string[];
    name(): string;
  }[];
  readonly options: {
    readonly long?: string;
    readonly hidden: boolean;
    readonly required: boolean;
    readonly argChoices?: readonly string[];
  }[];
  help = "";
  run: (shell: string, words: readonly string[]) => void = () => undefined;
  private readonly word: string;

  constructor(word: string, parts: readonly Part[] = [], flags: readonly Flag[] = []) {
    this.word = word;
    this.registeredArguments = parts.map(({ name, choices, variadic = false }) => ({
      variadic,
      ...(choices === undefined ? {} : { argChoices: choices }),
      name: () => name,
    }));
    this.options = flags.map(({ choices, hidden = false, required = false, ...rest }) => ({
      ...rest,
      ...(choices === undefined ? {} : { argChoices: choices }),
      hidden,
      required,
    }));
  }

  name(): string {
    return this.word;
  }
  command(word: string): Command {
    const inner = new Command(word);
    this.commands.push(inner);
    return inner;
  }
  description(text: string): this {
    this.help += text;
    return this;
  }
  argument(name: string, text = ""): this {
    const word = name.replace(/[<>[\].]/g, "");
    this.registeredArguments.push({ variadic: name.includes("..."), name: () => word });
    this.help += `\n${name} ${text}`;
    return this;
  }
  addHelpText(_place: "after", text: string): this {
    this.help += text;
    return this;
  }
  action(run: (shell: string, words: readonly string[]) => void): this {
    this.run = run;
    return this;
  }
  error(message: string): never {
    throw new Error(message);
  }
}

const program = () => {
  const cli = new Command(
    "blind-relay",
    [],
    [
      { long: "--profile", required: true },
      { long: "--secret", hidden: true },
      { long: "--verbose" },
      {},
    ],
  );
  const call = new Command(
    "call",
    [{ name: "agent" }, { name: "method" }],
    [
      { long: "--timeout", required: true },
      { long: "--format", required: true, choices: ["json", "text"] },
    ],
  );
  const many = new Command("many", [
    { name: "level", choices: ["low", "high"] },
    { name: "agent", variadic: true },
  ]);
  const agent = new Command("agent");
  agent.commands.push(new Command("add"), new Command("audit"));
  cli.commands.push(call, many, agent, new Command("odd", [{ name: "odd" }]));
  const known: Record<string, readonly string[]> = {
    agent: ["pump-7", "pump-8", "fan-1"],
    method: ["system.info"],
    profile: ["home", "work"],
    odd: ["plain", "two words", "$(rm)", "a;b", "", "é", "a/b", "c@d"],
  };
  let written = "";
  const write = (text: string): void => {
    written += text;
  };
  addCompletion(cli, { write }, (name) => known[name] ?? []);
  const own = cli.commands.at(-1) as Command;
  const print = (shell: string, ...words: string[]): string => {
    written = "";
    own.run(shell, words);
    return written;
  };
  return {
    own,
    print,
    offers: (...words: string[]) =>
      print(OFFERS, ...words)
        .split("\n")
        .slice(0, -1),
  };
};

it.each([
  [[""], ["call", "many", "agent", "odd", "completion"]],
  [[], ["call", "many", "agent", "odd", "completion"]],
  [["c"], ["call", "completion"]],
  [
    ["agent", ""],
    ["add", "audit"],
  ],
  [["agent", "au"], ["audit"]],
  [
    ["call", "pump"],
    ["pump-7", "pump-8"],
  ],
  [["call", "pump-7", ""], ["system.info"]],
  [["call", "pump-7", "system.info", ""], []],
  [
    ["many", ""],
    ["low", "high"],
  ],
  [["many", "low", "pump-7", "pump-8", "f"], ["fan-1"]],
  // Names of commands are no commands where an argument stands.
  [["call", "call", "s"], ["system.info"]],
  [
    ["completion", ""],
    ["bash", "zsh", "fish"],
  ],
])("after %j the words are %j", (words, offered) => {
  expect(program().offers(...words)).toEqual(offered);
});

it.each([
  [["-"], ["--help", "--profile", "--verbose"]],
  [["--p"], ["--profile"]],
  [
    ["call", "-"],
    ["--help", "--profile", "--verbose", "--timeout", "--format"],
  ],
  [
    ["--profile", ""],
    ["home", "work"],
  ],
  [["--profile", "w"], ["work"]],
  // What follows the value of a flag is as if neither was there.
  [["--profile", "home", "call", "fan"], ["fan-1"]],
  [["call", "--profile", "pump-7", "pump-8", "s"], ["system.info"]],
  [["--verbose", "call", "fan"], ["fan-1"]],
  [["call", "--unknown", "fan"], ["fan-1"]],
  [
    ["call", "--format", ""],
    ["json", "text"],
  ],
  [["call", "--timeout", ""], []],
  [
    ["--timeout", "c"],
    ["call", "completion"],
  ],
])("after flags, %j, the words are %j", (words, offered) => {
  expect(program().offers(...words)).toEqual(offered);
});

it("a word that a shell would not take as it is is not offered", () => {
  expect(program().offers("odd", "")).toEqual(["plain", "a/b", "c@d"]);
});

it.each(["bash", "zsh", "fish"])("the script for %s asks the command by its name", (shell) => {
  const { print, own } = program();
  const script = print(shell);
  expect(script).toMatch(/^_blind_relay\(\) \{$|^function _blind_relay$/m);
  expect(script).toContain(`blind-relay completion ${OFFERS} -- `);
  expect(script).toContain(`# blind-relay completion ${shell} > `);
  expect(own.help).toContain("bash, zsh, fish");
  expect(own.help).toContain("print a script that completes blind-relay's commands in a shell");
  expect(own.help).toContain('eval "$(blind-relay completion bash)"');
  expect(own.registeredArguments.map(({ variadic }) => variadic)).toEqual([false, true]);
});

it("another shell is refused with the names of those that are known", () => {
  for (const shell of ["tcsh", "toString"]) {
    expect(() => program().print(shell)).toThrow("error: the shells are bash, zsh, fish");
  }
});

it("a program that knows no values offers its commands and flags alone", () => {
  const cli = new Command("cli");
  cli.commands.push(new Command("call", [{ name: "agent" }]));
  const written: string[] = [];
  addCompletion(cli, { write: (text) => written.push(text) });
  cli.commands.at(-1)?.run(OFFERS, ["call", ""]);
  cli.commands.at(-1)?.run(OFFERS, ["ca"]);
  expect(written).toEqual(["", "call\n"]);
});
