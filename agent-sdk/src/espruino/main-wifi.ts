/**
 * The door of main.ts on a board that joins its Wi-Fi by this SDK: `status` tells of it, and
 * `useNetwork` takes another driver; `sleepWhenIdle` lets it sleep.
 *
 * [portable]
 */
import type { Program } from "../core/agent.ts";
import { provisionAgent, startOver, stopAgent } from "./agent.ts";
import { sleepWhenIdle } from "./sleep.ts";
import { useNetwork, wifiLinks, wifiStatus } from "./wifi.ts";

const startAgent = (program: Program, firmwareVersion?: string): void =>
  startOver(wifiLinks, program, firmwareVersion);

export {
  provisionAgent as provision,
  sleepWhenIdle,
  startAgent as start,
  stopAgent as stop,
  useNetwork,
  wifiStatus as status,
};
