import type { AccessPoint } from "./wifi.ts";

/** The properties of the double's board. */
export interface DoubleOptions {
  readonly board: string;
  readonly version: string;
  readonly variables: number;
  readonly sha256: boolean;
  readonly aes: boolean;
  readonly watchdog: boolean;
  /** Its console is on Serial1, and is lost when it is moved from there. */
  readonly uart: boolean;
  /** It has the module `Wifi`, and this access point is in reach. */
  readonly air: AccessPoint | null;
  readonly storageBytes: number;
  /** The console's buffer; further bytes are lost. */
  readonly bufferBytes: number;
  /** The number of buffered bytes from which it sends XOFF. */
  readonly xoffBytes: number;
  /** How fast it reads; a tick is 2 ms. */
  readonly bytesPerTick: number;
}

/** A board with TLS, such as an ESP32. */
export const OPTIONS: DoubleOptions = {
  board: "DOUBLE",
  version: "2v29",
  variables: 5_000,
  sha256: true,
  aes: true,
  watchdog: true,
  uart: false,
  air: null,
  storageBytes: 262_144,
  bufferBytes: 1_024,
  xoffBytes: 896,
  bytesPerTick: 4_096,
};
