/**
 * A bridged port as `attach` uses it: begins and resumes its streams over every loss of a link, a
 * relay or the bridge (section 2, "A serial port outlives its link"). Nothing is lost or doubled
 * while the port stays open and 256 KB suffice; anything else is said with position and number.
 */

import { isObject } from "@blindrelay/protocol/crypto";
import { Alarm } from "@blindrelay/protocol/moving-link";
import {
  Gather,
  isSettings,
  MAX_KEPT_BYTES,
  NumberedBytes,
  type SettingsJson,
} from "@blindrelay/protocol/serial";
import type { IncomingStream, OutgoingStream } from "@blindrelay/protocol/streams";
import type { Agent } from "../client.ts";
import { CallError } from "../errors.ts";
import type { TimerPort } from "../ports.ts";
import type { SessionStreams } from "../streams.ts";

/** Bytes that may come before the local side has taken any. */
const READ_WINDOW_BYTES = 131_072;
/** Bytes of one message: the streams' own limit. */
const CHUNK_BYTES = 12_288;
const RETRY_FIRST_MS = 250;
const RETRY_MAX_MS = 5_000;
/** A port that was up for less is resumed after a growing wait: each time costs a request. */
const STEADY_MS = 5_000;
const CALL_MS = 30_000;
/** JSON-RPC 2.0, "Method not found". */
export const UNKNOWN_METHOD = -32_601;
/** Section 2, "Inside a packet": the bridge's handler threw. */
const HANDLER_FAILED = -32_000;

/** Bytes that are gone, or may be, by their numbers since the opening of the port. */
export interface Loss {
  readonly direction: "from the device" | "to the device";
  /** `unknown`: they were sent, and the port may have taken them. */
  readonly outcome: "lost" | "unknown" | "not sent";
  /** Null with a bridge that does not number. */
  readonly from: number | null;
  readonly bytes: number | null;
}

export interface StatusLinesJson {
  readonly cts?: boolean | null;
  readonly dsr?: boolean | null;
  readonly dcd?: boolean | null;
}

export interface RemoteEvents {
  /** Bytes from the device, valid during the call; `taken` is due once they are passed on. */
  data(bytes: Uint8Array): void;
  /** There is room again. */
  writable(): void;
  up(settings: SettingsJson): void;
  /** A CallError if it could not be resumed: see `start`. */
  down(reason: string | CallError): void;
  lost(loss: Loss): void;
  changed(lines: StatusLinesJson): void;
}

export interface RemoteOptions {
  readonly port: string | undefined;
  /** 22 characters of base64url. */
  readonly claim: string;
  readonly user: string;
  readonly watch: boolean;
  readonly takeover: boolean;
  readonly timer: TimerPort;
}

interface Resumed {
  /** What notifications call the port; bridges with one port may not say it. */
  readonly port: string | undefined;
  readonly opening: string;
  readonly read: number;
  readonly written: number;
  /** Another one: others have written meanwhile. Older bridges do not say it. */
  readonly turn: number | undefined;
  readonly settings: SettingsJson;
}

/** `failures`: before the last one. */
const backoffMs = (failures: number): number =>
  Math.min(RETRY_MAX_MS, RETRY_FIRST_MS * 2 ** failures);

/** Of a byte, far below where numbers are no longer exact. */
const isNumber = (value: unknown): value is number =>
  Number.isSafeInteger(value) && (value as number) >= 0 && (value as number) < 2 ** 52;

const badAnswer = (method: string): CallError =>
  new CallError("BAD_ANSWER", `the bridge answered ${method} with what is no answer to it`);

/** Throws a CallError for another value. */
const readSettings = (method: string, value: unknown): SettingsJson => {
  if (isSettings(value)) return value;
  throw badAnswer(method);
};

/** What is asked for, unless it was asked for again since, is what was last `accepted`. */
const withoutRefused = (
  asked: Partial<SettingsJson>,
  refused: Partial<SettingsJson>,
  accepted: Partial<SettingsJson>,
): Partial<SettingsJson> => {
  const left: Record<string, unknown> = { ...asked };
  for (const [name, value] of Object.entries(refused)) {
    if (left[name] !== value) continue;
    const known = accepted[name as keyof SettingsJson];
    if (known === undefined) delete left[name];
    else left[name] = known;
  }
  return left;
};

