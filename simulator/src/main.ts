#!/usr/bin/env node
/**
 * `blindrelay-sim`: the commands of docs/commands.md. Answers go to standard output, everything
 * else to standard error.
 */
import { enableCompileCache } from "node:module";

enableCompileCache();
// Suppresses Node's warnings about its own features, such as type stripping.
process.removeAllListeners("warning");

const { runMain } = await import("./run-main.ts");
const { runCli } = await import("./cli.ts");
await runMain(runCli);
