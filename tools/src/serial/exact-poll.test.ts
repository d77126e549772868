/** serialport on a real terminal: it waits for what somebody waits for, and for nothing else. */

import { DEFAULT_SETTINGS } from "@blindrelay/protocol/serial";
import { SerialPort } from "serialport";
import { describe, expect, it, onTestFinished } from "vitest";
import { serialOpener } from "./local.ts";
import { Cable, HAS_SOCAT } from "./testing/pty.ts";

/** More than a terminal, socat and a socket hold. */
const MUCH = 2_000_000;

describe.skipIf(!HAS_SOCAT)("a port whose device stops reading for a while", () => {
  it("goes on reading meanwhile, and does not turn the event loop once bytes wait and may be written", async () => {
    const cable = new Cable();
    onTestFinished(() => cable.end());
    const device = await cable.plug();
    const events = { read: 0, polls: 0 };
    const { emit } = SerialPort.prototype;
    let serial: SerialPort | null = null;
    SerialPort.prototype.emit = function (this: SerialPort, ...args: Parameters<typeof emit>) {
      serial = this;
      return emit.apply(this, args);
    };
    const port = await serialOpener(cable.path)(DEFAULT_SETTINGS, {
      data: (bytes) => {
        events.read += bytes.length;
      },
      closed: () => undefined,
    });
    SerialPort.prototype.emit = emit;
    onTestFinished(() => port.close());
    device.pause();
    const writing = port.write(new Uint8Array(MUCH));
    // The terminal is full by now, and what the device says still comes.
    await new Promise((resolve) => setTimeout(resolve, 100));
    device.write("still here");
    await expect.poll(() => events.read).toBe(10);
    device.resume();
    await writing;
    port.pause();
    // More than serialport reads ahead.
    device.write(new Uint8Array(MUCH));
    await new Promise((resolve) => setTimeout(resolve, 50));
    const { poller } = (serial as unknown as SerialPort).port as unknown as {
      poller: NodeJS.EventEmitter;
    };
    for (const name of ["readable", "writable"]) poller.on(name, () => events.polls++);
    await new Promise((resolve) => setTimeout(resolve, 100));
    expect(events.polls).toBeLessThan(10);
  });
});
