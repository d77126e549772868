/**
 * What the bundled relay's metrics add to a run: gauges and totals across all its restarts, and
 * invariants for them. An external relay's metrics cannot be read; its figures stay unknown.
 */
import { MAX_BINDINGS_PER_CONNECTION, OUTBOX_BYTES } from "@blindrelay/protocol";
import { QUEUED_BYTES_PER_USER } from "@blindrelay/relay-server/core";
import type { Measurements } from "../report/measure.ts";
import type { RelayUsage } from "./metrics.ts";

/** A queue may exceed its limit by one message. */
const SLACK_BYTES = 65_536;

export class RelayFigures {
  private readonly measured: Measurements;
  private readonly violate: (what: string) => void;
  /** Since the current start. */
  private first: RelayUsage | null = null;
  private last: RelayUsage | null = null;
  private lives = 0;
  /** Totals before the current start. */
  private forwardedBefore = 0;
  private readonly droppedBefore = new Map<string, number>();

  /** `violate`: a queue or table is over its limit. */
  constructor(measured: Measurements, violate: (what: string) => void) {
    this.measured = measured;
    this.violate = violate;
  }

  /** A relay was started: its counters begin at 0. */
  started(): void {
    this.lives += 1;
    this.forwardedBefore = this.forwarded;
    for (const { reason, count } of this.dropped) this.droppedBefore.set(reason, count);
    this.first = null;
    this.last = null;
  }

  heard(usage: RelayUsage): void {
    this.first ??= usage;
    this.last = usage;
    const { measured } = this;
    const { connections, bindings, queueBytes } = usage;
    measured.gaugeAt("relay.connections", connections);
    measured.gaugeAt("relay.bindings", bindings);
    measured.gaugeAt("relay.queue_bytes", queueBytes);
    measured.set("relay.forwarded", this.forwarded);
    measured.set(
      "relay.dropped",
      this.dropped.reduce((sum, { count }) => sum + count, 0),
    );
    const ofConnections = connections * (OUTBOX_BYTES + SLACK_BYTES);
    // A live run uses one account.
    if (queueBytes > Math.min(ofConnections, 2 * QUEUED_BYTES_PER_USER + SLACK_BYTES)) {
      this.violate(`${queueBytes} bytes are queued for ${connections} connections`);
    }
    if (bindings > connections * MAX_BINDINGS_PER_CONNECTION) {
      this.violate(`${connections} connections have ${bindings} bindings`);
    }
  }

  get dropped(): { reason: string; count: number }[] {
    const totals = new Map(this.droppedBefore);
    for (const [reason, count] of this.last?.dropped ?? []) {
      totals.set(reason, (totals.get(reason) ?? 0) + count);
    }
    return [...totals].map(([reason, count]) => ({ reason, count }));
  }

  /** What this many agents have added to its memory; null if it was restarted. */
  rssBytesPerAgent(agents: number): number | null {
    const { first, last } = this;
    if (this.lives !== 1 || first === null || last === null || agents === 0) return null;
    return Math.max(0, Math.round((last.rssBytes - first.rssBytes) / agents));
  }

  /** Since its last start; null if it forwarded nothing. */
  cpuUsPerMessage(): number | null {
    const { first, last } = this;
    if (first === null || last === null || last.forwarded === first.forwarded) return null;
    return (last.cpuUs - first.cpuUs) / (last.forwarded - first.forwarded);
  }

  private get forwarded(): number {
    return this.forwardedBefore + (this.last?.forwarded ?? 0);
  }
}
