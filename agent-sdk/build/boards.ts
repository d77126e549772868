/**
 * The boards whose number of variables is known, for `blindrelay check --board`. The table of
 * boards in docs/espruino.md says the same (a test compares).
 */

export interface KnownBoard {
  /** As `--board` takes it. */
  readonly name: string;
  /** As the documentation's table has it; several boards may share a row. */
  readonly row: string;
  readonly variables: number;
  /** Its build has no network of its own, so the agent is behind a bridge. */
  readonly isBridged: boolean;
}

const board = (name: string, row: string, variables: number, isBridged = false): KnownBoard => ({
  name,
  row,
  variables,
  isBridged,
});

export const BOARDS: readonly KnownBoard[] = [
  board("esp32", "ESP32, S3", 16_383),
  board("esp32-s3", "ESP32, S3", 16_383),
  board("esp32-c3", "ESP32-C3", 4_095),
  board("espruino-wifi", "Espruino WiFi", 8_190),
  board("espruino-pico", "Espruino Pico", 5_100),
  board("puck.js", "Puck.js", 2_630, true),
  board("pi-pico", "Raspberry Pi Pico", 12_000, true),
  board("pi-pico-2", "Raspberry Pi Pico 2", 16_000, true),
  board("nrf54l15-dk", "nRF54L15 DK", 2_630, true),
  board("mdbt42q", "MDBT42Q", 2_950),
  board("esp8266", "ESP8266", 1_700),
];
