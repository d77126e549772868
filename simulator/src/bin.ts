#!/usr/bin/env node
/** The installed `blindrelay-sim`. */
import { startCommand } from "@blindrelay/protocol/start-command";

await startCommand("blindrelay-sim", import.meta.url, () => import("./main.ts"));
