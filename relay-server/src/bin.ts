#!/usr/bin/env node
/**
 * The installed `blindrelay-server`: an older Node is told so, before it meets what it does not
 * have.
 */
import { readFileSync } from "node:fs";

const { engines } = JSON.parse(readFileSync(new URL("../package.json", import.meta.url), "utf8"));
const wanted = Number.parseInt(engines.node.replace(">=", ""), 10);
if (Number.parseInt(process.versions.node, 10) >= wanted) await import("./main.ts");
else {
  process.stderr.write(
    `blindrelay-server needs Node ${wanted} or newer; this is ${process.version}\n`,
  );
  process.exitCode = 70;
}
