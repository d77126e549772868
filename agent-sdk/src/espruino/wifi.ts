/**
 * A board's way to the relay over a Wi-Fi that the SDK joins: by Espruino's module `Wifi`, which
 * ESP32, ESP8266 and Espruino WiFi have, or by what the program gives to `useNetwork`.
 *
 * [portable]
 */
import type { AgentStatus } from "../core/link.ts";
import { NetworkLinks } from "../core/network.ts";
import type { Log } from "../ports.ts";
import type { BoardLinks } from "./agent.ts";
import { agentStatus } from "./agent.ts";
import type { BoardWifi } from "./files.ts";
import { boardTimer } from "./ports.ts";
import { socketLinks } from "./sockets.ts";

declare const require: (name: string) => unknown;
declare const console: { log(text: string): void };

/** A network that Espruino has no module `Wifi` for. */
export interface BoardNetwork {
  /** Joins it, and calls `done` with null or what the driver says is wrong. May throw. */
  join(wifi: BoardWifi, done: (problem: string | null | undefined) => void): void;
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

/** Takes this network in place of Espruino's module; from the program, which runs before. */
export const useNetwork = (given: BoardNetwork): void => {
  network = given;
};

/**
 * What is wrong, in one sentence. The words are those of ESP-IDF, of the ESP8266's SDK and of its
 * AT firmware, which may repeat the command, password and all.
 */
const explain = (name: string, wifi: BoardWifi, said: string): string => {
  const shown = wifi.password === "" || said.indexOf(wifi.password) < 0;
  const problem = shown ? said : said.split(wifi.password).join("...");
  if (/PASSW|HANDSHAKE|AUTH_FAIL|CWJAP:2/i.test(problem))
    return `${name} refuses the password (${problem}): provision this board with the right one`;
  if (/NO_AP|CWJAP:3/i.test(problem)) return `${name} is not in reach (${problem})`;
  return `${name} cannot be joined: ${problem}`;
};

/** All of it: it is what a person at the console waits for. */
const wifiLog: Log = (level, message) => console.log(`blindrelay ${level}: ${message}`);

export const wifiLinks: BoardLinks = (config, bootCount, maxMessage) => {
  const sockets = socketLinks(config, bootCount, maxMessage);
  const wifi = config.wifi;
  if (wifi === undefined) return sockets;
  const name = `Wi-Fi "${wifi.ssid}"`;
  links = new NetworkLinks({
    name: name,
    network: {
      join: (done) =>
        network.join(wifi, (problem) =>
          done(
            problem === null || problem === undefined ? null : explain(name, wifi, `${problem}`),
          ),
        ),
      onLost: (fn) => network.onLost(fn),
    },
    links: sockets,
    timer: boardTimer,
    log: wifiLog,
  });
  return links;
};

/** How the agent is, with the Wi-Fi's advice where that is the reason; null while none runs. */
export const wifiStatus = (): AgentStatus | null => {
  const status = agentStatus();
  const advice = links === null ? null : links.advice;
  if (status === null || advice === null) return status;
  return { state: status.state, code: status.code, advice: advice, waitMs: status.waitMs };
};
