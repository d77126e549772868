/** The results of a run's calls: counts, latencies and failures by code. */
import type { CallError } from "@blindrelay/client-sdk";
import { getOrMake } from "../base/maps.ts";
import type { Question } from "../devices/kinds.ts";
import type { Selection } from "../scenario/thresholds.ts";
import { HeatMap } from "./heat.ts";
import { LatencyBuckets, LatencyRecorder } from "./latency.ts";
import { Outliers } from "./outliers.ts";
import type { FailureCount, Outlier } from "./report.ts";

export interface KindTally {
  calls: number;
  ok: number;
  latency: LatencyRecorder;
}

/** Of all calls, or of those that thresholds choose. */
interface Outcomes {
  sent: number;
  ok: number;
  failed: number;
  wrong: number;
  /** A failed call took until it failed. */
  latency: LatencyRecorder;
}

/** A call without an outcome yet. */
export interface OpenCall {
  device: string;
  kind: KindTally;
  /** Those that count it, besides the tally itself. */
  chosenBy: readonly Outcomes[];
  /** When it was meant to begin, in microseconds. */
  fromUs: number;
  isFirst: boolean;
}

const NOBODY: readonly Outcomes[] = [];

interface Chosen extends Outcomes {
  readonly where: Selection;
  /** When the calls begin, or were meant to, in microseconds. */
  readonly fromUs: number;
  readonly untilUs: number;
}

const keyOf = ({ group, method, phase }: Selection): string =>
  JSON.stringify([group, method, phase]);

/** The outcomes of the calls so far. */
export class Tally implements Outcomes {
  sent = 0;
  /** Calls of sequences that ended before them. */
  skipped = 0;
  /** Turns of loads that go on. */
  turns = 0;
  ok = 0;
  failed = 0;
  wrong = 0;
  readonly latency = new LatencyRecorder();
  readonly first = new LatencyRecorder();
  /** How much later than intended calls began. */
  readonly lateness = new LatencyRecorder();
  readonly open = new Set<OpenCall>();
  private readonly kinds = new Map<string, KindTally>();
  private readonly chosen = new Map<string, Chosen>();
  readonly buckets = new LatencyBuckets();
  private readonly codes = new Map<string, FailureCount>();
  readonly heatMap = new HeatMap();
  private readonly devices = new Outliers();
  private readonly nowUs: () => number;
  private firstUs = Number.POSITIVE_INFINITY;
  private lastUs = 0;

  /** `nowUs`: microseconds since the start of the run. */
  constructor(nowUs: () => number) {
    this.nowUs = nowUs;
  }

  /** Counts these calls apart, too. `fromUs`, `untilUs`: of their phase. Before the first call. */
  choose(where: Selection, fromUs: number, untilUs: number): void {
    const none = { sent: 0, ok: 0, failed: 0, wrong: 0 };
    const latency = new LatencyRecorder();
    this.chosen.set(keyOf(where), { where, fromUs, untilUs, ...none, latency });
  }

  /** Null: there are no such calls so far. */
  outcomes(where: Selection | null): Outcomes | null {
    if (where === null) return this;
    const outcomes = this.chosen.get(keyOf(where));
    return outcomes === undefined || outcomes.sent === 0 ? null : outcomes;
  }

  private whoseAre(group: string, method: string, atUs: number): readonly Outcomes[] {
    if (this.chosen.size === 0) return NOBODY;
    return [...this.chosen.values()].filter(
      ({ where, fromUs, untilUs }) =>
        (where.group ?? group) === group &&
        (where.method ?? method) === method &&
        fromUs <= atUs &&
        atUs < untilUs,
    );
  }

  /** A call begins now. `fromUs`: when it was meant to, if it had a time of its own. */
  asked(
    { device, group, method }: { device: string; group: string; method: string },
    isFirst: boolean,
    fromUs?: number,
  ): OpenCall {
    const nowUs = this.nowUs();
    const kind = this.kind(group);
    const chosenBy = this.whoseAre(group, method, fromUs ?? nowUs);
    this.sent += 1;
    kind.calls += 1;
    for (const outcomes of chosenBy) outcomes.sent += 1;
    this.firstUs = Math.min(this.firstUs, nowUs);
    if (fromUs !== undefined) this.lateness.record(nowUs - fromUs);
    const call = { device, kind, chosenBy, fromUs: fromUs ?? nowUs, isFirst };
    this.open.add(call);
    return call;
  }

