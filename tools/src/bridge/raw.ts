/**
 * Mode `raw`: the port as two byte streams, for a remote terminal.
 *
 *   serial.read {stream}                    bytes from the device; the newest reader takes over
 *   serial.write {stream}                   bytes to the device; ends when the port accepted them
 *   all
 *   serial.configure {baud_rate, …}         settings, kept when the port is reopened
 *   serial.signals {dtr, rts, break}        control lines
 *   serial.status {}                        settings, status lines, counts
 *
 * Bounded in both directions: a writer is granted what the port has accepted, and while a reader
 * grants nothing the port is not read. Without a reader the device's output is lost, as on an
 * unconnected cable.
 */
import type { Agent, CallContext } from "@blindrelay/agent-sdk/node";
import { Streams } from "@blindrelay/agent-sdk/streams";
import type { IncomingStream, OutgoingStream } from "@blindrelay/protocol/streams";
import {
  type ControlLines,
  type LineSettings,
  messageOf,
  type OpenPort,
  PortError,
} from "../serial/port.ts";
import type { PortUser } from "../serial/supervise.ts";
import { DeviceAway } from "./away.ts";
import { readSettings, settingsAsJson } from "./settings.ts";

/** What a writer may send before the port has accepted any of it. */
const WRITE_WINDOW_BYTES = 32_768;
/** Bytes from the device that wait for the reader's credit before the port is paused. */
const READ_HIGH_BYTES = 65_536;

/** What raw.ts and lines.ts provide for an open port. */
export interface PortProgram {
  readonly program: (agent: Agent) => void;
  /** Bytes come to the user from now on. */
  begin?(): void;
  readonly user: PortUser;
}

interface Counts {
  bytes_in: number;
  bytes_out: number;
  /** Bytes from the device that arrived while no stream was open. */
  discarded: number;
}

/** From the device to the newest reader. */
class Reader {
  readonly counts: Counts;
  private readonly port: OpenPort;
  private stream: OutgoingStream | null = null;
  private pending: Uint8Array[] = [];
  private pendingBytes = 0;
  private paused = false;

  constructor(port: OpenPort, counts: Counts) {
    this.port = port;
    this.counts = counts;
  }

  get isOpen(): boolean {
    return this.stream !== null;
  }

  open(streams: Streams, sid: string, id: unknown): void {
    const stream = streams.outgoing(sid, id, {
      writable: () => this.flush(),
      ended: () => {
        if (this.stream === stream) this.leave();
      },
    });
    const before = this.stream;
    this.leave();
    this.stream = stream;
    before?.abort("another reader took over");
  }

  data(bytes: Uint8Array): void {
    this.counts.bytes_in += bytes.length;
    if (this.stream === null) {
      this.counts.discarded += bytes.length;
      return;
    }
    this.pending.push(bytes);
    this.pendingBytes += bytes.length;
    this.flush();
    if (this.pendingBytes > READ_HIGH_BYTES && !this.paused) {
      this.paused = true;
      this.port.pause();
    }
  }

  /** Sends the rest as far as there is credit for it, and then tells the reader the reason. */
  end(reason: string): void {
    this.flush();
    const left = this.pendingBytes;
    this.stream?.abort(
      left === 0 ? reason : `${reason}; ${left} bytes of the device were not read`,
    );
  }

  private flush(): void {
    while (this.stream !== null && this.pending.length > 0) {
      const first = this.pending[0] as Uint8Array;
      const taken = this.stream.write(first);
      if (this.stream === null) return;
      this.pendingBytes -= taken;
      if (taken < first.length) {
        this.pending[0] = first.subarray(taken);
        break;
      }
      this.pending.shift();
    }
    this.resumeWhenLow();
  }

  private leave(): void {
    this.stream = null;
    this.counts.discarded += this.pendingBytes;
    this.pending = [];
    this.pendingBytes = 0;
    this.resumeWhenLow();
  }

  private resumeWhenLow(): void {
    if (!this.paused || this.pendingBytes > READ_HIGH_BYTES / 2) return;
    this.paused = false;
    this.port.resume();
  }
}

