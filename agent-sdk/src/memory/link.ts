/**
 * A network in memory: agents connect through its LinkPort, and a test or a virtual relay takes the
 * other end. Messages and events travel over the timer, in order and never synchronously, as on a
 * real network.
 */
import type { Link, LinkEvents, LinkPort, TimerPort } from "../ports.ts";

/** The relay's end of one link. Assign the callbacks inside `accept`. */
export class RelayEnd {
  readonly url: string;
  /** A text message of the agent. */
  received: (text: string) => void = () => {};
  /** The link ended, by whichever side. Once. */
  closed: (code: number, reason: string) => void = () => {};
  private readonly connection: Connection;

  constructor(url: string, connection: Connection) {
    this.url = url;
    this.connection = connection;
  }

  send(text: string): void {
    this.connection.later(() => this.connection.events.received(text));
  }

  close(code: number, reason: string): void {
    this.connection.end(code, reason);
  }

  get isOpen(): boolean {
    return this.connection.open;
  }
}

class Connection {
  open = true;
  readonly events: LinkEvents;
  private readonly timer: TimerPort;
  private readonly latencyMs: number;
  relay: RelayEnd | null = null;

  constructor(timer: TimerPort, latencyMs: number, events: LinkEvents) {
    this.timer = timer;
    this.latencyMs = latencyMs;
    this.events = events;
  }

  /** Runs `fn` after the latency, unless the link ended before. */
  later(fn: () => void): void {
    if (!this.open) return;
    this.timer.set(this.latencyMs, () => {
      if (this.open) fn();
    });
  }

  /** Messages sent before still arrive; those in flight in the other direction do not. */
  end(code: number, reason: string): void {
    this.later(() => {
      this.open = false;
      this.events.closed(code, reason);
      this.relay?.closed(code, reason);
    });
  }
}

export interface MemoryNetworkOptions {
  readonly timer: TimerPort;
  /** Milliseconds one way; defaults to 0. */
  readonly latencyMs?: number;
  /** A new link has reached the relay. Return false to refuse it, as a relay that is down would. */
  accept(relay: RelayEnd): boolean | undefined;
}

/** A LinkPort whose relay is `accept`. */
export const memoryNetwork = (options: MemoryNetworkOptions): LinkPort => ({
  connect(url: string, events: LinkEvents): Link {
    const connection = new Connection(options.timer, options.latencyMs ?? 0, events);
    const relay = new RelayEnd(url, connection);
    connection.later(() => {
      if (options.accept(relay) === false) {
        connection.end(1006, "refused");
        return;
      }
      connection.relay = relay;
      events.opened();
    });
    return {
      send: (text) => connection.later(() => connection.relay?.received(text)),
      close: (code, reason) => connection.end(code, reason),
    };
  },
});