/** Throws a CallError for another value. */
const readResumed = (method: string, answer: unknown): Resumed => {
  const { port, opening, read, written, turn, settings } = (answer ?? {}) as Record<
    string,
    unknown
  >;
  const isNamed = port === undefined || typeof port === "string";
  const isTurn = turn === undefined || isNumber(turn);
  if (isNamed && typeof opening === "string" && isNumber(read) && isNumber(written) && isTurn)
    return { port, opening, read, written, turn, settings: readSettings(method, settings) };
  throw badAnswer(method);
};

/** The streams of one attempt. */
interface Attempt {
  streams: SessionStreams | null;
  in: IncomingStream | null;
  out: OutgoingStream | null;
  /** The first grant of `out`, and the number of the first byte that it sends. */
  window: number;
  base: number;
  /** When it was up. */
  since: number;
  isUp: boolean;
  /** `in` has had its first grant. */
  isReading: boolean;
  /** Ends what it hears of its session. */
  unhear: () => void;
  /** Purges of what comes by `in` that have no answer yet. */
  purging: number;
  /** The latest `serial.lost` that came before the answer. */
  early: unknown;
  isOver: boolean;
}

export class RemotePort {
  settings: SettingsJson | null = null;
  private readonly agent: Agent;
  private readonly options: RemoteOptions;
  private readonly events: RemoteEvents;
  private readonly gather: Gather;
  private name: string | undefined;
  private opening: string | null = null;
  private turn: number | undefined;
  private readAt = 0;
  /** Bytes that the local side has got and not passed on. */
  private untaken = 0;
  /** What is written before the first opening is numbered from 0; `accept` renumbers it. */
  private kept = new NumberedBytes();
  private sendAt = 0;
  /** What is below was sent in this opening, perhaps on an earlier stream. */
  private sentTo = 0;
  /** Calls that wait for the bytes before number `at` to be sent. */
  private ordered: { at: number; readonly begin: () => void }[] = [];
  /** One of them is on its way: what was written after it waits until it is sent. */
  private beginning: object | null = null;
  private attempt: Attempt | null = null;
  /** The bridge is older than `serial.resume`. */
  private isOld = false;
  private takeover: boolean;
  /** Settings that the local side asked for, asked for again when the bridge has restarted. */
  private asked: Partial<SettingsJson> = {};
  /** What the bridge last accepted of them. */
  private accepted: Partial<SettingsJson> = {};
  private failures = 0;
  /** Losses in a row, each soon after the port was up. */
  private flaps = 0;
  private isAnswering = false;
  private readonly retry: Alarm;
  private stopped = false;
  private finished: (() => void) | null = null;

  constructor(agent: Agent, options: RemoteOptions, events: RemoteEvents) {
    this.agent = agent;
    this.options = options;
    this.events = events;
    this.takeover = options.takeover;
    this.gather = new Gather(options.timer, () => this.send());
    this.retry = new Alarm(options.timer);
  }

  get isUp(): boolean {
    return this.attempt?.isUp === true;
  }

  /** Bytes that may be written now; more are taken, but should wait for `writable`. */
  get room(): number {
    return MAX_KEPT_BYTES - this.kept.size;
  }

  /** Throws a CallError BAD_ARGUMENT for far more than there is room for. */
  write(bytes: Uint8Array): void {
    if (bytes.length > this.room + MAX_KEPT_BYTES) {
      throw new CallError("BAD_ARGUMENT", "more was written than there is room for");
    }
    this.kept.push(bytes);
    const waiting = this.kept.end - this.sendAt;
    this.gather.add(waiting, waiting >= CHUNK_BYTES);
  }