/** From the newest writer to the device. */
class Writer {
  private readonly port: OpenPort;
  private readonly counts: Counts;
  private stream: IncomingStream | null = null;
  /**
   * Belongs to the port, not to a stream: otherwise the rest of a write from before a takeover
   * would end up between the bytes of the new writer.
   */
  private queue: Promise<void> = Promise.resolve();

  constructor(port: OpenPort, counts: Counts) {
    this.port = port;
    this.counts = counts;
  }

  get isOpen(): boolean {
    return this.stream !== null;
  }

  open(streams: Streams, sid: string, id: unknown): void {
    const stream = streams.incoming(sid, id, {
      data: (bytes) => {
        this.queue = this.queue.then(() => this.write(stream, bytes));
      },
      ended: (error) => {
        if (error !== null) this.leave(stream);
        else {
          this.queue = this.queue.then(() => {
            stream.confirm();
            this.leave(stream);
          });
        }
      },
    });
    const before = this.stream;
    this.stream = stream;
    before?.abort("another writer took over");
    stream.grant(WRITE_WINDOW_BYTES);
  }

  end(reason: string): void {
    this.stream?.abort(reason);
  }

  private async write(stream: IncomingStream, bytes: Uint8Array): Promise<void> {
    if (this.stream !== stream) return;
    try {
      await this.port.write(bytes);
      this.counts.bytes_out += bytes.length;
      stream.grant(bytes.length);
    } catch (error) {
      stream.abort(messageOf(error));
    }
  }

  private leave(stream: IncomingStream): void {
    if (this.stream === stream) this.stream = null;
  }
}

const readSignals = (params: unknown): ControlLines => {
  const signals: Record<string, boolean> = {};
  for (const [name, value] of Object.entries((params ?? {}) as object)) {
    if (!["dtr", "rts", "break"].includes(name) || typeof value !== "boolean") {
      throw new Error("signals are dtr, rts and break, each true or false");
    }
    signals[name] = value;
  }
  return signals;
};

/** If the port rejects a request, that is the caller's error; if it is gone, a retry may help. */
const asCallError = (error: unknown): Error =>
  error instanceof PortError && error.problem !== "unsupported"
    ? new DeviceAway(error.message, false)
    : (error as Error);

/** The device program for an open port. */
export const rawProgram = (port: OpenPort, settings: LineSettings): PortProgram => {
  let current = settings;
  let streams: Streams | null = null;
  const counts: Counts = { bytes_in: 0, bytes_out: 0, discarded: 0 };
  const reader = new Reader(port, counts);
  const writer = new Writer(port, counts);

  const program = (agent: Agent): void => {
    const made = new Streams(agent);
    streams = made;
    type Params = { readonly stream?: unknown } | undefined;
    agent.handle("serial.read", (params: Params, { sid }: CallContext) => {
      reader.open(made, sid, params?.stream);
      return settingsAsJson(current);
    });
    agent.handle("serial.write", (params: Params, { sid }: CallContext) => {
      writer.open(made, sid, params?.stream);
      return settingsAsJson(current);
    });
    agent.handle("serial.configure", async (params: unknown) => {
      const next = readSettings(params, current);
      await port.configure(next).catch((error) => {
        throw asCallError(error);
      });
      current = next;
      return settingsAsJson(current);
    });
    agent.handle("serial.signals", async (params: unknown) => {
      await port.control(readSignals(params)).catch((error) => {
        throw asCallError(error);
      });
      return {};
    });
    agent.handle("serial.status", async () => ({
      mode: "raw",
      ...settingsAsJson(current),
      ...(await port.status()),
      ...counts,
      reader: reader.isOpen,
      writer: writer.isOpen,
    }));
  };

  return {
    program,
    user: {
      data: (bytes) => reader.data(bytes),
      end: async (reason) => {
        reader.end(reason);
        writer.end(reason);
        streams?.fail(reason);
      },
    },
  };
};
