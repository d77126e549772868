#!/usr/bin/env node
/**
 * The installed `blindrelay-sim`: an older Node gets a clear error, before it parses newer syntax.
 */
import { readFileSync } from "node:fs";

const USAGE = 2;

const { engines } = JSON.parse(readFileSync(new URL("../package.json", import.meta.url), "utf8"));
const wanted = Number.parseInt(engines.node.replace(">=", ""), 10);
if (Number.parseInt(process.versions.node, 10) >= wanted) await import("./main.ts");
else {
  process.stderr.write(
    `blindrelay-sim needs Node ${wanted} or newer; this is ${process.version}\n`,
  );
  process.exitCode = USAGE;
}