  fail(call: OpenCall, code: string, example: string): void {
    this.end(call);
    for (const outcomes of [this, ...call.chosenBy]) {
      outcomes.failed += 1;
      if (code === WRONG_ANSWER) outcomes.wrong += 1;
    }
    this.devices.record(call.device, null);
    getOrMake(this.codes, code, () => ({ code, count: 0, example })).count += 1;
  }

  succeed(call: OpenCall): void {
    const us = this.end(call);
    const { device, kind, isFirst } = call;
    this.ok += 1;
    for (const outcomes of call.chosenBy) outcomes.ok += 1;
    this.devices.record(device, us);
    this.heatMap.record(this.nowUs() / 1e6, us);
    kind.ok += 1;
    this.buckets.record(us, isFirst);
  }

  /** The run is over: what is still open has failed. */
  endOpen(): void {
    for (const call of this.open) {
      this.fail(call, "OPEN_AT_END", `a call to ${call.device} had no outcome when the run ended`);
    }
  }

  /** The call ended: so it must, or it has failed. Returns its code, and whether it is right. */
  judge(
    call: OpenCall,
    { method, right, fails }: Pick<Question, "method" | "right" | "fails">,
    result: unknown,
    error: CallError | null,
  ): { code: string | null; isRight: boolean } {
    const code = error === null ? null : codeOf(error);
    const isRight = fails === undefined ? code === null && right(result) : covers(fails, code);
    if (isRight) this.succeed(call);
    else if (error !== null) this.fail(call, code as string, error.message);
    else {
      const shown = JSON.stringify(result)?.slice(0, 200);
      const but = fails === undefined ? "" : `, and had to fail with ${fails}`;
      this.fail(call, WRONG_ANSWER, `${call.device} answered ${method} with ${shown}${but}`);
    }
    return { code, isRight };
  }

  /** A sequence begins; until it ends, more calls follow. */
  beginTurn(): void {
    this.turns += 1;
  }

  /** `skipped`: so many of its calls are not made, since one before them failed. */
  endTurn(skipped: number): void {
    this.turns -= 1;
    this.skipped += skipped;
  }

  private end(call: OpenCall): number {
    this.open.delete(call);
    this.lastUs = this.nowUs();
    const us = this.lastUs - call.fromUs;
    this.latency.record(us);
    for (const { latency } of call.chosenBy) latency.record(us);
    call.kind.latency.record(us);
    if (call.isFirst) this.first.record(us);
    return us;
  }

  /** Right answers a second, from the first call to the last outcome. */
  callsPerSecond(): number {
    const seconds = (this.lastUs - this.firstUs) / 1e6;
    return seconds > 0 ? Number((this.ok / seconds).toFixed(1)) : 0;
  }

  kind(name: string): KindTally {
    return getOrMake(this.kinds, name, () => ({ calls: 0, ok: 0, latency: new LatencyRecorder() }));
  }

  outliers(): Outlier[] {
    return this.devices.worst(this.latency.summary()?.p50 ?? 0);
  }

  /** Most frequent first; of `planned` calls, those that were never made too. */
  failures(planned: number): FailureCount[] {
    const missing = planned - this.sent;
    const unmade = {
      code: "NOT_MADE",
      count: missing,
      example:
        "the run ended, or earlier calls failed or took too long, before these could be made",
    };
    return [...this.codes.values(), ...(missing > 0 ? [unmade] : [])].sort(
      (a, b) => b.count - a.count,
    );
  }
}

export const WRONG_ANSWER = "WRONG_ANSWER";

/** As scenarios and reports write it: with the device's own code. */
export const codeOf = ({ code, remote }: CallError): string =>
  remote === undefined ? code : `${code} ${remote.code}`;

/** Whether `written` is about calls that end with `code`: REMOTE covers `REMOTE 7`. */
export const covers = (written: string, code: string | null): boolean =>
  written === code || written === code?.split(" ")[0];
