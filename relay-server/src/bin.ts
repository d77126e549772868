#!/usr/bin/env node
/** The installed `blindrelay-server`. */
import { startCommand } from "@blindrelay/protocol/start-command";

await startCommand("blindrelay-server", import.meta.url, () => import("./main.ts"));
