/**
 * The engine between the nodes of a virtual cluster, modelled on core NATS: subjects, delivery at
 * most once, in the order in which a node published, and a report if there is no subscriber. Delay,
 * loss and outages are up to faults.
 *
 *   node --publish--> latency --> server: subscribers? --> latency --> node
 */
import type { Delivery, Transport } from "@blindrelay/relay-server/cluster";
import { getOrMake } from "../base/maps.ts";
import type { Stream } from "../base/random-streams.ts";
import type { Clock } from "./clock.ts";

const LATENCY_US = 300;
const JITTER_US = 200;
/** The relay's client pings each second, and gives the server up after two unanswered pings. */
const NOTICED_US = 2_500_000;
/** It then retries after this long plus a random time of up to as long. */
const RECONNECT_MS = 500;

const NOTHING = new Uint8Array();

interface Subscription {
  readonly link: BusLink;
  readonly subject: string;
  readonly take: (delivery: Delivery) => void;
  isOpen: boolean;
}

export interface BusWatcher {
  trace(what: string, who: string, text: string): void;
  /** Receives the bytes that pass. */
  carried(payload: Uint8Array): void;
  stir(): void;
}

export class VirtualBus {
  readonly clock: Clock;
  readonly watcher: BusWatcher;
  latencyUs = LATENCY_US;
  jitterUs = JITTER_US;
  /** Share of the deliveries that are lost, in parts of 2^32. */
  loss = 0;
  /** The same for those that arrive twice. */
  repeats = 0;
  private away = 0;
  private readonly draws: Stream;
  private readonly links = new Set<BusLink>();
  /** The server's subscriptions, by subject. */
  private readonly listeners = new Map<string, Set<Subscription>>();

  constructor(clock: Clock, draws: Stream, watcher: BusWatcher) {
    this.clock = clock;
    this.draws = draws;
    this.watcher = watcher;
  }

  /** `run`: handles what arrives, later if the node is frozen. */
  open(name: string, run: (fn: () => void) => void): BusLink {
    const link = new BusLink(this, name, run);
    this.links.add(link);
    if (this.away > 0) link.lose();
    return link;
  }

  /** The server is gone, and every node notices. */
  goAway(): void {
    this.away += 1;
    this.listeners.clear();
    for (const link of this.links) link.lose();
  }

  comeBack(): void {
    this.away -= 1;
    for (const link of this.links) link.reconnectSoon();
  }

  get isThere(): boolean {
    return this.away === 0;
  }

  // ---- called by its links

  wayUs(): number {
    return this.latencyUs + (this.jitterUs > 0 ? this.draws.below(this.jitterUs + 1) : 0);
  }

  pauseMs(): number {
    return RECONNECT_MS + this.draws.below(RECONNECT_MS);
  }

  listen(subscription: Subscription): void {
    getOrMake(this.listeners, subscription.subject, () => new Set()).add(subscription);
  }

  forget(subscription: Subscription): void {
    const all = this.listeners.get(subscription.subject);
    all?.delete(subscription);
    if (all?.size === 0) this.listeners.delete(subscription.subject);
  }

  remove(link: BusLink): void {
    this.links.delete(link);
  }

  /** The server received a message. */
  route(from: BusLink, subject: string, payload: Uint8Array, replyTo: string | null): void {
    this.watcher.carried(payload);
    const wild = `${subject.slice(0, subject.lastIndexOf("."))}.*`;
    const found = [...(this.listeners.get(subject) ?? []), ...(this.listeners.get(wild) ?? [])];
    for (const subscription of found) {
      if (this.loss > 0 && this.draws.next() < this.loss) {
        this.watcher.trace("bus lost", subscription.link.name, subject);
        continue;
      }
      const delivery = { subject, payload, replyTo, nobody: false };
      subscription.link.down(subscription, delivery);
      if (this.repeats > 0 && this.draws.next() < this.repeats) {
        subscription.link.down(subscription, delivery);
      }
    }
    if (found.length === 0 && replyTo !== null) {
      const heard = `${replyTo.slice(0, replyTo.lastIndexOf("."))}.*`;
      const nobody = { subject: replyTo, payload: NOTHING, replyTo: null, nobody: true };
      for (const subscription of this.listeners.get(heard) ?? []) {
        if (subscription.link === from) from.down(subscription, nobody);
      }
    }
  }
}

