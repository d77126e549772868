/**
 * One command at a time to a device that answers in lines. Pure, over a timer and a write function:
 *
 *   idle     take the next call, send its line              -> waiting
 *   waiting  its answer, its error                          -> idle (the call settles)
 *            it timed out                                   -> quiet
 *   quiet    silence, or long enough: send it again while
 *            it has retries left                            -> waiting, else idle (the call fails)
 *
 * Lines that belong to no command are events. In `quiet` they may be a late answer, so lines that
 * look like one are dropped; if a device can echo a number in its answers ({#}), late answers are
 * recognized reliably.
 */

import { DeviceAway } from "@blindrelay/agent-sdk/bridge";
import type { TimerPort } from "@blindrelay/agent-sdk/ports";
import { type LineCounts, LineReader, nmeaChecksum } from "./line-reader.ts";
import { encodeLine, type LineCommand, type LineMapping } from "./mapping.ts";

const MAX_WAITING = 64;
const MAX_COLLECTED_LINES = 1_000;
/** A device that never falls silent delays us by at most this many times `quiet_ms`. */
const QUIET_LIMIT = 10;
/** No device pauses so long between two bytes of a line: at 110 baud, one takes 91 ms. */
const CUT_MS = 250;
const LAST_TAG = 999;
/** A command is not sent later than this after its call: by then most callers have given up. */
const MAX_WAIT_MS = 30_000;

interface LineHost {
  readonly timer: TimerPort;
  /** Resolves when the port has accepted it. */
  write(bytes: Uint8Array): Promise<void>;
  event(event: string, data: Record<string, unknown>): void;
}

interface LineCounters {
  /** Commands sent, including repetitions. */
  sent: number;
  retried: number;
  timeouts: number;
  /** Lines that matched nothing. */
  unmatched: number;
  /** Lines in the silence after a timeout that may have been late answers. */
  late: number;
}

interface LineCall {
  readonly command: LineCommand;
  readonly params: unknown;
  readonly resolve: (result: unknown) => void;
  readonly reject: (error: Error) => void;
  readonly since: number;
  tries: number;
  tag: string;
  /** What was sent, until it was echoed. */
  line: string;
  lines: Record<string, unknown>[];
  /** What had come before it was sent. */
  before: LineCounts;
}

export class LineEngine {
  readonly counters: LineCounters = { sent: 0, retried: 0, timeouts: 0, unmatched: 0, late: 0 };
  private readonly mapping: LineMapping;
  private readonly host: LineHost;
  private readonly reader: LineReader;
  private readonly waiting: LineCall[] = [];
  private current: LineCall | null = null;
  private state: "idle" | "waiting" | "quiet" = "idle";
  private timer: unknown = null;
  private quietUntil = 0;
  private tags = 0;
  /** When bytes came last. */
  private heardAt = 0;
  private gone: string | null = null;
  /** Whether the command that timed out is sent again after the silence. */
  private repeats = false;
  /** Until then, bytes of a line that was under way when the port opened may come. */
  private fragmentUntil: number | null = null;

  constructor(mapping: LineMapping, host: LineHost) {
    this.mapping = mapping;
    this.host = host;
    this.reader = new LineReader(mapping, (line) => this.receiveLine(line));
  }

  /** Lines dropped before they were read. */
  get dropped(): number {
    return this.reader.dropped;
  }

  /** Bytes come from now on: what comes at once is the rest of a line. */
  begin(): void {
    this.fragmentUntil = this.host.timer.now() + this.mapping.quietMs;
  }

  receive(bytes: Uint8Array): void {
    const { fragmentUntil } = this;
    this.fragmentUntil = null;
    this.heardAt = this.host.timer.now();
    const early = fragmentUntil !== null && this.heardAt < fragmentUntil;
    if (early && this.counters.sent === 0) this.reader.dropFragment();
    this.reader.receive(bytes);
  }

  /**
   * Settles with the command's result; rejects with an Error, or with a DeviceAway if the port is
   * lost.
   */
  call(command: LineCommand, params: unknown): Promise<unknown> {
    return new Promise((resolve, reject) => {
      // Invalid parameters are refused immediately, not when its turn comes.
      command.line(params, "0");
      if (this.gone !== null) throw new DeviceAway(this.gone, false);
      if (this.waiting.length >= MAX_WAITING) {
        throw new DeviceAway(`${MAX_WAITING} commands wait already`, false);
      }
      const since = this.host.timer.now();
      const before = this.reader.counts;
      const fresh = { since, tries: 0, tag: "", line: "", lines: [], before };
      this.waiting.push({ command, params, resolve, reject, ...fresh });
      this.next();
    });
  }

  /** The port is gone: every call fails at once. */
  end(reason: string): void {
    if (this.gone !== null) return;
    this.gone = reason;
    this.clearTimer();
    const { current } = this;
    this.current = null;
    current?.reject(new DeviceAway(reason, current.tries > 0));
    for (const call of this.waiting.splice(0)) call.reject(new DeviceAway(reason, false));
  }