  /** The local side has passed on this many of the bytes it got. */
  taken(bytes: number): void {
    this.untaken -= bytes;
    const { attempt } = this;
    if (attempt?.isUp !== true) return;
    if (attempt.isReading) attempt.in?.grant(bytes);
    else this.read(attempt);
  }

  /** Resolves when everything is written to the port; gives up with the port. */
  finish(): Promise<void> {
    return new Promise((resolve) => {
      this.finished = resolve;
      this.send();
    });
  }

  /** Stops resuming, and says what was never sent. The client's end ends the claim. */
  stop(): void {
    if (!this.stopped) this.tellNotSent();
    this.stopped = true;
    this.beginAll();
    this.gather.stop();
    this.retry.clear();
  }

  /** Something suggests that another attempt may succeed. */
  retryNow(): void {
    if (!this.retry.isSet) return;
    this.retry.clear();
    this.failures = 0;
    void this.connectAgain();
  }

  /** Rejects with a CallError. */
  async configure(settings: Partial<SettingsJson>): Promise<SettingsJson> {
    this.asked = { ...this.asked, ...settings };
    const method = "serial.configure";
    const answer = await this.callInOrder(method, settings).catch((error) => {
      // Asked for again with the others, it would have them refused too.
      const isRefused = error instanceof CallError && error.remote?.code === HANDLER_FAILED;
      if (isRefused) this.asked = withoutRefused(this.asked, settings, this.accepted);
      throw error;
    });
    this.accepted = { ...this.accepted, ...settings };
    this.settings = readSettings(method, answer);
    return this.settings;
  }

  /** Steps of `serial.signals`, after what was written before. Rejects with a CallError. */
  async signals(steps: readonly object[]): Promise<void> {
    if (this.isOld) {
      const needs = "0.2.0 or newer";
      throw new Error(`the bridge runs no reset sequences: it must be ${needs}`);
    }
    await this.callInOrder("serial.signals", { steps });
  }

  /** Forgets bytes that are under way. Rejects with a CallError. */
  async purge(read: boolean, write: boolean): Promise<void> {
    // The bridge may have what was sent on the stream before, and counts on its coming again.
    const comesAgain = !this.isUp || this.sendAt < this.sentTo;
    if (write) {
      this.kept.truncate(Math.max(this.sendAt, this.sentTo));
      for (const one of this.ordered) one.at = Math.min(one.at, this.kept.end);
      this.send();
      this.events.writable();
    }
    if (this.isOld) return;
    // What was under way ends with its stream, also if the answer never comes.
    const purged = read ? this.attempt : null;
    if (purged !== null) purged.purging++;
    try {
      const params = { read, write: write && !comesAgain };
      // Overtaken by what is written next, it would purge that.
      if (params.write) await this.callInOrder("serial.purge", params);
      else await this.call("serial.purge", params);
    } finally {
      if (purged !== null) purged.purging--;
    }
  }

  async status(): Promise<StatusLinesJson> {
    const method = "serial.status";
    const answer = await this.call(method, {});
    if (isObject(answer)) return answer;
    throw badAnswer(method);
  }

  private call(method: string, params: object): Promise<unknown> {
    return this.agent.call(method, this.named(params), { timeoutMs: CALL_MS });
  }

  private named(params: object): object {
    const { port } = this.options;
    return port === undefined || this.isOld ? params : { port, ...params };
  }

  /**
   * After all that was written before, and before what is written next. Once the port was there, it
   * waits while that is away only for bytes that are sent again: else its caller is told at once.
   */
  private callInOrder(method: string, params: object): Promise<unknown> {
    return new Promise((resolve, reject) => {
      const begin = (): void => {
        if (this.stopped) {
          reject(new CallError("CLOSED", "the port is used no more"));
          return;
        }
        const beginning = {};
        this.beginning = beginning;
        const goOn = (): void => {
          if (this.beginning !== beginning) return;
          this.beginning = null;
          this.send();
        };
        const call = this.agent.callWithStreams(method, this.named(params), goOn, CALL_MS);
        call.then(resolve, reject).finally(goOn);
      };
      this.ordered.push({ at: this.kept.end, begin });
      if (this.isUp && this.attempt?.out) this.send();
      else if (this.stopped || (this.settings !== null && this.kept.size === 0)) this.beginAll();
    });
  }

