/** The serial ports of this machine, by path or by the serial number of their USB adapter. */
import { lstatSync, statSync } from "node:fs";
import {
  type ControlLines,
  messageOf,
  NO_STATUS,
  type OpeningLines,
  PortError,
  type PortEvents,
  type PortOpener,
} from "@blindrelay/agent-sdk/bridge";
import { wakeEventLoop } from "@blindrelay/agent-sdk/serial/node";
import type { LineSettings } from "@blindrelay/protocol/serial";
import type { SerialPort } from "serialport";
import { pollExactly } from "./exact-poll.ts";
import { type ListedPort, portsOfSysfs } from "./sysfs.ts";
import { setLine } from "./termios.ts";

/** A terminal that is not a real UART (a pty) has no control lines. */
const UNSUPPORTED = /inappropriate ioctl|not supported|invalid argument/i;

/**
 * How often an open port is checked: not every driver reports an unplugged device to a pending
 * read.
 */
const WATCH_MS = 250;

/**
 * Identifies what the path refers to: the device, and its directory entry, which replugging creates
 * anew.
 */
const nodeAt = (path: string): string | null => {
  try {
    return `${statSync(path).rdev} ${lstatSync(path).ino}`;
  } catch {
    return null;
  }
};

const done =
  (resolve: () => void, reject: (error: PortError) => void, what: string) =>
  (error: Error | null | undefined): void => {
    if (!error) resolve();
    else if (UNSUPPORTED.test(error.message)) {
      reject(new PortError("unsupported", `this port has no ${what}`, error));
    } else {
      reject(new PortError("gone", error.message, error));
    }
  };

/** Loads the native binding when the first port is opened: most commands open none. */
const loadSerialPort = async (): Promise<typeof SerialPort> =>
  (await import("serialport")).SerialPort;

/** The serial ports of this machine. Rejects if the system cannot list them. */
export const listSerialPorts = async (): Promise<readonly ListedPort[]> => {
  try {
    return await (await loadSerialPort()).list();
  } catch (error) {
    // On Linux the library asks udev, which a container has not.
    if ((error as NodeJS.ErrnoException).syscall !== "spawn udevadm") throw error;
    return portsOfSysfs();
  }
};

