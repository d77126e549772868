/** A terminal on a remote serial port: the two byte streams of `blindrelay bridge --mode raw`. */
import { type Agent, CallError } from "@blindrelay/client-sdk";
import { Failure, wholeNumber } from "@blindrelay/protocol/command-line";
import type { Command } from "../base/command.ts";
import { interrupted } from "../base/interrupted.ts";
import { UNKNOWN_METHOD } from "../base/methods.ts";
import { oneLine, printStatus } from "../base/output.ts";
import { onOff } from "./number-flags.ts";

export interface SerialFlags {
  readonly port?: string;
  readonly baud?: number;
  readonly dtr?: boolean;
  readonly rts?: boolean;
}

/** Ctrl-] leaves; Ctrl-C goes to the device. */
const ESCAPE = 0x1d;
/** The bridge refuses: no such port, or it is in use; the device is away. */
const UNUSABLE: readonly unknown[] = [-32_000, -32_002];
/**
 * Limit of keys that wait for the device: a whole pasted page, but no more than a user would wait
 * for.
 */
const MAX_WAITING_BYTES = 1_048_576;

export const withSerialOptions = (command: Command): Command =>
  command
    .option("--port <port>", "with --serial: which of the agent's ports, if it has several")
    .option("--baud <rate>", "with --serial: set the port's rate first", wholeNumber(50, 4_000_000))
    .option("--dtr <on|off>", "with --serial: set this control line first", onOff)
    .option("--rts <on|off>", "with --serial: set this control line first", onOff);

/**
 * The agent's streams, after its line was configured. Rejects with a CallError, or with a Failure
 * if it has no port.
 */
const openStreams = async (agent: Agent, { port, baud, dtr, rts }: SerialFlags) => {
  const named = port === undefined ? {} : { port };
  try {
    if (baud !== undefined) await agent.call("serial.configure", { ...named, baud_rate: baud });
    if (dtr !== undefined || rts !== undefined) {
      await agent.call("serial.signals", { ...named, dtr, rts });
    }
    const reader = await agent.readStream("serial.read", named);
    return { reader, writer: await agent.writeStream("serial.write", named) };
  } catch (error) {
    if (!(error instanceof CallError)) throw error;
    const { code, message } = error.remote ?? {};
    if (UNUSABLE.includes(code))
      throw new Failure("device", `${agent.id}: ${oneLine(message ?? "")}`, error);
    if (code !== UNKNOWN_METHOD) throw error;
    const text = `${agent.id} has no serial port to share: it is not a bridge with --mode raw`;
    throw new Failure("agentError", text, error);
  }
};

/**
 * Resolves at Ctrl-], a signal, or (from a pipe) at the end of both sides. Rejects with a
 * CallError.
 */
export const runSerial = async (agent: Agent, flags: SerialFlags): Promise<void> => {
  const { reader, writer } = await openStreams(agent, flags);
  let isAnswering = false;
  // Another client wants the port: an answer shows that it is in use. One is enough at a time.
  agent.on("event", async (event) => {
    if (event !== "serial.asked" || isAnswering) return;
    isAnswering = true;
    await agent.call("system.ping").catch(() => undefined);
    isAnswering = false;
  });
  const { stdin, stdout } = process;
  const raw = stdin.isTTY === true;
  if (raw) {
    // Before anything is printed: what is typed after that is for the device, not the terminal.
    stdin.setRawMode(true);
    printStatus(`${agent.id}: Ctrl-] ends`);
  }
  const show = async (): Promise<void> => {
    for await (const bytes of reader) {
      if (!stdout.write(bytes)) await new Promise((resolve) => stdout.once("drain", resolve));
    }
    throw new Failure("device", `${agent.id}: its port is closed`);
  };
  let waiting = 0;
  // Keys do not wait for the device: Ctrl-] must work even if it accepts nothing. A pipe waits.
  const send = async (typed: Uint8Array): Promise<void> => {
    const written = writer.write(typed);
    if (!raw) return written;
    waiting += typed.length;
    if (waiting > MAX_WAITING_BYTES) {
      throw new Failure("device", `${agent.id}: its device accepts no input`);
    }
    written.then(
      () => {
        waiting -= typed.length;
      },
      () => undefined, // reported by onBroken
    );
  };
  const type = async (): Promise<void> => {
    for await (const bytes of stdin as AsyncIterable<Buffer>) {
      const end = raw ? bytes.indexOf(ESCAPE) : -1;
      const typed = end < 0 ? bytes : bytes.subarray(0, end);
      if (typed.length > 0) await send(typed);
      if (end >= 0) return;
    }
    // A pipe has ended: its data is sent, and output is shown until a signal.
    await writer.end();
    if (!raw) await interrupted();
  };
  const broken = new Promise<never>((_resolve, reject) => writer.onBroken(reject));
  try {
    await Promise.race([show(), type(), broken, interrupted()]);
  } finally {
    if (raw) stdin.setRawMode(false);
    reader.cancel();
    writer.abort();
  }
};
