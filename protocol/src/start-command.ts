/**
 * Starts an installed command, unless Node is too old: then the error is clear, and comes before
 * Node parses syntax that it lacks. So this file has none that is newer than Node 14.
 */
import { readFileSync } from "node:fs";

const USAGE = 2;

const rank = (version: string): number => {
  const [major = 0, minor = 0] = version.split(".").map(Number);
  return major * 1000 + minor;
};

/** `bin`: the URL of the command's file; its package.json says which Node it needs. */
export const startCommand = async (
  name: string,
  bin: string,
  start: () => Promise<unknown>,
): Promise<void> => {
  const { engines } = JSON.parse(readFileSync(new URL("../package.json", bin), "utf8"));
  const wanted = engines.node.replace(">=", "");
  if (rank(process.versions.node) >= rank(wanted)) await start();
  else {
    process.stderr.write(`${name} needs Node ${wanted} or newer; this is ${process.version}\n`);
    process.exitCode = USAGE;
  }
};
