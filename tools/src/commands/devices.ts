/** `blindrelay devices`: lists the serial ports of this machine, and what answers on them. */

import { EspruinoRepl, REPL_LIMITS, readBoard, runtimeOf } from "@blindrelay/agent-sdk/board";
import { Failure } from "@blindrelay/protocol/command-line";
import type { Command } from "../base/command.ts";
import { type JsonFlag, printList, printStatus } from "../base/output.ts";
import { openPort, type PortFlags } from "../repl/port.ts";
import { listSerialPorts } from "../serial/local.ts";
import type { ListedPort } from "../serial/sysfs.ts";
import { withBaud } from "./board.ts";
import type { Context } from "./context.ts";

interface DevicesFlags extends JsonFlag, PortFlags {
  readonly all?: boolean;
  readonly probe: boolean;
  readonly remote?: boolean;
}

const PROBE_LIMITS = { ...REPL_LIMITS, attachMs: 1_500, answerMs: 4_000 };

export interface Device {
  readonly port: string;
  readonly manufacturer: string | null;
  readonly serial_number: string | null;
  readonly usb: string | null;
  /** "espruino", "other", "silent", "closed" (it does not open), or null if it was not probed. */
  readonly answers: "espruino" | "other" | "silent" | "closed" | null;
  readonly board: string | null;
  readonly version: string | null;
  readonly agent_id: string | null;
  /** The problem and its fix; null if there is none. */
  readonly problem: string | null;
}

const NOTHING = { answers: null, board: null, version: null, agent_id: null, problem: null };

/** Without disturbing a program that runs on the board. */
export const probe = async (
  name: string,
  line: PortFlags,
): Promise<Omit<Device, "port" | "manufacturer" | "serial_number" | "usb">> => {
  let board: EspruinoRepl;
  try {
    board = new EspruinoRepl(await openPort(name, line), PROBE_LIMITS);
  } catch (error) {
    if (!(error instanceof Failure)) throw error;
    return { ...NOTHING, answers: "closed", problem: error.message };
  }
  try {
    await board.attach(false);
    const found = await readBoard(board);
    return {
      answers: "espruino",
      board: found.board,
      version: found.version,
      agent_id: found.agentId,
      problem: null,
    };
  } catch (error) {
    const said = board.firstWords.trim();
    if (said === "") return { ...NOTHING, answers: "silent", problem: (error as Error).message };
    return { ...NOTHING, answers: "other", problem: runtimeOf(said) };
  } finally {
    await board.close();
  }
};

/** The machine's serial ports; ports that are not USB devices only with `all`. */
export const listPorts = async (
  all: boolean,
): Promise<Pick<Device, "port" | "manufacturer" | "serial_number" | "usb">[]> => {
  let ports: readonly ListedPort[];
  try {
    ports = await listSerialPorts();
  } catch (error) {
    throw new Failure(
      "device",
      `the serial ports cannot be listed: ${(error as Error).message}`,
      error,
    );
  }
  return ports
    .filter(({ vendorId }) => all || vendorId !== undefined)
    .map(({ path, manufacturer, serialNumber, vendorId, productId }) => ({
      port: path,
      manufacturer: manufacturer ?? null,
      serial_number: serialNumber ?? null,
      usb: vendorId === undefined ? null : `${vendorId}:${productId ?? "?"}`,
    }));
};

const asRow = (device: Device): string[] => [
  device.port,
  device.answers === "espruino" ? `${device.board} ${device.version}` : (device.answers ?? ""),
  device.agent_id ?? "",
  device.manufacturer ?? "",
  device.serial_number ?? "",
];

export const addDevices = (cli: Command, context: Context): void => {
  withBaud(
    cli
      .command("devices")
      .description("list the serial ports and what answers on them")
      .argument("[port...]", "probe these instead of those found; tcp://host:port too"),
  )
    .option("--all", "include ports that are not USB devices")
    .option("--no-probe", "do not open any port")
    .option("--remote", "the ports that your bridges offer instead, and who uses them")
    .option("--json", "one JSON document")
    .example(`
  blindrelay devices
  blindrelay devices tcp://192.168.1.9:23`)
    .action(async (named: string[], flags: DevicesFlags) => {
      if (flags.remote === true) {
        if (named.length > 0) throw new Failure("usage", "--remote lists all ports: name none");
        const { listRemotePorts } = await import("./remote-ports.ts");
        await listRemotePorts(context.settings(), flags.json === true);
        return;
      }
      const found =
        named.length > 0
          ? named.map((port) => ({ port, manufacturer: null, serial_number: null, usb: null }))
          : await listPorts(flags.all ?? false);
      const items: Device[] = await Promise.all(
        found.map(async (port) => ({
          ...port,
          ...(flags.probe ? await probe(port.port, flags) : NOTHING),
        })),
      );
      const none = "no serial port with a USB device; --all shows the others. Is it a data cable?";
      printList(flags, items, none, ["PORT", "ANSWERS", "AGENT", "MAKER", "SERIAL"], asRow);
      if (flags.json === true) return;
      for (const { port, problem } of items)
        if (problem !== null) printStatus(`${port}: ${problem}`);
    });
};
