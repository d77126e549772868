/**
 * Entry point like main.ts, for a board that joins its Wi-Fi with this SDK: `status` includes the
 * Wi-Fi, `useNetwork` sets another driver, and `sleepWhenIdle` lets the board sleep.
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
