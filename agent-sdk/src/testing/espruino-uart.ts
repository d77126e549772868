/** Espruino's `Serial1` over any byte stream, with the console on it until it is moved. */
import type { Duplex } from "node:stream";
import type { EspruinoSerial } from "../serial/espruino.ts";

const CONSOLE = "Serial1";

export class SubsetUart implements EspruinoSerial {
  /** The device of the console; null: nowhere. */
  console: string | null = CONSOLE;
  private listeners: ((text: string) => void)[] = [];
  private readonly line: Duplex;

  constructor(line: Duplex) {
    this.line = line;
    line.on("data", (bytes: Buffer) => {
      if (this.console === CONSOLE) return; // input to the console
      for (const listener of this.listeners) listener(bytes.toString("latin1"));
    });
  }

  moveConsole(device: string | null): void {
    this.console = device;
  }

  setup(): void {}

  on(_event: "data", fn: (text: string) => void): void {
    this.listeners.push(fn);
  }

  removeAllListeners(): void {
    this.listeners = [];
  }

  write(bytes: Uint8Array): void {
    // A copy, because these belong to another realm.
    this.line.write(Buffer.from(bytes));
  }
}
