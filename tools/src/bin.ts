#!/usr/bin/env node
/** The installed `blindrelay`. */
import { startCommand } from "@blindrelay/protocol/start-command";

await startCommand("blindrelay", import.meta.url, () => import("./main.ts"));
