/**
 * A relay of the virtual world: the real hub with its driver, over virtual time and a model of its
 * store. A node of a cluster also has the real cluster logic, over a virtual bus.
 */
import { MAX_MESSAGE_BYTES } from "@blindrelay/protocol";
import { Cluster, type Notice, UsernameLockout } from "@blindrelay/relay-server/cluster";
import {
  type Connection,
  type HubLimits,
  type HubParts,
  Lockout,
  type RunningHub,
  runHub,
} from "@blindrelay/relay-server/core";
import type { BusLink, VirtualBus } from "./bus.ts";
import type { Clock, Happening } from "./clock.ts";
import { relayEnd, type Wire } from "./net.ts";
import { NodeStore } from "./node-store.ts";
import type { RelayStore } from "./relay-store.ts";
import type { ModelStore } from "./store.ts";

const DRAIN_TIMEOUT_MS = 15_000;
/** The same for a cluster node (relay-server/src/server.ts), and its `--drain-delay`. */
const MOVE_TIMEOUT_MS = 27_000;
const DRAIN_DELAY_MS = 2000;
/** How often a node sends hello and checks for notices. */
const TICK_MS = 1000;

export interface RelayWatcher {
  logged(message: string, error: unknown): void;
  stir(): void;
  trace(what: string, who: string, text: string): void;
  /** All peers got `RESTARTING`. */
  drained(): void;
  /** It was down, and knows nothing of what its peers told each other. */
  startedAgain(): void;
}

/** What makes a relay a node of a cluster. */
export interface Membership {
  /** Numbered from 1. */
  readonly number: number;
  readonly bus: VirtualBus;
  readonly store: ModelStore;
}

/** The parts of a cluster's node between a start and its end. */
interface RunningNode {
  readonly cluster: Cluster;
  readonly link: BusLink;
  readonly store: NodeStore;
  /** What all nodes share. */
  readonly common: ModelStore;
  take(notice: Notice): void;
}

export class VirtualRelay {
  private readonly store: RelayStore;
  readonly name: string;
  /** False between an end and the next start. */
  isUp = false;
  /** What the load balancer sees. */
  isReady = false;
  /** It was asked to drain; at first it may still be ready. */
  private isStopping = false;
  /** How far its wall clock is ahead. */
  skewMs = 0;
  /** Connections of the running hub, by their wires. */
  private running: RunningHub | null = null;
  private readonly clock: Clock;
  private readonly watcher: RelayWatcher;
  private readonly limits: Partial<HubLimits>;
  private readonly wires = new Set<Wire>();
  /** Timers of an ended hub must not fire. */
  private life = 0;
  private readonly membership: Membership | null;
  private node: RunningNode | null = null;
  /** What happens to a frozen process waits here; null: it runs. */
  private frozen: (() => void)[] | null = null;
  /** Faults that freeze it. */
  private freezes = 0;

  constructor(
    clock: Clock,
    store: RelayStore,
    watcher: RelayWatcher,
    limits: Partial<HubLimits>,
    membership: Membership | null = null,
  ) {
    this.clock = clock;
    this.store = store;
    this.watcher = watcher;
    this.limits = limits;
    this.membership = membership;
    this.name = membership === null ? "relay" : `relay-${membership.number}`;
  }

  nowMs(): number {
    return this.clock.epochMs + this.clock.nowMs();
  }

  wallMs(): number {
    return this.nowMs() + this.skewMs;
  }

  start(): void {
    this.life += 1;
    this.node = this.membership === null ? null : this.join(this.membership);
    const { store, node } = this;
    this.running = runHub({
      lookups: node?.store ?? store,
      writeBehind: node?.store ?? store,
      lockout: this.lockout,
      limits: this.limits,
      clocks: { steadyMs: () => this.nowMs(), wallMs: () => this.wallMs() },
      log: this.log as never,
      timer: this.timer(),
      ...(node === null
        ? {}
        : { bus: node.cluster, reserve: (hash: string) => node.store.reserve(hash) }),
    });
    this.isUp = true;
    this.isReady = true;
    if (node !== null) this.runNode(node, this.running);
    this.watcher.trace("relay", this.name, "starts");
  }

  private lockout = new Lockout();
  private readonly log = {
    error: (fields: { err?: unknown }, message: string) => this.watcher.logged(message, fields.err),
  };

  /** Timers between this start and its end. */
  private timer(): NonNullable<HubParts["timer"]> {
    const { clock, life } = this;
    const act = (fn: () => void): void => {
      if (this.life !== life) return;
      this.run(() => {
        if (this.life === life) fn();
      });
    };
    return {
      now: () => clock.nowMs(),
      every: (ms, fn) => {
        let next: Happening;
        const fire = (): void =>
          act(() => {
            next = clock.after(ms, fire);
            fn();
          });
        next = clock.after(ms, fire);
        return () => clock.cancel(next);
      },
      after: (ms, fn) => {
        const once = clock.after(ms, () =>
          act(() => {
            fn();
            this.watcher.stir();
          }),
        );
        return () => clock.cancel(once);
      },
      soon: (fn) => {
        clock.after(0, () =>
          act(() => {
            fn();
            this.watcher.stir();
          }),
        );
      },
    };
  }

  // ---- nodes of a cluster

