/** The command lines of programs that are run by hand: `npm run fuzz`, `rolling`, `soak`, … */
import { parseArgs } from "node:util";

const USAGE = 2;

export interface CommandLine {
  /** The output of `--help`; its first line is the usage, which is also printed after a mistake. */
  readonly help: string;
  /** Flags that take a value, with their defaults; "" for none. */
  readonly flags: { readonly [name: string]: string };
}

/** Ends the process with exit code 2. */
export const endWithUsage = ({ help }: CommandLine, reason: string): never => {
  console.error(`${reason}\n${help.split("\n")[0]}`);
  process.exit(USAGE);
};

/** The value of each flag. Ends the process for `--help` (0) and for an unknown flag (2). */
export const readFlags = (line: CommandLine): { readonly [name: string]: string } => {
  const options: NonNullable<Parameters<typeof parseArgs>[0]>["options"] = {
    help: { type: "boolean", short: "h" },
  };
  for (const [name, value] of Object.entries(line.flags)) {
    options[name] = { type: "string", default: value };
  }
  let values: ReturnType<typeof parseArgs>["values"];
  try {
    ({ values } = parseArgs({ options }));
  } catch (error) {
    return endWithUsage(line, (error as Error).message);
  }
  if (values.help === true) {
    console.log(line.help);
    process.exit(0);
  }
  return values as { readonly [name: string]: string };
};
