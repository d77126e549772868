/**
 * A bad network around one peer's live links: each message waits, may be changed, and may not get
 * through; links are lost, at both ends or at one. The sockets below are real, and so is the
 * relay's reaction.
 *
 *   core --send--> latency, jitter --> (partition: parked) --> socket
 *   core <--received-- (corrupt) <-- latency, bandwidth <-- (partition: parked) <-- socket
 */
import type { Link, LinkEvents, LinkPort } from "@blindrelay/agent-sdk/ports";
import type { Stream } from "../base/random-streams.ts";
import { overlay } from "../base/temporary-changes.ts";
import type { Fault } from "../scenario/schema.ts";
import { durationMs, shareOf, sizeOf } from "../scenario/units.ts";
import type { RawLink, RawLinkPort } from "./link.ts";

export interface Shape {
  latencyMs: number;
  jitterMs: number;
  /** Towards the peer; 0: unlimited. */
  bytesPerS: number;
  /** Share of the messages in which a character is changed, from 0 to 1. */
  corrupt: number;
}

export const UNSHAPED: Shape = { latencyMs: 0, jitterMs: 0, bytesPerS: 0, corrupt: 0 };

const LOST = 1006;
/** A link that nobody reads is dropped after this long; the relay has ended it long before. */
const GHOST_MS = 120_000;

export class Shaper implements LinkPort {
  /** Faults of one kind may overlap. */
  cuts = 0;
  partitions = 0;
  stalls = 0;
  readonly shape: Shape;
  readonly draws: Stream;
  private readonly base: RawLinkPort;
  /** End changes of the shape, by fault; of equal faults, the first to begin ends first. */
  private readonly ends = new Map<string, (() => void)[]>();
  private readonly links = new Set<ShapedLink>();

  constructor(base: RawLinkPort, normal: Shape, draws: Stream) {
    this.base = base;
    this.shape = { ...normal };
    this.draws = draws;
  }

  connect(url: string, events: LinkEvents): Link {
    const link = new ShapedLink(this, events);
    this.links.add(link);
    link.open(() => this.base.connect(url, link));
    return link;
  }

  forget(link: ShapedLink): void {
    this.links.delete(link);
  }

  /** While this lasts, open links are lost and none can be opened. */
  cut(on: boolean): void {
    this.cuts += on ? 1 : -1;
    if (on) for (const link of [...this.links]) link.lose("the link was lost");
  }

  /** Nothing gets through and neither end notices; what was sent arrives afterwards. */
  partition(on: boolean): void {
    this.partitions += on ? 1 : -1;
    if (this.partitions === 0) for (const link of [...this.links]) link.healed();
  }

  stall(on: boolean): void {
    this.stalls += on ? 1 : -1;
    for (const link of this.links) link.stall(this.stalls > 0);
  }

  /** The peer's ends are gone, and the relay does not notice. */
  halfOpen(): void {
    for (const link of [...this.links]) link.abandon("the link was lost");
  }

  /** The power is lost: neither end is notified. */
  vanish(): void {
    for (const link of [...this.links]) link.abandon(null);
  }

  /** Begins or ends a network fault of a scenario. */
  play(fault: Fault, on: boolean): void {
    switch (fault.kind) {
      case "net.cut":
        return this.cut(on);
      case "net.partition":
        return this.partition(on);
      case "net.slow_reader":
        return this.stall(on);
      case "net.half_open":
        return on ? this.halfOpen() : undefined;
      case "net.delay":
        return this.change(fault, on, {
          latencyMs: durationMs(fault.latency as string),
          jitterMs: durationMs(fault.jitter ?? "0s"),
        });
      case "net.bandwidth":
        return this.change(fault, on, { bytesPerS: sizeOf(fault.bandwidth as string) });
      case "net.corrupt":
        return this.change(fault, on, { corrupt: shareOf(fault.messages as string) });
      default:
        throw new Error(`${fault.kind} is not a fault of the network`);
    }
  }

  private change(fault: Fault, on: boolean, values: Partial<Shape>): void {
    // Faults come from another process, each time as a copy.
    const key = JSON.stringify(fault);
    const ends = this.ends.get(key) ?? [];
    this.ends.set(key, ends);
    if (on) ends.push(overlay(this.shape, values));
    else ends.shift()?.();
  }

  /** One direction, in milliseconds. */
  delayMs(): number {
    const { latencyMs, jitterMs } = this.shape;
    return latencyMs + (jitterMs === 0 ? 0 : this.draws.below(jitterMs + 1));
  }

  changed(text: string): string {
    const { corrupt } = this.shape;
    if (corrupt === 0 || this.draws.fraction() >= corrupt) return text;
    const at = this.draws.below(text.length);
    return text.slice(0, at) + String.fromCharCode(33 + this.draws.below(94)) + text.slice(at + 1);
  }
}