  private beginAll(): void {
    for (const { begin } of this.ordered.splice(0)) begin();
    this.beginning = null;
  }

  // ---- resuming

  /** Rejects with a CallError if the port cannot be used now. */
  async start(): Promise<void> {
    if (!this.isOld) {
      try {
        await this.resume();
        return;
      } catch (error) {
        if (!(error instanceof CallError) || error.remote?.code !== UNKNOWN_METHOD) throw error;
        this.isOld = true;
      }
    }
    await this.openOld();
  }

  private async resume(): Promise<void> {
    const { port, claim, user, watch } = this.options;
    const attempt = newAttempt();
    this.attempt = attempt;
    const [read, write] = [this.agent.streamNumber(), this.agent.streamNumber()];
    const known = this.opening === null ? {} : { opening: this.opening };
    const from = this.opening === null ? {} : { from: this.readAt };
    const params = {
      ...(port === undefined ? {} : { port }),
      claim,
      ...known,
      read: { stream: read, ...from },
      ...(watch ? {} : { write: { stream: write } }),
      ...(this.takeover ? { takeover: true } : {}),
      user,
    };
    const resumed = await this.callFor(attempt, "serial.resume", params, readResumed, (streams) => {
      attempt.in = this.incoming(attempt, streams, read);
      attempt.out = watch ? null : this.outgoing(attempt, streams, write);
    });
    this.takeover = false;
    this.name = resumed.port;
    this.accept(attempt, resumed);
    this.begin(attempt, resumed.settings);
  }

  /** Where both sides are. */
  private accept(attempt: Attempt, { opening, read, written, turn }: Resumed): void {
    const isSame = opening === this.opening;
    // Another bridge, under the same opening, said that more had come than has.
    const isBehind = isSame && read < this.readAt;
    const isKnown = turn === this.turn && written >= this.kept.from && written <= this.kept.end;
    // Of another opening, what came before this client was known.
    const readAt = isSame && !isBehind ? this.readAt : 0;
    if (isBehind) this.tellUnnumbered();
    else if (this.opening !== null && read > readAt) this.tellLost(readAt, read - readAt);
    if (this.opening === null) {
      this.kept = this.kept.renumbered(written);
      for (const one of this.ordered) one.at += written;
    } else if (!isSame || !isKnown) this.forgetKept(written);
    if (!isSame || !isKnown) this.sentTo = written;
    this.opening = opening;
    this.turn = turn;
    this.readAt = Math.max(read, readAt);
    this.kept.drop(written);
    this.sendAt = written;
    attempt.base = written;
  }

  /** A bridge from before `serial.resume`: nothing is numbered, and nothing is sent again. */
  private async openOld(): Promise<void> {
    const attempt = newAttempt();
    this.attempt = attempt;
    const [read, write] = [this.agent.streamNumber(), this.agent.streamNumber()];
    const settings = await this.callFor(
      attempt,
      "serial.read",
      { stream: read },
      readSettings,
      (streams) => {
        attempt.in = this.incoming(attempt, streams, read);
      },
    );
    if (!this.options.watch) {
      const params = { stream: write };
      const any = () => undefined; // the settings have been read
      await this.callFor(attempt, "serial.write", params, any, (streams) => {
        attempt.out = this.outgoing(attempt, streams, write);
      });
    }
    if (this.settings !== null) {
      this.tellUnnumbered();
      this.forgetKept(0);
    }
    this.sendAt = this.kept.from;
    this.sentTo = this.sendAt;
    this.begin(attempt, settings);
  }

  private async callFor<Result>(
    attempt: Attempt,
    method: string,
    params: object,
    read: (method: string, answer: unknown) => Result,
    open: (streams: SessionStreams) => void,
  ): Promise<Result> {
    const sent = (streams: SessionStreams): void => {
      attempt.streams = streams;
      attempt.unhear();
      attempt.unhear = streams.onNotice((event, data) => this.notice(attempt, event, data));
      open(streams);
    };
    try {
      return read(method, await this.agent.callWithStreams(method, params, sent, CALL_MS));
    } catch (error) {
      this.end(attempt);
      throw error;
    }
  }