  private next(): void {
    if (this.state !== "idle" || this.gone !== null) return;
    const call = this.waiting.shift();
    if (call === undefined) return;
    if (!this.inTime(call)) {
      const waited = `it waited ${MAX_WAIT_MS / 1000} s for other commands and was not sent`;
      call.reject(new DeviceAway(waited, false));
      this.next();
      return;
    }
    this.current = call;
    this.send(call);
  }

  private send(call: LineCall): void {
    this.tags = (this.tags % LAST_TAG) + 1;
    call.tag = String(this.tags);
    call.lines = [];
    call.before = this.reader.counts;
    call.tries++;
    this.counters.sent++;
    if (call.tries > 1) this.counters.retried++;
    this.state = "waiting";
    const line = call.command.line(call.params, call.tag);
    call.line = line;
    const { checksum, encoding, end } = this.mapping;
    const sealed = checksum === "nmea" ? `${line}*${nmeaChecksum(line, encoding)}` : line;
    const bytes = encodeLine(sealed + end, encoding);
    this.host.write(bytes).then(
      () => {
        // The device's time begins when it has received the line; a fast one may have answered
        // already.
        if (this.current === call && this.state === "waiting" && this.timer === null) {
          this.setTimer(call.command.timeoutMs, () => this.timedOut(call));
        }
      },
      (error: Error) => this.end(error.message),
    );
  }

  private receiveLine(line: string): void {
    const call = this.current;
    if (call !== null && this.state === "waiting" && this.taken(call, line)) return;
    if (call !== null && this.state === "quiet") {
      this.armQuiet();
      const { answer, error, more } = call.command;
      if (answer(line, call.tag) ?? error?.(line, call.tag) ?? more?.(line, call.tag)) {
        this.counters.late++;
        return;
      }
    }
    for (const { match, event } of this.mapping.events) {
      const said = match(line, "");
      if (said !== null) {
        this.host.event(event, said);
        return;
      }
    }
    this.counters.unmatched++;
    if (this.mapping.unmatched !== null) this.host.event(this.mapping.unmatched, { line });
  }

  /** Whether the line belongs to the current command. */
  private taken(call: LineCall, line: string): boolean {
    const { command, tag } = call;
    if (this.mapping.echo && call.line !== "" && line.endsWith(call.line)) {
      call.line = "";
      call.before = { ...call.before, lines: call.before.lines + 1 };
      return true;
    }
    const failure = command.error?.(line, tag) ?? null;
    if (failure !== null) {
      this.settle();
      const { message } = failure;
      call.reject(
        new Error(typeof message === "string" ? message : `the device answered: ${line}`),
      );
      return true;
    }
    const answer = command.answer(line, tag);
    if (answer !== null) {
      this.settle();
      const named = Object.keys(answer).length > 0 ? answer : null;
      call.resolve(command.more === null ? named : { ...named, lines: call.lines });
      return true;
    }
    const more = command.more?.(line, tag) ?? null;
    if (more === null) return false;
    if (call.lines.length < MAX_COLLECTED_LINES) {
      call.lines.push(Object.keys(more).length > 0 ? more : { line });
    }
    return true;
  }

  private settle(): void {
    this.clearTimer();
    this.current = null;
    this.state = "idle";
    // After the caller got its answer, so that calls settle in order.
    queueMicrotask(() => this.next());
  }

  private timedOut(call: LineCall): void {
    this.counters.timeouts++;
    this.state = "quiet";
    this.quietUntil = this.host.timer.now() + this.mapping.quietMs * QUIET_LIMIT;
    this.repeats = call.tries <= call.command.retries && this.inTime(call);
    if (!this.repeats) {
      const times = call.tries === 1 ? "" : `, sent ${call.tries} times`;
      call.reject(
        new Error(
          `no answer from the device within ${call.command.timeoutMs} ms${times}; it may have run; ${this.reader.since(call.before)}`,
        ),
      );
    }
    this.armQuiet();
  }

  private inTime(call: LineCall): boolean {
    return this.host.timer.now() - call.since <= MAX_WAIT_MS;
  }

  private armQuiet(): void {
    const { timer } = this.host;
    const left = this.quietUntil - timer.now();
    this.setTimer(Math.max(0, Math.min(this.mapping.quietMs, left)), () => this.quietOver());
  }

  private quietOver(): void {
    // The rest of a line that was cut, as by a restart, does not come any more.
    if (this.host.timer.now() - this.heardAt >= CUT_MS) this.reader.dropBegun();
    const call = this.current;
    if (call !== null && this.repeats) {
      this.send(call);
      return;
    }
    this.settle();
  }

  private setTimer(ms: number, fn: () => void): void {
    this.clearTimer();
    this.timer = this.host.timer.set(ms, () => {
      this.timer = null;
      fn();
    });
  }

  private clearTimer(): void {
    if (this.timer !== null) this.host.timer.clear(this.timer);
    this.timer = null;
  }
}