  private join({ number, bus, store }: Membership): RunningNode {
    const run = (fn: () => void): void => this.run(fn);
    const node = `node${number}-${this.life}`;
    const link = bus.open(node, run);
    const { after } = this.timer();
    const cluster = new Cluster({
      transport: link,
      node,
      prefix: "sim",
      maxMessageBytes: this.limits.maxMessageBytes ?? MAX_MESSAGE_BYTES,
      nowMs: () => this.nowMs(),
      log: this.log,
      after,
    });
    const known = new Set<number>();
    let last = store.lastNotice;
    const take = (notice: Notice): void => {
      if (notice.seq <= last || known.has(notice.seq)) return;
      known.add(notice.seq);
      while (known.delete(last + 1)) last += 1;
      if (notice.kind !== "end_agent") throw new Error(`no node acts on ${notice.kind}`);
      this.running?.hub.endAgent(notice.subject, "REVOKED", this.nowMs());
    };
    return { cluster, link, store: new NodeStore(store, run), common: store, take };
  }

  private runNode({ cluster, store, common, take }: RunningNode, { hub }: RunningHub): void {
    const { every } = this.timer();
    const { life } = this;
    let next = common.lastNotice;
    const look = (): void => {
      store.noticesAfter(next).then(
        (notices) => {
          if (this.life !== life) return;
          for (const notice of notices) take(notice);
          next = Math.max(next, notices.at(-1)?.seq ?? 0);
        },
        () => undefined,
      );
    };
    const hear = (notices: readonly Notice[]): void => {
      for (const notice of notices) take(notice);
      look();
    };
    const shared = {
      notices: { hear },
      lockout: this.lockout,
      usernameLockout: new UsernameLockout(),
      isReady: () => this.isReady,
    };
    cluster.attach(hub, shared);
    every(TICK_MS, () => {
      cluster.tick();
      void store.flush();
      look();
      this.watcher.stir();
    });
  }

  /** Does it now, or once the process runs again. */
  private run(fn: () => void): void {
    if (this.frozen === null) fn();
    else this.frozen.push(fn);
  }

  get isFrozen(): boolean {
    return this.frozen !== null;
  }

  /**
   * Freezes the process: none of its code runs, and its links and its bus do not notice. The result
   * ends that.
   */
  freeze(): () => void {
    if (!this.isUp) return () => undefined;
    const { life } = this;
    this.freezes += 1;
    if (this.freezes === 1) {
      this.watcher.trace("relay", this.name, "freezes");
      // No ping comes any more, and peers notice.
      for (const wire of this.wires) {
        wire.isFrozen = true;
        wire.wake();
      }
      this.frozen = [];
    }
    return () => {
      if (this.life !== life) return;
      this.freezes -= 1;
      if (this.freezes === 0) this.thaw();
    };
  }

  private thaw(): void {
    const frozen = this.frozen ?? [];
    this.watcher.trace("relay", this.name, "thaws");
    this.frozen = null;
    for (const wire of this.wires) wire.isFrozen = false;
    for (const fn of frozen) fn();
    this.watcher.stir();
  }

  /** Its connection to the bus, while it runs. */
  get busLink(): BusLink | null {
    return this.node?.link ?? null;
  }

  /** Revokes an agent's token, as by a request to this node. */
  revokeAgent(agentId: string): void {
    const { node, store } = this;
    if (node === null) {
      if (!store.endsLinks) this.hub?.endAgent(agentId, "REVOKED", this.nowMs());
      return;
    }
    const notice = node.common.post("end_agent", agentId, this.nowMs());
    this.run(() => {
      node.take(notice);
      node.cluster.post([notice]);
    });
  }

  get hub() {
    return this.running?.hub ?? null;
  }

  /** Drains, stays down for `awayMs`, then starts again. */
  restart(awayMs: number): void {
    const { running, life, node } = this;
    if (running === null || this.isStopping || this.isFrozen) return;
    this.isStopping = true;
    const close = (): void => {
      this.isReady = false;
      this.watcher.trace("relay", this.name, "drains");
    };
    const [timeoutMs, delayMs] =
      node === null ? [DRAIN_TIMEOUT_MS, 0] : [MOVE_TIMEOUT_MS, DRAIN_DELAY_MS];
    running.drain(timeoutMs, { close, delayMs }).then(() => {
      if (this.life !== life) return;
      this.watcher.drained();
      node?.cluster.leaveAll();
      void node?.store.flush();
      void node?.link.close();
      this.end();
      this.startIn(awayMs);
    });
    this.watcher.stir();
  }

  /** Crashes, and loses what was not flushed. */
  crash(awayMs: number): void {
    if (this.running === null) return;
    this.watcher.trace("relay", this.name, "crashes");
    this.node?.link.die();
    this.end();
    if (this.membership === null) this.store.crash();
    this.startIn(awayMs);
  }

  private startIn(awayMs: number): void {
    this.clock.after(awayMs, () => {
      this.start();
      this.watcher.startedAgain();
    });
  }

  private end(): void {
    this.life += 1;
    this.running?.stop();
    this.running = null;
    this.node = null;
    this.frozen = null;
    this.freezes = 0;
    this.lockout = new Lockout();
    this.isUp = false;
    this.isReady = false;
    this.isStopping = false;
    for (const wire of this.wires) wire.relayDied();
    this.wires.clear();
  }

  // ---- called by the network

  hasRoom(address: string): boolean {
    return this.running?.hub.hasRoom(address) ?? false;
  }

  accept(wire: Wire): Connection {
    this.wires.add(wire);
    const { hub } = this.running as RunningHub;
    const connection = hub.connect(relayEnd(wire), wire.peer.address, this.nowMs());
    wires.set(connection, wire);
    return connection;
  }

  receive(connection: Connection, text: string, frame: Uint8Array): void {
    if (this.frozen !== null) {
      this.frozen.push(() => this.receive(connection, text, frame));
      return;
    }
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
    this.run(() => this.running?.hub.closed(connection, this.nowMs()));
  }

  queues(connection: Connection): void {
    this.running?.hub.queues(connection);
  }
}

const wires = new WeakMap<Connection, Wire>();
