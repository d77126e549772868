/**
 * A board's connection to the relay over a Wi-Fi that the SDK joins, using Espruino's module `Wifi`
 * (ESP32, ESP8266, Espruino WiFi) or the driver passed to `useNetwork`.
 *
 * [portable]
 */

import type { Wifi } from "../board/wifi.ts";
import { NetworkLinks } from "../core/join-network.ts";
import type { AgentStatus } from "../core/link.ts";
import type { Log } from "../ports.ts";
import type { BoardLinks } from "./agent.ts";
import { agentStatus } from "./agent.ts";
import { boardTimer } from "./ports.ts";
import { socketLinks } from "./sockets.ts";
import { wifiProblem } from "./wifi-problem.ts";

declare const require: (name: string) => unknown;
declare const console: { log(text: string): void };

/** A network that Espruino's module `Wifi` does not support. */
export interface BoardNetwork {
  /**
   * Joins it, and calls `done` with null or with the problem that the driver reports. May throw.
   */
  join(wifi: Wifi, done: (problem: string | null | undefined) => void): void;
  /** Calls `fn` whenever the network is lost. Called once. */
  onLost(fn: () => void): void;
}

interface WifiModule {
  connect(
    ssid: string,
    options: { password?: string },
    done: (problem: string | null | undefined) => void,
  ): void;
  on(event: "disconnected", fn: () => void): void;
}

const wifiModule: BoardNetwork = {
  join: (wifi, done) =>
    (require("Wifi") as WifiModule).connect(
      wifi.ssid,
      wifi.password === "" ? {} : { password: wifi.password },
      done,
    ),
  onLost: (fn) => (require("Wifi") as WifiModule).on("disconnected", fn),
};

let network = wifiModule;
let links: NetworkLinks | null = null;
/** Callback of the newest links. */
let lost: () => void = () => undefined;
/** The network that has a listener: a driver cannot remove one, so each gets only one. */
let heard: BoardNetwork | null = null;

/** Replaces Espruino's module by this network; called by the program, which runs first. */
export const useNetwork = (given: BoardNetwork): void => {
  network = given;
};

/** Everything is printed: a user at the console waits for it. */
const wifiLog: Log = (level, message) => console.log(`blindrelay ${level}: ${message}`);

export const wifiLinks: BoardLinks = (config, bootCount, maxMessage) => {
  const sockets = socketLinks(config, bootCount, maxMessage);
  const wifi = config.wifi;
  if (wifi === undefined) return sockets;
  const name = `Wi-Fi "${wifi.ssid}"`;
  links = new NetworkLinks({
    name: name,
    network: {
      join: (done) => {
        const failed = (problem: unknown): void =>
          done(wifiProblem(name, wifi.password, `${problem}`));
        try {
          network.join(wifi, (problem) =>
            problem === null || problem === undefined ? done(null) : failed(problem),
          );
        } catch (thrown) {
          failed(thrown);
        }
      },
      onLost: (fn) => {
        lost = fn;
        if (heard === network) return;
        heard = network;
        network.onLost(() => lost());
      },
    },
    links: sockets,
    timer: boardTimer,
    log: wifiLog,
  });
  return links;
};

/** The agent's status, with the Wi-Fi's advice if that is the reason; null if none is running. */
export const wifiStatus = (): AgentStatus | null => {
  const status = agentStatus();
  const advice = links === null ? null : links.advice;
  if (status === null || advice === null) return status;
  return { state: status.state, code: status.code, advice: advice, waitMs: status.waitMs };
};
