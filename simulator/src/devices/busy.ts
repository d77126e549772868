/**
 * A device that never rests, for searches: it numbers its events anew from each start, stores some
 * of the numbers, and has byte streams in both directions whose content follows from their length.
 * `busy.read {size}` and `busy.write {size}` open a stream; `busy.count` answers how many events
 * there were.
 */
import type { Agent } from "@blindrelay/agent-sdk";
import { Streams } from "@blindrelay/agent-sdk/streams";

const EVERY_MS = 5_000;
const WINDOW = 32_768;

/** Byte `at` of a stream. */
export const byteAt = (at: number): number => (at * 31 + (at >> 8)) & 255;

export const pattern = (from: number, length: number): Uint8Array =>
  Uint8Array.from({ length }, (_, i) => byteAt(from + i));

/** A few texts that come, change and go. */
const store = ({ storage }: Agent, n: number): void => {
  const key = `tick.${n % 3}`;
  try {
    if (n % 7 === 0) storage.remove(key);
    else storage.set(key, String(n));
  } catch {
    // The medium is full, or the power is gone.
  }
};

/** `every` and `now`: the device's own setInterval and Date.now. */
export const busy =
  (every: (fn: () => void, ms: number) => unknown, now: () => number) =>
  (agent: Agent): void => {
    const streams = new Streams(agent);
    const start = now();
    let n = 0;
    every(() => {
      n += 1;
      agent.emit("busy.tick", { n, start });
      store(agent, n);
    }, EVERY_MS);
    agent.handle("busy.count", () => ({ n }));
    agent.handle("busy.read", (params, { sid }) => {
      const { size, stream } = params as { size: number; stream: number };
      let at = 0;
      const out = streams.outgoing(sid, stream, {
        writable: () => {
          // As much as there is credit for: without more of it, nobody calls this again.
          for (let written = 1; written > 0 && at < size; at += written) {
            written = out.write(pattern(at, Math.min(size - at, WINDOW)));
          }
          if (at === size) out.end();
        },
        ended: () => undefined,
      });
      return { size };
    });
    agent.handle("busy.write", (params, { sid }) => {
      const { stream } = params as { stream: number };
      let at = 0;
      const input = streams.incoming(sid, stream, {
        data: (bytes: Uint8Array) => {
          for (const byte of bytes) {
            if (byte !== byteAt(at)) throw new Error(`byte ${at} of a stream is wrong`);
            at += 1;
          }
          input.grant(bytes.length);
        },
        ended: (error: string | null) => {
          if (error === null) input.confirm();
        },
      });
      input.grant(WINDOW);
      return {};
    });
  };
