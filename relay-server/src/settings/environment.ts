/**
 * Variables that other people set. Compose and CI hand over `NAME=` for what was not set;
 * Kubernetes puts `BLINDRELAY_PORT=tcp://10.96.12.3:80` into every pod beside a Service of that
 * name. Both count as unset. Files for `docker --env-file` leave quotation marks and line ends.
 */
import { givenText } from "@blindrelay/protocol/command-line";

export type Environment = Readonly<Record<string, string | undefined>>;

const PREFIX = "BLINDRELAY_";
/** The form of a Service's address; no setting has it. */
const SERVICE = /^(tcp|udp|sctp):\/\//;

/** Null: it counts as unset. */
const meant = (value: string | undefined): string | null => {
  const text = givenText(value);
  return text === null || SERVICE.test(text) ? null : text;
};

export const ownEnvironment = (environment: Environment): Environment =>
  Object.fromEntries(
    Object.entries(environment).flatMap(([name, value]) => {
      const own = name.startsWith(PREFIX) ? meant(value) : value;
      return own === null ? [] : [[name, own]];
    }),
  );

/** The same for the environment of this process, which the command line reads, too. */
export const tidyVariables = (environment: NodeJS.ProcessEnv): void => {
  for (const [name, value] of Object.entries(environment)) {
    if (!name.startsWith(PREFIX)) continue;
    const own = meant(value);
    if (own === null) delete environment[name];
    else environment[name] = own;
  }
};
