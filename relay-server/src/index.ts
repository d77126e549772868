export { EXIT, Failure } from "@blindrelay/protocol/command-line";
export type { InitOptions, InitResult } from "./control/data-dir.ts";
export { initStore } from "./control/data-dir.ts";
export type { RunningServer, ServerPorts } from "./server.ts";
export { startServer } from "./server.ts";
export { Config, readConfig } from "./settings/config.ts";
