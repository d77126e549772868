/** `blindrelay completion SHELL`: a script that completes commands, options, and the keyring's agents. */
import { Argument, type Command, Option } from "commander";
import { answer } from "../output.ts";
import type { Context } from "./context.ts";

const SHELLS = ["bash", "zsh", "fish"] as const;
type Shell = (typeof SHELLS)[number];

interface Place {
  /** Such as "agent add"; "" for the program itself. */
  readonly path: string;
  readonly words: readonly string[];
  /** Its first argument is an agent. */
  readonly wantsAgent: boolean;
}

const longOptions = (command: Command): string[] =>
  command.options.flatMap(({ long }) => (long ? [long] : []));

/** Every command with what may follow it. */
export const places = (command: Command, path = ""): Place[] => [
  {
    path,
    words: [...command.commands.map((inner) => inner.name()), ...longOptions(command), "--help"],
    wantsAgent: command.registeredArguments[0]?.name() === "agent",
  },
  ...command.commands.flatMap((inner) => places(inner, `${path} ${inner.name()}`.trim())),
];

const AGENTS = "blindrelay completion agents 2>/dev/null";

/** Both shells find the longest path of commands that was typed; options in between are passed over. */
const bash = (
  all: readonly Place[],
): string => `# blindrelay completion bash > /etc/bash_completion.d/blindrelay
_blindrelay() {
  local cur="\${COMP_WORDS[COMP_CWORD]}" path="" word words="" agents=""
  for word in "\${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
    case " $path $word " in
${all
  .filter(({ path }) => path !== "")
  .map(({ path }) => `      " ${path.includes(" ") ? path : ` ${path}`} ") path="${path}" ;;`)
  .join("\n")}
    esac
  done
  case "$path" in
${all
  .map(({ path, words, wantsAgent }) => {
    const agents = wantsAgent ? ` agents="$(${AGENTS})"` : "";
    return `    "${path}") words="${words.join(" ")}"${agents} ;;`;
  })
  .join("\n")}
  esac
  COMPREPLY=($(compgen -W "$words $agents" -- "$cur"))
  [ "\${#COMPREPLY[@]}" -gt 0 ] || COMPREPLY=($(compgen -f -- "$cur"))
}
complete -F _blindrelay blindrelay
`;

const zsh = (all: readonly Place[]): string =>
  `#compdef blindrelay\n# blindrelay completion zsh > ~/.zfunc/_blindrelay\nautoload -U +X bashcompinit && bashcompinit\n${bash(all).replace(/^#.*\n/, "")}`;

const fish = (all: readonly Place[]): string => {
  const top = all[0]?.words.filter((word) => !word.startsWith("-")) ?? [];
  const lines = [`# blindrelay completion fish > ~/.config/fish/completions/blindrelay.fish`];
  const none = `not __fish_seen_subcommand_from ${top.join(" ")}`;
  lines.push(`complete -c blindrelay -f -n '${none}' -a '${top.join(" ")}'`);
  for (const { path, words, wantsAgent } of all.slice(1)) {
    const seen = path.split(" ").map((word) => `__fish_seen_subcommand_from ${word}`);
    const condition = seen.join("; and ");
    for (const word of words) {
      const what = word.startsWith("--") ? `-l ${word.slice(2)}` : `-a ${word}`;
      lines.push(`complete -c blindrelay -n '${condition}' ${what}`);
    }
    if (wantsAgent) lines.push(`complete -c blindrelay -n '${condition}' -f -a '(${AGENTS})'`);
  }
  return `${lines.join("\n")}\n`;
};

const SCRIPTS: { readonly [shell in Shell]: (all: readonly Place[]) => string } = {
  bash,
  zsh,
  fish,
};

export const addCompletion = (program: Command, context: Context): void => {
  program
    .command("completion")
    .description("print a script that completes blindrelay's commands in a shell")
    .addArgument(new Argument("<shell>", "which shell").choices([...SHELLS, "agents"]))
    .addOption(new Option("--json", "no difference here").hideHelp())
    .addHelpText("after", '\nExample:\n  eval "$(blindrelay completion bash)"')
    .action((shell: Shell | "agents") => {
      // Asked by the scripts at each Tab: nothing goes over the network, and no person is asked.
      if (shell === "agents") {
        const settings = context.settings();
        if (!settings.isLocked) answer(Object.keys(settings.profile?.keyring ?? {}).join("\n"));
      } else answer(SCRIPTS[shell](places(program)).trimEnd());
    });
};