/** What is in transit in one direction, in order. */
class Lane {
  private readonly shaper: Shaper;
  private readonly waiting: { dueMs: number; arrive: () => void }[] = [];
  private lastMs = 0;
  private timer: NodeJS.Timeout | null = null;

  constructor(shaper: Shaper) {
    this.shaper = shaper;
  }

  push(delayMs: number, bytes: number, arrive: () => void): void {
    const { bytesPerS } = this.shaper.shape;
    const nowMs = performance.now();
    const sendingMs = bytesPerS === 0 ? 0 : (bytes * 1000) / bytesPerS;
    this.lastMs = Math.max(nowMs + delayMs, this.lastMs) + sendingMs;
    this.waiting.push({ dueMs: this.lastMs, arrive });
    this.flow();
  }

  /** Delivers what is due. */
  flow(): void {
    if (this.timer !== null) clearTimeout(this.timer);
    this.timer = null;
    while (this.shaper.partitions === 0) {
      const [head] = this.waiting;
      if (head === undefined) return;
      const waitMs = head.dueMs - performance.now();
      if (waitMs > 0) {
        this.timer = setTimeout(() => this.flow(), waitMs);
        return;
      }
      this.waiting.shift();
      head.arrive();
    }
  }

  clear(): void {
    this.waiting.length = 0;
    if (this.timer !== null) clearTimeout(this.timer);
    this.timer = null;
  }
}

class ShapedLink implements Link, LinkEvents {
  private readonly shaper: Shaper;
  private readonly events: LinkEvents;
  private readonly up: Lane;
  private readonly down: Lane;
  private raw: RawLink | null = null;
  /** Not started yet, because the network is cut or partitioned. */
  private pending: (() => RawLink) | null = null;
  private isOver = false;
  private isAbandoned = false;

  constructor(shaper: Shaper, events: LinkEvents) {
    this.shaper = shaper;
    this.events = events;
    this.up = new Lane(shaper);
    this.down = new Lane(shaper);
  }

  open(connect: () => RawLink): void {
    if (this.shaper.cuts > 0) {
      setImmediate(() => this.finish(LOST, "there is no network"));
    } else if (this.shaper.partitions > 0) {
      this.pending = connect;
    } else {
      this.raw = connect();
      if (this.shaper.stalls > 0) this.raw.stall(true);
    }
  }

  healed(): void {
    const { pending } = this;
    this.pending = null;
    if (pending !== null && !this.isOver) this.raw = pending();
    this.up.flow();
    this.down.flow();
  }

  stall(on: boolean): void {
    this.raw?.stall(on);
  }

  lose(reason: string): void {
    this.raw?.abort(LOST, reason);
    this.finish(LOST, reason);
  }

  /** `reason`: reported to the core; null: nothing, because it is gone too. */
  abandon(reason: string | null): void {
    this.isAbandoned = true;
    const { raw } = this;
    if (raw !== null) setTimeout(() => raw.abort(LOST, "abandoned"), GHOST_MS).unref();
    if (reason === null) this.over();
    else this.finish(LOST, reason);
  }

  // ---- called by the core

  send(text: string): void {
    if (this.isOver) return;
    const sent = this.shaper.changed(text);
    this.up.push(this.shaper.delayMs(), 0, () => this.raw?.send(sent));
  }

  close(code: number, reason: string): void {
    if (this.isAbandoned || this.isOver) return;
    const { raw } = this;
    if (raw !== null && this.shaper.partitions === 0) {
      this.up.push(0, 0, () => raw.close(code, reason));
      return;
    }
    // The relay is not notified, or not in time.
    raw?.abort(LOST, reason);
    setImmediate(() => this.finish(code, reason));
  }

  queuedBytes(): number {
    return this.raw?.queuedBytes?.() ?? 0;
  }

  // ---- reported by the socket

  opened(): void {
    this.down.push(this.shaper.delayMs(), 0, () => {
      if (!this.isOver) this.events.opened();
    });
  }

  received(text: string): void {
    if (this.isAbandoned) return;
    const heard = this.shaper.changed(text);
    this.down.push(this.shaper.delayMs(), text.length, () => {
      if (!this.isOver) this.events.received(heard);
    });
  }

  closed(code: number, reason: string): void {
    if (!this.isAbandoned) this.down.push(0, 0, () => this.finish(code, reason));
  }

  private finish(code: number, reason: string): void {
    if (this.isOver) return;
    this.over();
    this.events.closed(code, reason);
  }

  private over(): void {
    this.isOver = true;
    this.up.clear();
    this.down.clear();
    this.shaper.forget(this);
  }
}
