/**
 * The entry of a board's file: `require("blindrelay")` gives what it exports. The six entries
 * differ in their links and in push only, so they are made.
 */

/**
 * What carries messages: the SDK's own WebSocket client; the same on a Wi-Fi that the SDK joins; or
 * a UART, which the configuration names, with `blindrelay bridge --mode sealed` at its other end.
 */
export type Links = "socket" | "wifi" | "uart";

const MODULES = { socket: "sockets", wifi: "wifi", uart: "uart" } as const;

/** Its source, as a module of src/espruino. `push`: the board accepts programs over the relay. */
export const entryOf = (links: Links, push: boolean): string => {
  const isWifi = links === "wifi";
  const parts = [
    `import { agentStatus, provisionAgent, startOver, stopAgent } from "./agent.ts";`,
    push && `import { bootBoard } from "./boot-board.ts";`,
    push &&
      isWifi &&
      `import { isOnTrial } from "./boot-board.ts"; import { holdAwake } from "./sleep.ts";`,
    isWifi &&
      `import { sleepWhenIdle } from "./sleep.ts"; import { useNetwork, wifiStatus } from "./wifi.ts";`,
    `import { ${links}Links } from "./${MODULES[links]}.ts";`,
    `const startAgent = (program, version) => startOver(${links}Links, program, version);`,
    push &&
      `const bootAgent = (version) => {
      ${isWifi ? "holdAwake(isOnTrial);" : ""}
      bootBoard(${links}Links, version);
    };`,
    `export { ${isWifi ? "wifiStatus" : "agentStatus"} as status };`,
    push && `export { bootAgent as boot };`,
    `export { provisionAgent as provision, startAgent as start, stopAgent as stop };`,
    isWifi && `export { sleepWhenIdle, useNetwork };`,
  ];
  return parts.filter((part) => part !== false).join("\n");
};
