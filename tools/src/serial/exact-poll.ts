/**
 * serialport's poller never forgets an event for which it was asked once: after a first write that
 * had to wait, a port that can be written and has something to read wakes the loop without a pause,
 * a whole core's worth, and a wait to write ends the wait to read. Here it waits for exactly what
 * somebody waits for. Checked by exact-poll.test.ts, which fails when serialport has changed.
 */
import { EventEmitter } from "node:events";
import type { SerialPort } from "serialport";

/** As libuv has them. */
const FLAGS = { readable: 1, writable: 2, disconnect: 4 } as const;
const NAMES = Object.keys(FLAGS) as (keyof typeof FLAGS)[];

interface Poller extends EventEmitter {
  poll(flags?: number): void;
  readonly poller: { poll(flags: number): void; stop(): void };
}

/** For an open port, before anything else listens. Windows has no poller. */
export const pollExactly = (serial: SerialPort): void => {
  const { poller } = (serial.port ?? {}) as { readonly poller?: Poller };
  if (poller === undefined) return;
  const native = poller.poller;
  // Who waits does so once; those that are there for good wait for nothing.
  const isWaited = (name: string): boolean =>
    poller.rawListeners(name).some((listener) => "listener" in listener);
  const follow = (more: number): void => {
    const flags = NAMES.reduce((sum, name) => (isWaited(name) ? sum | FLAGS[name] : sum), more);
    if (flags === 0) native.stop();
    else native.poll(flags);
  };
  poller.poll = (flags = 0) => follow(flags);
  poller.emit = (name: string, error: Error | null, ...more: unknown[]): boolean => {
    const heard = EventEmitter.prototype.emit.call(poller, name, error, ...more);
    // With an error it is stopped, or closed.
    if (error === null) follow(0);
    return heard;
  };
};