const openPath = async (
  path: string,
  settings: LineSettings,
  events: PortEvents,
  lines: OpeningLines,
) => {
  const SerialPort = await loadSerialPort();
  return new Promise<Awaited<ReturnType<PortOpener>>>((resolve, reject) => {
    const serial = new SerialPort({
      path,
      baudRate: settings.baudRate,
      dataBits: settings.dataBits,
      parity: settings.parity,
      stopBits: settings.stopBits,
      rtscts: settings.flowControl === "rts",
      xon: settings.flowControl === "xon",
      xoff: settings.flowControl === "xon",
      hupcl: lines.hupcl ?? true,
      autoOpen: false,
    });
    let over = false;
    let current = settings;
    // serialport forgets a write that was in progress when the port ended.
    const writing = new Set<(error: PortError) => void>();
    const finish = (reason: string): void => {
      if (over) return;
      over = true;
      clearInterval(watch);
      events.closed(reason);
      for (const failed of writing) failed(new PortError("gone", reason));
      writing.clear();
    };
    let watch: NodeJS.Timeout | undefined;
    let node: string | null = null;
    let closing: Promise<void> | null = null;
    // serialport sets all three at each call, by default to these.
    let driven = { dtr: true, rts: true, brk: false };
    const control = ({ dtr, rts, break: brk }: ControlLines): Promise<void> => {
      driven = { dtr: dtr ?? driven.dtr, rts: rts ?? driven.rts, brk: brk ?? driven.brk };
      return new Promise((set, failed) => {
        serial.set(driven, done(set, failed, "control lines"));
      });
    };
    const close = (): Promise<void> => {
      closing ??= new Promise((closed) => {
        if (serial.isOpen) serial.close(() => closed());
        else if (serial.closing) {
          // After an error serialport closes it by itself.
          serial.once("close", () => closed());
          serial.once("error", () => closed());
        } else closed();
      });
      return closing;
    };
    const vanish = (reason: string): void => {
      if (over) return;
      finish(reason);
      void close();
    };
    const look = (): void => {
      if (serial.closing) return;
      if (node !== null && nodeAt(path) !== node) {
        vanish(`${path} is gone`);
        return;
      }
      serial.get((error) => {
        if (error && !UNSUPPORTED.test(error.message)) vanish(error.message);
      });
    };
    serial.on("data", (bytes: Uint8Array) => {
      if (!over) events.data(bytes);
    });
    // "close" follows if the port is gone; a failed write notifies its own caller.
    serial.on("error", () => undefined);
    serial.on("close", (error: Error | null) => finish(error ? error.message : `${path} is gone`));
    serial.open((failure) => {
      if (failure) {
        reject(new PortError("gone", failure.message, failure));
        return;
      }
      pollExactly(serial);
      node = process.platform === "win32" ? null : nodeAt(path);
      watch = setInterval(look, WATCH_MS);
      // Where there are no lines, none restarts a board.
      const { dtr, rts } = lines;
      if (dtr !== undefined || rts !== undefined) control(lines).catch(() => undefined);
      resolve({
        write: (bytes) =>
          new Promise((taken, failed) => {
            if (over) {
              failed(new PortError("gone", `${path} is gone`));
              return;
            }
            writing.add(failed);
            serial.write(bytes, (error) => {
              writing.delete(failed);
              done(taken, failed, "way to write")(error);
            });
          }),
        pause: () => serial.pause(),
        resume: () => serial.resume(),
        configure: async (next) => {
          const same =
            next.dataBits === current.dataBits &&
            next.parity === current.parity &&
            next.stopBits === current.stopBits &&
            next.flowControl === current.flowControl;
          if (same) {
            await new Promise<void>((set, failed) => {
              serial.update({ baudRate: next.baudRate }, done(set, failed, "baud rate"));
            });
          } else {
            // serialport 13 changes only the rate of an open port.
            const { fd } = serial.port as unknown as { readonly fd?: number | null };
            if (typeof fd !== "number" || !(await setLine(fd, next))) {
              throw new PortError(
                "unsupported",
                "only the baud rate of this port can change while open",
              );
            }
          }
          current = next;
        },
        control,
        status: () =>
          new Promise((told) => {
            serial.get((error, lines) => {
              told(
                error || !lines ? NO_STATUS : { cts: lines.cts, dsr: lines.dsr, dcd: lines.dcd },
              );
            });
          }),
        close: () => {
          finish("closed");
          return close();
        },
      });
    });
    wakeEventLoop(serial);
  });
};

export const serialOpener =
  (path: string, lines: OpeningLines = {}): PortOpener =>
  (settings, events) =>
    openPath(path, settings, events, lines);

/** A port by its adapter's serial number, looked up at every opening: its path may change. */
export const usbOpener =
  (serialNumber: string, lines: OpeningLines = {}, list = listSerialPorts): PortOpener =>
  async (settings, events) => {
    let ports: readonly ListedPort[];
    try {
      ports = await list();
    } catch (error) {
      throw new PortError("gone", `the ports cannot be listed: ${messageOf(error)}`, error);
    }
    const [found, ...others] = ports.filter((port) => port.serialNumber === serialNumber);
    if (found === undefined) {
      throw new PortError("gone", `no adapter with serial number ${serialNumber} is plugged in`);
    }
    if (others.length > 0) {
      const paths = [found, ...others].map(({ path }) => path).join(", ");
      const fix = "name one by its path, such as /dev/serial/by-path/…";
      throw new PortError(
        "gone",
        `several ports have serial number ${serialNumber} (${paths}): ${fix}`,
      );
    }
    return openPath(found.path, settings, events, lines);
  };
