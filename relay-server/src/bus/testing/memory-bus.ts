/** For tests: a bus in memory, which delivers what was published when the test says so. */
import type { Delivery, Transport } from "../transport.ts";

interface Subscription {
  readonly side: BusSide;
  readonly subject: string;
  readonly take: (delivery: Delivery) => void;
}

export class MemoryBus {
  readonly subscriptions = new Set<Subscription>();
  /** Kinds of messages that the bus loses without any node noticing. */
  lost: readonly string[] = [];
  /** Whether each message is delivered twice. */
  isDoubling = false;
  /** The kind of each message. */
  readonly sent: string[] = [];
  longestBytes = 0;
  readonly #queue: (() => void)[] = [];

  publish(from: BusSide, subject: string, payload: Uint8Array, replyTo: string | null): void {
    const [kind] = Buffer.from(payload).toString("latin1").split(/[ \n]/) as [string];
    this.sent.push(kind);
    this.longestBytes = Math.max(this.longestBytes, payload.length);
    if (this.lost.includes(kind)) return;
    const deliver = () => {
      const to = this.#listening(subject).filter(({ side }) => side.isUp);
      for (const { side, take } of to) {
        side.hear(() => take({ subject, payload, replyTo, nobody: false }));
      }
      if (to.length > 0 || replyTo === null) return;
      const nobody = { subject: replyTo, payload: new Uint8Array(), replyTo: null, nobody: true };
      for (const { side, take } of this.#listening(replyTo)) if (side === from) take(nobody);
    };
    this.#queue.push(deliver, ...(this.isDoubling ? [deliver] : []));
  }

  #listening(subject: string): Subscription[] {
    return [...this.subscriptions].filter(
      (each) =>
        each.subject === subject ||
        (each.subject.endsWith(".*") && subject.startsWith(each.subject.slice(0, -1))),
    );
  }

  /** Delivers to one node only. */
  hand(to: BusSide, subject: string, payload: Uint8Array): void {
    for (const { side, take } of this.#listening(subject)) {
      if (side === to) take({ subject, payload, replyTo: null, nobody: false });
    }
  }

  /** A node ends, as by SIGKILL. */
  kill(side: BusSide): void {
    side.isFrozen = true;
    for (const each of this.subscriptions) {
      if (each.side === side) this.subscriptions.delete(each);
    }
  }

  /** Delivers everything that was published; false: there was nothing. */
  deliver(): boolean {
    const isBusy = this.#queue.length > 0;
    for (let next = this.#queue.shift(); next !== undefined; next = this.#queue.shift()) next();
    return isBusy;
  }
}

/** One node's side of it. */
export class BusSide implements Transport {
  isUp = true;
  /** Whether the bus drops what this node publishes, as without the permission to. */
  isMute = false;
  backlogBytes = 0;
  isFrozen = false;
  readonly #bus: MemoryBus;
  #unread: (() => void)[] = [];
  #listener = () => {};

  constructor(bus: MemoryBus) {
    this.#bus = bus;
  }

  publish(subject: string, payload: Uint8Array, replyTo?: string): void {
    if (!this.isMute) this.#bus.publish(this, subject, payload, replyTo ?? null);
  }

  subscribe(subject: string, take: (delivery: Delivery) => void): () => void {
    const subscription = { side: this, subject, take };
    this.#bus.subscriptions.add(subscription);
    return () => this.#bus.subscriptions.delete(subscription);
  }

  onUp(listener: () => void): void {
    this.#listener = listener;
  }

  hear(take: () => void): void {
    if (this.isFrozen) this.#unread.push(take);
    else take();
  }

  thaw(): void {
    this.isFrozen = false;
    for (const take of this.#unread.splice(0)) take();
  }

  comeBack(): void {
    this.isUp = true;
    this.#listener();
  }

  async close(): Promise<void> {}
}