  private begin(attempt: Attempt, settings: SettingsJson): void {
    if (attempt.isOver || this.stopped) {
      // It broke between its opening and the answer.
      this.end(attempt);
      if (!this.stopped) this.again();
      return;
    }
    this.failures = 0;
    attempt.since = this.options.timer.now();
    attempt.isUp = true;
    this.settings = settings;
    this.passOver(attempt, attempt.early);
    this.read(attempt);
    this.restoreSettings(settings);
    this.events.up(settings);
    this.send();
    this.events.writable();
  }

  /**
   * The first grant, once nothing of the streams before is left: a later one would acknowledge
   * bytes of this stream that have not come.
   */
  private read(attempt: Attempt): void {
    if (this.untaken > 0) return;
    attempt.isReading = true;
    attempt.in?.grant(READ_WINDOW_BYTES);
  }

  /** A restarted bridge has its configuration's settings. */
  private restoreSettings(now: SettingsJson): void {
    const asked = Object.entries(this.asked);
    const isSet = ([name, value]: [string, unknown]): boolean =>
      now[name as keyof SettingsJson] === value;
    // Also what was accepted in an answer that was lost.
    this.accepted = { ...this.accepted, ...Object.fromEntries(asked.filter(isSet)) };
    if (!asked.every(isSet)) this.configure(this.asked).catch(() => undefined);
  }

  private incoming(attempt: Attempt, streams: SessionStreams, id: number): IncomingStream {
    attempt.in?.conclude("it is opened in another session");
    return streams.incoming(id, {
      data: (bytes) => {
        this.readAt += bytes.length;
        this.untaken += bytes.length;
        if (attempt.purging > 0) this.taken(bytes.length);
        else this.events.data(bytes);
      },
      ended: (error) => this.broke(attempt, error ?? "the bridge ended it"),
    });
  }

  private outgoing(attempt: Attempt, streams: SessionStreams, id: number): OutgoingStream {
    attempt.out?.conclude("it is opened in another session");
    const out = streams.outgoing(id, {
      writable: () => {
        const granted = out.credit + out.sent;
        if (attempt.window === 0) attempt.window = granted;
        else if (attempt.isUp && this.attempt === attempt) {
          this.kept.drop(Math.min(this.sendAt, attempt.base + granted - attempt.window));
          this.events.writable();
        }
        this.send();
      },
      ended: (error) => {
        if (error === null) this.finished?.();
        else this.broke(attempt, error);
      },
    });
    return out;
  }

  private notice(attempt: Attempt, event: string, data: unknown): void {
    if (this.attempt !== attempt) return;
    if (event === "serial.asked") {
      void this.answerAsked();
    } else if (event === "serial.changed") {
      const { port, ...lines } = (data ?? {}) as { port?: unknown } & StatusLinesJson;
      // The agent's other ports say it to every session.
      if (this.name === undefined || port === this.name) this.events.changed(lines);
    } else if (event === "serial.lost") {
      if (attempt.isUp) this.passOver(attempt, data);
      // It overtook the answer that says of which opening it is; the latest one says all.
      else attempt.early = data;
    }
  }

  private passOver(attempt: Attempt, lost: unknown): void {
    const { opening, from, bytes } = (lost ?? {}) as Record<string, unknown>;
    if (opening !== this.opening || !isNumber(from) || !isNumber(bytes)) return;
    // A bridge refuses to go on at what is no number of a byte.
    const end = from + bytes;
    if (!isNumber(end)) return;
    // What the answer said already is not said again; what should have come before this does not.
    const { readAt } = this;
    if (end <= readAt) return;
    if (attempt.purging === 0) this.tellLost(readAt, end - readAt);
    this.readAt = end;
  }

