/**
 * Reads a device's log page by page (`system.log`), and follows it: lines come as notifications
 * (`system.logged`), and whatever was missed, as over a restart or a renewed session, is asked for.
 */
import { type Agent, CallError } from "@blindrelay/client-sdk";
import type { DeviceStart, LogAnswer, LogLine } from "@blindrelay/protocol";
import { oneLine } from "../base/output.ts";

const METHOD = "system.log";
const NOTIFICATION = "system.logged";
/** A device answers at most this many at a time. */
const PAGE = 100;
/** It may restart while it is read, but hardly more often. */
const MAX_RESTARTS = 3;
const CALL_MS = 20_000;
/** A session may have been renewed, which nobody is told: then it is asked to follow again. */
const ASK_AGAIN_MS = 45_000;
/** After a failure. */
const RETRY_MS = 3_000;
/** Between two questions to which what the device says gives rise: it may say much. */
const PAUSE_MS = 500;

/** What is told of one agent, and when it was known. */
export type LogReport = { readonly agent_id: string; readonly at: string } & (
  | ({ readonly kind: "start" } & DeviceStart)
  | ({ readonly kind: "line" } & LogLine)
  | { readonly kind: "lost"; readonly lines: number }
);

const isLine = (value: unknown): value is LogLine => {
  const { n, at_ms, level, text } = (value ?? {}) as Partial<LogLine>;
  return (
    Number.isSafeInteger(n) &&
    typeof at_ms === "number" &&
    typeof level === "string" &&
    typeof text === "string"
  );
};

const isPage = (value: unknown): value is LogAnswer => {
  const { lines, boot, restart, dropped } = (value ?? {}) as Partial<LogAnswer>;
  return (
    Array.isArray(lines) &&
    lines.every(isLine) &&
    typeof boot === "number" &&
    Number.isSafeInteger(dropped) &&
    typeof restart?.reason === "string" &&
    typeof restart.text === "string"
  );
};

export class LogReader {
  private readonly agent: Agent;
  private readonly tell: (report: LogReport) => void;
  private readonly notice: (text: string) => void;
  private readonly started: (reason: string) => Promise<void>;
  /** Null: nothing was read so far. */
  private boot: number | null = null;
  private count = PAGE;
  /** The latest line that was told. */
  private reached = 0;
  /** What is told now would be told of the start before. */
  private isStarting = true;
  private isAsking = false;
  private isBehind = false;

  /**
   * `notice`: told why the device cannot be followed for now. `started`: awaited before anything of
   * another start is told, with the reason for it.
   */
  constructor(
    agent: Agent,
    tell: (report: LogReport) => void,
    notice: (text: string) => void,
    started: (reason: string) => Promise<void>,
  ) {
    this.started = started;
    this.agent = agent;
    this.tell = tell;
    this.notice = notice;
  }

  /** Tells the start and at most `count` of the latest lines. Rejects with a CallError. */
  async read(count: number): Promise<void> {
    this.count = count;
    const newest = await this.ask({ lines: Math.min(count, PAGE) });
    await this.begin(newest);
    const last = newest.lines.at(-1)?.n ?? 0;
    const first = newest.lines[0]?.n ?? 1;
    const from = Math.max(0, last - count, newest.dropped);
    this.reached = from;
    // A packet may hold less than what was asked for, or than what is kept.
    if (first > from + 1) await this.catchUp(false, last);
    this.tellLines(newest.lines);
  }

  /** Tells what comes later, until the client is closed; and what `read` could not. */
  follow(): void {
    this.agent.on("event", (event, data) => {
      const { lines } = (data ?? {}) as { lines?: unknown };
      if (event !== NOTIFICATION || !Array.isArray(lines) || !lines.every(isLine)) return;
      const [first] = lines;
      // Another start, or a gap: the answer to a question tells which.
      if (first === undefined) return;
      if (this.isStarting || first.n !== this.reached + 1) this.look();
      else this.tellLines(lines);
    });
    this.agent.on("reopened", () => this.look());
    this.agent.on("gap", () => this.look());
    this.look();
  }

  /** Asks what was missed, and to follow; one question at a time. */
  private look(): void {
    this.isBehind = true;
    if (!this.isAsking) this.keepLooking();
  }

  private async keepLooking(): Promise<void> {
    this.isAsking = true;
    let told = "";
    for (;;) {
      this.isBehind = false;
      try {
        if (this.boot === null) await this.read(this.count);
        await this.catchUp(true);
        told = "";
      } catch (error) {
        if (!(error instanceof CallError)) throw error;
        if (error.code === "CLOSED") return;
        if (error.message !== told) this.notice(`${oneLine(error.message)} (it keeps trying)`);
        told = error.message;
      }
      const waitMs = told === "" ? ASK_AGAIN_MS : RETRY_MS;
      const isOver = (waited: number): boolean =>
        waited >= waitMs || (this.isBehind && waited >= PAUSE_MS && told === "");
      for (let waited = 0; !isOver(waited); waited += 100)
        await new Promise((done) => setTimeout(done, 100).unref());
    }
  }

  /**
   * Asks for lines after the latest: all if it follows, else up to `last`. Rejects with a
   * CallError, also if the device's answers would never end.
   */
  private async catchUp(follow: boolean, last = Number.POSITIVE_INFINITY): Promise<void> {
    let end = last;
    let restarts = 0;
    while (this.reached < end) {
      const asked = { after: this.reached, lines: PAGE, ...(follow ? { follow } : {}) };
      const page = await this.ask(asked);
      if (page.boot !== this.boot) {
        restarts++;
        if (restarts > MAX_RESTARTS) throw this.badAnswer("one start after another");
        this.reached = 0;
        if (!follow) end = this.count;
        await this.begin(page);
        continue;
      }
      const newest = page.lines.at(-1);
      if (newest === undefined) return;
      if (newest.n <= asked.after) throw this.badAnswer("lines that it was not asked for");
      const missed = (page.lines[0] as LogLine).n - this.reached - 1;
      if (missed > 0) this.report({ kind: "lost", lines: missed });
      this.tellLines(page.lines);
    }
  }

  private async begin({ boot, restart, dropped }: LogAnswer): Promise<void> {
    this.boot = boot;
    this.isStarting = true;
    await this.started(restart.reason);
    this.report({ kind: "start", boot, restart, dropped });
    this.isStarting = false;
  }

  private tellLines(lines: readonly LogLine[]): void {
    for (const { n, at_ms, level, text } of lines) {
      if (n <= this.reached) continue;
      this.reached = n;
      this.report({ kind: "line", n, at_ms, level, text });
    }
  }

  private report({
    kind,
    ...more
  }: {
    readonly kind: LogReport["kind"];
    readonly [member: string]: unknown;
  }): void {
    const at = new Date().toISOString();
    this.tell({ kind, agent_id: this.agent.id, ...more, at } as unknown as LogReport);
  }

  private async ask(params: object): Promise<LogAnswer> {
    const page = await this.agent.call(METHOD, params, { timeoutMs: CALL_MS, idempotent: true });
    if (isPage(page)) return page;
    throw this.badAnswer("something else");
  }

  private badAnswer(what: string): CallError {
    return new CallError("BAD_ANSWER", `${this.agent.id} answered ${METHOD} with ${what}`);
  }
}