/** One node's connection to the server. */
export class BusLink implements Transport {
  isUp = true;
  readonly backlogBytes = 0;
  readonly name: string;
  private readonly bus: VirtualBus;
  private readonly run: (fn: () => void) => void;
  private readonly subscriptions = new Set<Subscription>();
  private listener: () => void = () => undefined;
  /** Counts connections; what was in transit on an earlier one is lost. */
  private life = 0;
  private partitions = 0;
  private parked: (() => void)[] = [];
  private lastUpUs = 0;
  private lastDownUs = 0;
  private isClosed = false;

  constructor(bus: VirtualBus, name: string, run: (fn: () => void) => void) {
    this.bus = bus;
    this.name = name;
    this.run = run;
  }

  publish(subject: string, payload: Uint8Array, replyTo?: string): void {
    if (!this.isUp) return;
    this.up(() => this.bus.route(this, subject, payload, replyTo ?? null));
  }

  subscribe(subject: string, take: (delivery: Delivery) => void): () => void {
    const subscription = { link: this, subject, take, isOpen: true };
    this.subscriptions.add(subscription);
    if (this.isUp) this.up(() => this.bus.listen(subscription));
    return () => {
      subscription.isOpen = false;
      this.subscriptions.delete(subscription);
      if (this.isUp) this.up(() => this.bus.forget(subscription));
    };
  }

  onUp(listener: () => void): void {
    this.listener = listener;
  }

  /** What was published before is still sent. */
  async close(): Promise<void> {
    this.up(() => this.forgetAll());
    this.isUp = false;
    this.isClosed = true;
    this.bus.remove(this);
  }

  /** The process is gone; its kernel ends the connection. */
  die(): void {
    this.life += 1;
    this.isUp = false;
    this.isClosed = true;
    this.forgetAll();
    this.bus.remove(this);
  }

  // ---- called by faults

  /** Nothing gets through; after a while this node gives the connection up. */
  partition(): void {
    this.partitions += 1;
    const { life } = this;
    this.bus.clock.at(this.bus.clock.nowUs + NOTICED_US, noticed, this, life);
  }

  heal(): void {
    this.partitions -= 1;
    if (this.partitions > 0 || this.isClosed) return;
    const { parked } = this;
    this.parked = [];
    for (const go of parked) go();
    if (!this.isUp) this.reconnectSoon();
  }

  giveUp(life: number): void {
    if (this.partitions > 0 && this.life === life && this.isUp) this.lose();
  }

  /** The connection is lost, and this node knows. */
  lose(): void {
    if (!this.isUp) return;
    this.life += 1;
    this.isUp = false;
    this.parked = [];
    this.bus.watcher.trace("bus", this.name, "away");
  }

  reconnectSoon(): void {
    const { life, bus } = this;
    bus.clock.after(bus.pauseMs(), () => {
      if (this.isUp || this.isClosed || this.life !== life) return;
      if (!bus.isThere || this.partitions > 0) return;
      this.isUp = true;
      bus.watcher.trace("bus", this.name, "back");
      this.forgetAll();
      for (const subscription of this.subscriptions) bus.listen(subscription);
      this.run(() => this.listener());
      bus.watcher.stir();
    });
  }

  // ---- in transit

  down(subscription: Subscription, delivery: Delivery): void {
    const { bus } = this;
    if (!this.isUp) return; // the server may not know yet
    this.lastDownUs = Math.max(this.lastDownUs, bus.clock.nowUs + bus.wayUs());
    this.pass(this.lastDownUs, () =>
      this.run(() => {
        if (!subscription.isOpen || this.isClosed) return;
        subscription.take(delivery);
        bus.watcher.stir();
      }),
    );
  }

  private up(act: () => void): void {
    const { bus } = this;
    this.lastUpUs = Math.max(this.lastUpUs, bus.clock.nowUs + bus.wayUs());
    this.pass(this.lastUpUs, act);
  }

  /** Arrives if the connection still exists; late after a partition that nobody noticed. */
  private pass(atUs: number, act: () => void): void {
    const { life } = this;
    const arrive = (): void => {
      if (this.life !== life) return;
      if (this.partitions > 0) this.parked.push(arrive);
      else act();
    };
    this.bus.clock.at(atUs, arrive, null, null);
  }

  private forgetAll(): void {
    for (const subscription of this.subscriptions) this.bus.forget(subscription);
  }
}

const noticed = (link: BusLink, life: number): void => link.giveUp(life);
