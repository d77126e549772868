/**
 * Entry point like main-wifi.ts, for a board that accepts programs over the relay: `boot` replaces
 * `start`.
 *
 * [portable]
 */
import type { Program } from "../core/agent.ts";
import { provisionAgent, startOver, stopAgent } from "./agent.ts";
import { bootBoard, isOnTrial } from "./push.ts";
import { holdAwake, sleepWhenIdle } from "./sleep.ts";
import { useNetwork, wifiLinks, wifiStatus } from "./wifi.ts";

const startAgent = (program: Program, firmwareVersion?: string): void =>
  startOver(wifiLinks, program, firmwareVersion);

const bootAgent = (firmwareVersion?: string): void => {
  holdAwake(isOnTrial);
  bootBoard(wifiLinks, firmwareVersion);
};

export {
  bootAgent as boot,
  provisionAgent as provision,
  sleepWhenIdle,
  startAgent as start,
  stopAgent as stop,
  useNetwork,
  wifiStatus as status,
};
