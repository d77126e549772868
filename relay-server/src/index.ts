export { Config, readConfig } from "./config.ts";
export { EXIT, Failure } from "./failure.ts";
export type { RunningServer, ServerPorts } from "./server.ts";
export { startServer } from "./server.ts";
export type { InitOptions, InitResult } from "./setup.ts";
export { initStore } from "./setup.ts";
