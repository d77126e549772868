/**
 * Variables that other people set. Compose and CI hand over `NAME=` for what was not set;
 * Kubernetes puts `BLINDRELAY_PORT=tcp://10.96.12.3:80` into every pod beside a Service of that
 * name. Both count as unset.
 */

export type Environment = Readonly<Record<string, string | undefined>>;

const PREFIX = "BLINDRELAY_";
/** The form of a Service's address; no setting has it. */
const SERVICE = /^(tcp|udp|sctp):\/\//;

const isForeign = (name: string, value: string | undefined): boolean =>
  name.startsWith(PREFIX) && (value === "" || SERVICE.test(value ?? ""));

export const ownEnvironment = (environment: Environment): Environment =>
  Object.fromEntries(
    Object.entries(environment).filter(([name, value]) => !isForeign(name, value)),
  );

/** The same for the environment of this process, which the command line reads, too. */
export const dropForeignVariables = (environment: NodeJS.ProcessEnv): void => {
  for (const [name, value] of Object.entries(environment)) {
    if (isForeign(name, value)) delete environment[name];
  }
};
