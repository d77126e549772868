/**
 * The boards whose number of variables is known, for `blindrelay check --board`, and the modules
 * that Espruino's own build of each has. The table of boards in docs/espruino.md says the same (a
 * test compares).
 */
import type { KnownBoard as Named } from "../src/board/dialect.ts";

export interface KnownBoard extends Named {
  /** As the documentation's table has it; several boards may share a row. */
  readonly row: string;
  readonly variables: number;
  /** Its build has no network of its own, so the agent is behind a bridge. */
  readonly isBridged: boolean;
}

const EVERY = ["Flash", "Storage", "heatshrink", "timer"];
const NET = [...EVERY, "NetworkJS", "dgram", "fs", "http", "neopixel", "net"];
const TLS = [...NET, "crypto", "tls"];
const ESP32 = [...TLS, "Wifi"];

const board = (
  name: string,
  build: string,
  row: string,
  variables: number,
  modules: readonly string[],
): KnownBoard => ({
  name,
  build,
  row,
  variables,
  modules,
  isBridged: !modules.includes("net"),
});

export const BOARDS: readonly KnownBoard[] = [
  board("esp32", "ESP32", "ESP32, S3", 16_383, [...ESP32, "TelnetServer"]),
  board("esp32-s3", "ESP32S3_IDF4", "ESP32, S3", 16_383, [...ESP32, "TelnetServer"]),
  board("esp32-c3", "ESP32C3_IDF4", "ESP32-C3", 4_095, ESP32),
  board("espruino-wifi", "ESPRUINOWIFI", "Espruino WiFi", 8_190, [
    ...TLS,
    ...["AT", "WIZnet", "Wifi", "tv"],
  ]),
  board("espruino-pico", "PICO_R1_3", "Espruino Pico", 5_100, TLS),
  board("puck.js", "PUCKJS", "Puck.js", 2_630, [...EVERY, "crypto", "neopixel"]),
  board("pi-pico", "RP2040_PICO", "Raspberry Pi Pico", 12_000, EVERY),
  board("pi-pico-2", "RP2350_PICO2", "Raspberry Pi Pico 2", 16_000, EVERY),
  board("nrf54l15-dk", "NRF54L15DK", "nRF54L15 DK", 2_630, EVERY),
  board("mdbt42q", "MDBT42Q", "MDBT42Q", 2_950, [...NET, "crypto"]),
  board("esp8266", "ESP8266_BOARD", "ESP8266", 1_700, [
    ...EVERY,
    ...["ESP8266", "NetworkJS", "Wifi", "dgram", "http", "neopixel", "net"],
  ]),
];
