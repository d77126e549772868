/**
 * The relay of the virtual world: the real hub with its driver, over virtual time and a model of
 * its store.
 */
import {
  type Connection,
  type HubLimits,
  Lockout,
  type RunningHub,
  runHub,
} from "@blindrelay/relay-server/core";
import type { Clock, Happening } from "./clock.ts";
import { RelayEnd, type Station, type Wire } from "./net.ts";
import type { ModelStore } from "./store.ts";

/** Unix time at the start of every world: 2026-01-01T00:00:00Z. */
export const EPOCH_MS = 1_767_225_600_000;
const DRAIN_TIMEOUT_MS = 15_000;

export interface RelayWatcher {
  logged(message: string, error: unknown): void;
  stir(): void;
  trace(what: string, who: string, text: string): void;
  /** All peers got `RESTARTING`. */
  drained(): void;
}

/** What a hostile relay does with a text on its way to a peer. */
export type Meddler = (wire: Wire, text: string) => readonly string[];

export class VirtualRelay implements Station {
  readonly store: ModelStore;
  /** Between an end and the next start, false. */
  isUp = false;
  meddler: Meddler | null = null;
  /** Connections by their wire, of the running hub. */
  private running: RunningHub | null = null;
  private readonly clock: Clock;
  private readonly watcher: RelayWatcher;
  private readonly limits: Partial<HubLimits>;
  private readonly wires = new Set<Wire>();
  /** Timers of a hub that is gone must not fire. */
  private life = 0;

  constructor(clock: Clock, store: ModelStore, watcher: RelayWatcher, limits: Partial<HubLimits>) {
    this.clock = clock;
    this.store = store;
    this.watcher = watcher;
    this.limits = limits;
  }

  nowMs(): number {
    return EPOCH_MS + this.clock.nowMs();
  }

  start(): void {
    this.life += 1;
    const { clock, life } = this;
    const alive = (): boolean => this.life === life;
    this.running = runHub({
      lookups: this.store,
      writeBehind: this.store,
      lockout: new Lockout(),
      limits: this.limits,
      clocks: { steadyMs: () => this.nowMs(), wallMs: () => this.nowMs() },
      log: {
        error: (fields: { err?: unknown }, message: string) =>
          this.watcher.logged(message, fields.err),
      } as never,
      timer: {
        now: () => clock.nowMs(),
        every: (ms, fn) => {
          let next: Happening;
          const fire = (): void => {
            if (!alive()) return;
            next = clock.after(ms, fire);
            fn();
          };
          next = clock.after(ms, fire);
          return () => clock.cancel(next);
        },
        after: (ms, fn) => {
          const once = clock.after(ms, () => {
            if (!alive()) return;
            fn();
            this.watcher.stir();
          });
          return () => clock.cancel(once);
        },
        soon: (fn) => {
          clock.after(0, () => {
            if (!alive()) return;
            fn();
            this.watcher.stir();
          });
        },
      },
    });
    this.isUp = true;
    this.watcher.trace("relay", "relay", "starts");
  }

  get hub() {
    return this.running?.hub ?? null;
  }

  /** Drains, stays down for `awayMs`, then starts again. */
  restart(awayMs: number): void {
    const { running, life } = this;
    if (running === null) return;
    this.watcher.trace("relay", "relay", "drains");
    running.drain(DRAIN_TIMEOUT_MS).then(() => {
      if (this.life !== life) return;
      this.watcher.drained();
      this.end();
      this.clock.after(awayMs, () => this.start());
    });
    this.watcher.stir();
  }

  /** Crashes, and loses what its store had not flushed. */
  crash(awayMs: number): void {
    if (this.running === null) return;
    this.watcher.trace("relay", "relay", "crashes");
    this.end();
    this.store.crash();
    this.clock.after(awayMs, () => this.start());
  }

  private end(): void {
    this.life += 1;
    this.running?.stop();
    this.running = null;
    this.isUp = false;
    for (const wire of this.wires) wire.relayDied();
    this.wires.clear();
  }

  // ---- what the network tells it

  hasRoom(address: string): boolean {
    return this.running?.hub.hasRoom(address) ?? false;
  }

  accept(wire: Wire): Connection {
    this.wires.add(wire);
    const { hub } = this.running as RunningHub;
    const connection = hub.connect(new RelayEnd(wire), wire.peer.address, this.nowMs());
    wires.set(connection, wire);
    return connection;
  }

  receive(connection: Connection, text: string, frame: Uint8Array): void {
    try {
      this.running?.hub.receive(connection, text, frame, this.nowMs());
    } catch (error) {
      this.watcher.logged("the hub failed on a message", error);
      connection.link.close(1011, "INTERNAL");
    }
  }

  closed(connection: Connection): void {
    const wire = wires.get(connection);
    if (wire !== undefined) this.wires.delete(wire);
    this.running?.hub.closed(connection, this.nowMs());
  }

  /** Bytes that wait for their peers. */
  queueBytes(): number {
    let bytes = 0;
    for (const wire of this.wires) bytes += wire.relayQueued();
    return bytes;
  }

  meddle(wire: Wire, text: string): readonly string[] {
    return this.meddler === null ? [text] : this.meddler(wire, text);
  }
}

const wires = new WeakMap<Connection, Wire>();
