/**
 * `blindrelay completion SHELL`: a script that completes commands, options, and the keyring's
 * agents.
 */
import { Argument, type Command, Option } from "commander";
import { printText } from "../base/output.ts";
import type { Context } from "./context.ts";

const SHELLS = ["bash", "zsh", "fish"] as const;
type ShellName = (typeof SHELLS)[number];

interface Place {
  /** Such as "agent add"; "" for the program itself. */
  readonly path: string;
  /** Commands that may follow. */
  readonly commands: readonly string[];
  /** What may follow: commands, options, and the values of the first argument. */
  readonly words: readonly string[];
  /** Its first argument is an agent. */
  readonly wantsAgent: boolean;
  /** Its first argument may be a file. */
  readonly wantsFile: boolean;
}

/** Requested by the scripts, not by users. */
const AGENTS_QUESTION = "agents";

const longOptions = (command: Command): string[] =>
  command.options.flatMap(({ long, hidden }) => (long && !hidden ? [long] : []));

/** Every command with what may follow it. */
export const places = (command: Command, path = ""): Place[] => {
  const commands = command.commands.map((inner) => inner.name());
  const [first] = command.registeredArguments;
  const choices = (first?.argChoices ?? []).filter((choice) => choice !== AGENTS_QUESTION);
  const wantsAgent = first?.name() === "agent";
  const wantsFile = first !== undefined && !wantsAgent && choices.length === 0;
  return [
    {
      path,
      commands,
      words: [...commands, ...choices, ...longOptions(command), "--help"],
      wantsAgent,
      wantsFile,
    },
    ...command.commands.flatMap((inner) => places(inner, `${path} ${inner.name()}`.trim())),
  ];
};

const AGENTS = `blindrelay completion ${AGENTS_QUESTION} 2>/dev/null`;

/**
 * The longest path of commands among the words typed so far, skipping options in between; and what
 * may follow it, as `offers`. For both bash and zsh: in zsh `path` is the search path.
 */
const findOffers = (all: readonly Place[], typed: string): string => `  local place="" word
  local -a offers
  for word in ${typed}; do
    case " $place $word " in
${all
  .filter(({ path }) => path !== "")
  .map(({ path }) => `      " ${path.includes(" ") ? path : ` ${path}`} ") place="${path}" ;;`)
  .join("\n")}
    esac
  done
  case "$place" in
${all
  .map(({ path, words, wantsAgent }) => {
    const agents = wantsAgent ? ` $(${AGENTS})` : "";
    return `    "${path}") offers=(${words.join(" ")}${agents}) ;;`;
  })
  .join("\n")}
  esac`;

const bash = (
  all: readonly Place[],
): string => `# blindrelay completion bash > /etc/bash_completion.d/blindrelay
_blindrelay() {
  local cur="\${COMP_WORDS[COMP_CWORD]}"
${findOffers(all, '"$' + '{COMP_WORDS[@]:1:COMP_CWORD-1}"')}
  COMPREPLY=($(compgen -W "\${offers[*]}" -- "$cur"))
  [ "\${#COMPREPLY[@]}" -gt 0 ] || COMPREPLY=($(compgen -f -- "$cur"))
}
complete -F _blindrelay blindrelay
`;

/**
 * As a file in fpath it is the function's body at the first Tab; with `eval` it has to be
 * registered.
 */
const zsh = (all: readonly Place[]): string => `#compdef blindrelay
# blindrelay completion zsh > ~/.zfunc/_blindrelay
_blindrelay() {
${findOffers(all, '"$' + '{(@)words[2,CURRENT-1]}"')}
  compadd -- "\${offers[@]}" || _files
}
if [ "\${funcstack[1]}" = _blindrelay ]; then _blindrelay "$@"; else compdef _blindrelay blindrelay; fi
`;

const fish = (all: readonly Place[]): string => {
  const lines = ["# blindrelay completion fish > ~/.config/fish/completions/blindrelay.fish"];
  for (const { path, commands, words, wantsAgent, wantsFile } of all) {
    const seen =
      path === "" ? [] : path.split(" ").map((word) => `__fish_seen_subcommand_from ${word}`);
    const unseen =
      commands.length === 0 ? [] : [`not __fish_seen_subcommand_from ${commands.join(" ")}`];
    const complete = `complete -c blindrelay -n '${[...seen, ...unseen].join("; and ")}'`;
    if (!wantsFile) lines.push(`${complete} -f`);
    for (const word of words) {
      lines.push(`${complete} ${word.startsWith("--") ? `-l ${word.slice(2)}` : `-a ${word}`}`);
    }
    if (wantsAgent) lines.push(`${complete} -a '(${AGENTS})'`);
  }
  return `${lines.join("\n")}\n`;
};

const SCRIPTS: { readonly [shell in ShellName]: (all: readonly Place[]) => string } = {
  bash,
  zsh,
  fish,
};

export const addCompletion = (cli: Command, context: Context): void => {
  cli
    .command("completion")
    .description("print a script that completes blindrelay's commands in a shell")
    .addArgument(new Argument("<shell>", "which shell").choices([...SHELLS, AGENTS_QUESTION]))
    .addOption(new Option("--json", "no difference here").hideHelp())
    .addHelpText(
      "after",
      `
Example:
  eval "$(blindrelay completion bash)"      # in ~/.bashrc; zsh likewise, after compinit
  blindrelay completion fish > ~/.config/fish/completions/blindrelay.fish`,
    )
    .action((shell: ShellName | typeof AGENTS_QUESTION) => {
      // Requested by the scripts at each Tab: nothing is sent over the network, and nobody is
      // prompted.
      if (shell === AGENTS_QUESTION) {
        const settings = context.settings();
        if (!settings.isLocked) printText(Object.keys(settings.profile?.keyring ?? {}).join("\n"));
      } else printText(SCRIPTS[shell](places(cli)).trimEnd());
    });
};