  /** One answer is enough for all who asked meanwhile. */
  private async answerAsked(): Promise<void> {
    if (this.isAnswering) return;
    this.isAnswering = true;
    await this.agent.call("system.ping").catch(() => undefined);
    this.isAnswering = false;
  }

  private broke(attempt: Attempt, reason: string): void {
    if (attempt.isOver) return;
    const wasUp = attempt.isUp;
    this.end(attempt);
    if (this.attempt === attempt) {
      this.beginning = null;
      if (this.kept.size === 0) this.beginAll();
    }
    if (this.attempt !== attempt || this.stopped) return;
    if (!wasUp) return;
    this.events.down(reason);
    const wasSteady = this.options.timer.now() - attempt.since >= STEADY_MS;
    const flaps = wasSteady ? 0 : this.flaps;
    this.flaps = flaps + 1;
    this.again(flaps === 0 ? 0 : backoffMs(flaps - 1));
  }

  private end(attempt: Attempt): void {
    attempt.isOver = true;
    attempt.isUp = false;
    attempt.unhear();
    attempt.in?.abort("it is resumed");
    attempt.out?.abort("it is resumed");
  }

  private again(ms = backoffMs(this.failures)): void {
    if (this.stopped || this.retry.isSet) return;
    this.failures++;
    this.retry.set(ms, () => void this.connectAgain());
  }

  private async connectAgain(): Promise<void> {
    try {
      await this.start();
    } catch (error) {
      if (this.stopped) return;
      if (!(error instanceof CallError)) throw error;
      if (this.failures === 1) this.events.down(error);
      this.again();
    }
  }

  // ---- to the device

  private send(): void {
    const { attempt } = this;
    const out = attempt?.out;
    if (!attempt?.isUp || out === null || out === undefined) return;
    while (!out.over && this.beginning === null) {
      const [next] = this.ordered;
      if (next !== undefined && this.sendAt >= next.at) {
        this.ordered.shift();
        next.begin();
        continue;
      }
      const left = (next?.at ?? this.kept.end) - this.sendAt;
      if (out.credit === 0 || left <= 0) break;
      const waitMs = attempt.streams?.paceMs() ?? 0;
      if (waitMs > 0) {
        this.gather.later(waitMs);
        return;
      }
      this.sendAt += out.write(this.kept.read(this.sendAt, Math.min(CHUNK_BYTES, left)));
      this.sentTo = Math.max(this.sentTo, this.sendAt);
    }
    const isAllSent = this.beginning === null && this.sendAt === this.kept.end;
    if (this.finished !== null && isAllSent) out.end();
  }

  // ---- losses

  /** Nothing of it is sent again: what waits for it waits no more. */
  private forgetKept(written: number): void {
    this.tellUnacknowledged();
    this.kept = new NumberedBytes(written);
    for (const one of this.ordered) one.at = written;
  }

  private tellLost(from: number, bytes: number): void {
    this.events.lost({ direction: "from the device", outcome: "lost", from, bytes });
  }

  /** Any of what came before may be gone. */
  private tellUnnumbered(): void {
    const [direction, outcome] = ["from the device", "unknown"] as const;
    this.events.lost({ direction, outcome, from: null, bytes: null });
  }

  private tellUnacknowledged(): void {
    this.tellOfKept("unknown", this.kept.from, Math.min(this.sentTo, this.kept.end));
    this.tellNotSent();
  }

  private tellNotSent(): void {
    this.tellOfKept("not sent", Math.max(this.kept.from, this.sentTo), this.kept.end);
  }

  private tellOfKept(outcome: Loss["outcome"], from: number, to: number): void {
    if (to <= from) return;
    // A port that was never there has numbered nothing.
    const number = this.isOld || this.opening === null ? null : from;
    this.events.lost({ direction: "to the device", outcome, from: number, bytes: to - from });
  }
}

const newAttempt = (): Attempt => ({
  streams: null,
  in: null,
  out: null,
  window: 0,
  base: 0,
  since: 0,
  isUp: false,
  isReading: false,
  unhear: () => undefined,
  purging: 0,
  early: null,
  isOver: false,
});
