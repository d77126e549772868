/**
 * Mode `sealed`: the board runs the SDK and its secrets stay on it; here its messages are carried
 * between the line and the relay (agent-sdk's SerialCarrier), unread. The link is the board's own:
 * without the board there is none, and the agent is offline.
 */
import { randomBytes } from "node:crypto";
import { crc32 } from "node:zlib";
import type { OpenPort, PortUser } from "@blindrelay/agent-sdk/bridge";
import { webSocketLinks } from "@blindrelay/agent-sdk/node";
import type { Log, TimerPort } from "@blindrelay/agent-sdk/ports";
import { SerialCarrier } from "@blindrelay/agent-sdk/serial";
import { MAX_MESSAGE_BYTES } from "@blindrelay/protocol";

/** Bytes that wait for the port before texts are held back. */
const WRITE_HIGH_BYTES = 16_384;
/** Answers to a device that does not read them are dropped beyond this. */
const WRITE_MAX_BYTES = 262_144;
const WINDOW_BYTES = 2 * MAX_MESSAGE_BYTES;
/** A board that runs the SDK requests its link earlier, even one that is booting. */
const PATIENCE_MS = 15_000;

interface SealedOptions {
  /** The relay's WebSocket address: the bridge's own choice, never the board's. */
  readonly url: string;
  readonly timer: TimerPort;
  readonly log: Log;
}

/** Carries messages for an open port. */
export const carrySealed = (port: Pick<OpenPort, "write">, options: SealedOptions): PortUser => {
  const links = webSocketLinks();
  const queue: Uint8Array[] = [];
  let queued = 0;
  let writing = false;
  let over = false;
  let heard = 0;
  let asked = false;

  const pump = async (): Promise<void> => {
    if (writing) return;
    writing = true;
    try {
      for (let next = queue.shift(); next !== undefined && !over; next = queue.shift()) {
        await port.write(next);
        queued -= next.length;
        if (queued < WRITE_HIGH_BYTES) carrier.writable();
      }
    } catch {
      // The port is gone or stalled: its end is about to be reported here.
    } finally {
      writing = false;
    }
  };

  const carrier: SerialCarrier = new SerialCarrier({
    write: (bytes) => {
      if (over || queued > WRITE_MAX_BYTES) return;
      queue.push(bytes);
      queued += bytes.length;
      void pump();
    },
    ready: () => queued < WRITE_HIGH_BYTES,
    connect: (events) => {
      asked = true;
      return links.connect(options.url, events);
    },
    timer: options.timer,
    random: (length) => randomBytes(length),
    checksum: (bytes) => crc32(bytes),
    log: options.log,
    maxMessage: MAX_MESSAGE_BYTES,
    window: WINDOW_BYTES,
  });

  const patience = options.timer.set(PATIENCE_MS, () => {
    if (asked) return;
    const what =
      heard === 0
        ? "nothing comes from the device"
        : "what the device sends does not come from the SDK";
    const fix = "does it run the SDK over this line, at this rate? Others: --mode lines or raw";
    options.log("warn", `${what}: ${fix}`, { bytes: heard });
  });

  return {
    data: (bytes) => {
      heard += bytes.length;
      carrier.receive(bytes);
    },
    end: async (reason) => {
      options.timer.clear(patience);
      over = true;
      queue.length = 0;
      carrier.end(reason);
    },
  };
};
