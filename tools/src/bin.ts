#!/usr/bin/env node
/** The installed `blindrelay`: an older Node gets a clear error, before it parses newer syntax. */
import { readFileSync } from "node:fs";

const USAGE = 2;

const { engines } = JSON.parse(readFileSync(new URL("../package.json", import.meta.url), "utf8"));
const wanted = engines.node.replace(">=", "");
const rank = (version: string): number => {
  const [major = 0, minor = 0] = version.split(".").map(Number);
  return major * 1000 + minor;
};
if (rank(process.versions.node) >= rank(wanted)) await import("./main.ts");
else {
  process.stderr.write(`blindrelay needs Node ${wanted} or newer; this is ${process.version}\n`);
  process.exitCode = USAGE;
}
