/**
 * `completion SHELL` of all three commands: a script for a shell, which asks the command itself
 * what may follow. No I/O of its own.
 */

interface Parameter {
  readonly argChoices?: readonly string[];
}

interface Argument extends Parameter {
  readonly variadic: boolean;
  name(): string;
}

interface Flag extends Parameter {
  readonly long?: string | undefined;
  readonly hidden: boolean;
  /** It has a value. */
  readonly required: boolean;
}

/** Commander's Command, as far as it is used here. */
interface Completed {
  readonly commands: readonly Completed[];
  readonly options: readonly Flag[];
  readonly registeredArguments: readonly Argument[];
  name(): string;
}

interface Commander extends Completed {
  command(name: string): Commander;
  description(text: string): Commander;
  argument(name: string, text?: string): Commander;
  addHelpText(place: "after", text: string): Commander;
  action(run: (shell: string, words: readonly string[]) => void): Commander;
  error(message: string): never;
}

/** What this machine knows of an argument or a flag by its name, such as "agent". */
type KnownValues = (name: string) => readonly string[];

/** The word for which the scripts run the command; `--` and what was typed follow. */
export const OFFERS = "offers";

/** Means nothing to any shell. */
const PLAIN = /^[\w.,:@%+=/-]+$/;

/**
 * What may stand in the place of the last of `words`, which is being typed; nothing where it may be
 * a file.
 */
const offersFor = (cli: Completed, words: readonly string[], values: KnownValues): string[] => {
  let command = cli;
  let argumentsBefore = 0;
  let flag: Flag | undefined;
  const current = words.at(-1) ?? "";
  const flagsOf = (): readonly Flag[] =>
    (command === cli ? [] : cli.options).concat(command.options);
  for (const word of words.slice(0, -1)) {
    if (flag !== undefined) flag = undefined;
    else if (word.startsWith("-")) {
      flag = flagsOf().find(({ long, required }) => required && long === word);
    } else {
      const inner = command.commands.find((each) => each.name() === word);
      if (inner === undefined) argumentsBefore++;
      else command = inner;
    }
  }
  const valuesOf = ({ argChoices }: Parameter, name: string): readonly string[] =>
    argChoices ?? values(name);
  const offered = (): readonly string[] => {
    if (flag !== undefined) return valuesOf(flag, flag.long?.slice(2) ?? "");
    if (current.startsWith("-")) {
      return [
        "--help",
        ...flagsOf().flatMap(({ long, hidden }) => (long && !hidden ? [long] : [])),
      ];
    }
    const { registeredArguments: all, commands } = command;
    const argument = all[argumentsBefore] ?? all.find(({ variadic }) => variadic);
    const given = argument === undefined ? [] : valuesOf(argument, argument.name());
    return [...commands.map((each) => each.name()), ...given];
  };
  return offered().filter((word) => word.startsWith(current) && PLAIN.test(word));
};

const SCRIPTS: Readonly<Record<string, (name: string, func: string) => string>> = {
  bash: (name, func) => `# ${name} completion bash > /etc/bash_completion.d/${name}
${func}() {
  local IFS=$'\\n'
  COMPREPLY=($(${name} completion ${OFFERS} -- "\${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null))
  [ "\${#COMPREPLY[@]}" -gt 0 ] || COMPREPLY=($(compgen -f -- "\${COMP_WORDS[COMP_CWORD]}"))
}
complete -F ${func} ${name}
`,
  // As a file in fpath it is the function's body at the first Tab; `eval` has to register it.
  zsh: (name, func) => `#compdef ${name}
# ${name} completion zsh > ~/.zfunc/_${name}
${func}() {
  local -a offers
  offers=(\${(f)"$(${name} completion ${OFFERS} -- "\${(@)words[2,CURRENT]}" 2>/dev/null)"})
  compadd -- "\${offers[@]}" || _files
}
if [ "\${funcstack[1]}" = _${name} ]; then ${func} "$@"; else compdef ${func} ${name}; fi
`,
  fish: (name, func) => `# ${name} completion fish > ~/.config/fish/completions/${name}.fish
function ${func}
  set -l words (commandline -opc) (commandline -ct)
  set -l offers (${name} completion ${OFFERS} -- $words[2..-1] 2>/dev/null)
  if set -q offers[1]
    printf '%s\\n' $offers
  else
    __fish_complete_path (commandline -ct)
  end
end
complete -c ${name} -f -a '(${func})'
`,
};

/** Adds the command `completion` to a program. Nothing is sent over the network at a Tab. */
export const addCompletion = (
  cli: Commander,
  output: { write(text: string): unknown },
  values: KnownValues = () => [],
): void => {
  const name = cli.name();
  const shells = Object.keys(SCRIPTS);
  const own: Commander = cli
    .command("completion")
    .description(`print a script that completes ${name}'s commands in a shell`)
    .argument("<shell>", shells.join(", "))
    .argument("[words...]", "for the scripts")
    .addHelpText(
      "after",
      `
Example:
  eval "$(${name} completion bash)"      # in ~/.bashrc; zsh likewise, after compinit
  ${name} completion fish > ~/.config/fish/completions/${name}.fish`,
    )
    .action((shell, words) => {
      const lines = (texts: readonly string[]): string => texts.map((text) => `${text}\n`).join("");
      if (shell === OFFERS) {
        output.write(lines(offersFor(cli, words, (of) => (of === "shell" ? shells : values(of)))));
        return;
      }
      const script = Object.hasOwn(SCRIPTS, shell) ? SCRIPTS[shell] : undefined;
      if (script === undefined) own.error(`error: the shells are ${shells.join(", ")}`);
      output.write(script(name, `_${name.replaceAll("-", "_")}`));
    });
};
