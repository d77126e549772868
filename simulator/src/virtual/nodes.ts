/**
 * The relay as its peers see it: a single one, or several nodes behind a load balancer, which
 * assigns each new connection to the next node that is ready.
 */
import type { Connection, HubLimits, HubStats } from "@blindrelay/relay-server/core";
import type { Stream } from "../base/random-streams.ts";
import { type BusWatcher, VirtualBus } from "./bus.ts";
import type { Clock } from "./clock.ts";
import type { Records } from "./hostile.ts";
import type { Meddler, Station, Wire } from "./net.ts";
import { type RelayWatcher, VirtualRelay } from "./relay.ts";
import type { RelayStore } from "./relay-store.ts";
import type { ModelStore } from "./store.ts";

export interface NodesParts {
  readonly count: number;
  readonly clock: Clock;
  readonly store: RelayStore;
  /** The same store, if several nodes share it; null: there is one node. */
  readonly shared: ModelStore | null;
  readonly watcher: RelayWatcher & BusWatcher;
  readonly limits: Partial<HubLimits>;
  /** For the bus. */
  readonly draws: Stream;
}

/** Total figures of the running nodes. */
export interface NodesStats {
  readonly connections: HubStats["connections"];
  readonly bindings: number;
  readonly queueBytes: number;
  readonly counters: {
    readonly forwardedToAgents: number;
    readonly forwardedToClients: number;
    readonly dropped: ReadonlyMap<string, number>;
  };
}

export class VirtualNodes implements Station {
  readonly nodes: readonly VirtualRelay[];
  /** Null: there is one node. */
  readonly bus: VirtualBus | null;
  /** Null: the relay is honest. */
  meddler: Meddler | null = null;
  /** What a relay keeps that will replay it. */
  records: Records | null = null;
  private readonly homes = new WeakMap<Connection, VirtualRelay>();
  private turn = 0;

  constructor({ count, clock, store, shared, watcher, limits, draws }: NodesParts) {
    const bus = shared === null ? null : new VirtualBus(clock, draws, watcher);
    if (shared !== null) shared.numbersLogins = true;
    this.bus = bus;
    this.nodes = Array.from(
      { length: count },
      (_, at) =>
        new VirtualRelay(
          clock,
          store,
          watcher,
          limits,
          bus === null || shared === null ? null : { number: at + 1, bus, store: shared },
        ),
    );
  }

  start(): void {
    for (const node of this.nodes) node.start();
  }

  /** Numbered from 1. */
  node(number: number): VirtualRelay {
    return this.nodes[number - 1] as VirtualRelay;
  }

  nowMs(): number {
    return this.node(1).nowMs();
  }

  /** Whether it is online on some node. */
  isOnline(agentId: string): boolean {
    return this.nodes.some(({ hub }) => hub?.isOnline(agentId) ?? false);
  }

  /** Handled by the node that a REST request reaches. */
  revokeAgent(agentId: string): void {
    const node = this.pick() ?? this.nodes.find(({ isUp }) => isUp);
    node?.revokeAgent(agentId);
  }

  /** Null: no node is running. */
  stats(): NodesStats | null {
    const all = this.nodes.flatMap(({ hub }) => (hub === null ? [] : [hub.stats()]));
    const [first, ...others] = all;
    if (first === undefined || others.length === 0) return first ?? null;
    const connections = { ...first.connections };
    const dropped = new Map<string, number>();
    let [bindings, queueBytes, forwardedToAgents, forwardedToClients] = [0, 0, 0, 0];
    for (const one of all) {
      if (one !== first) {
        for (const kind of Object.keys(connections) as (keyof typeof connections)[]) {
          connections[kind] += one.connections[kind];
        }
      }
      bindings += one.bindings;
      queueBytes += one.queueBytes;
      forwardedToAgents += one.counters.forwardedToAgents;
      forwardedToClients += one.counters.forwardedToClients;
      for (const [reason, count] of one.counters.dropped) {
        dropped.set(reason, (dropped.get(reason) ?? 0) + count);
      }
    }
    return {
      connections,
      bindings,
      queueBytes,
      counters: { forwardedToAgents, forwardedToClients, dropped },
    };
  }

  // ---- called by the network

  get isUp(): boolean {
    return this.nodes.some((node) => node.isUp);
  }

  hasRoom(address: string): boolean {
    return this.pick()?.hasRoom(address) ?? false;
  }

  accept(wire: Wire): Connection {
    const node = this.pick() as VirtualRelay;
    this.turn += 1;
    const connection = node.accept(wire);
    this.homes.set(connection, node);
    return connection;
  }

  receive(connection: Connection, text: string, frame: Uint8Array): void {
    this.homes.get(connection)?.receive(connection, text, frame);
  }

  closed(connection: Connection): void {
    this.homes.get(connection)?.closed(connection);
  }

  queues(connection: Connection): void {
    this.homes.get(connection)?.queues(connection);
  }

  meddle(wire: Wire, text: string): readonly string[] {
    this.records?.add(wire.peer.id, text);
    return this.meddler === null ? [text] : this.meddler(wire, text);
  }

  /** The next node that is ready; if there is none, one that drains. */
  private pick(): VirtualRelay | undefined {
    const ready = this.nodes.filter((node) => node.isReady && !node.isFrozen);
    const usable =
      ready.length > 0 ? ready : this.nodes.filter((node) => node.isUp && !node.isFrozen);
    return usable[this.turn % Math.max(1, usable.length)];
  }
}
