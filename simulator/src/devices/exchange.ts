/**
 * What a client does with a device besides calling it: waits for an event, reads or writes a byte
 * stream. Each ends with an answer, or a CallError.
 */
import {
  type Agent,
  CallError,
  type ReadStream,
  type TimerPort,
  type WriteStream,
} from "@blindrelay/client-sdk";
import { pattern } from "./busy.ts";
import type { Question } from "./kinds.ts";

/** Written at a time. */
const CHUNK_BYTES = 16_384;
/** Events that wait for the step that asks for them, the latest. */
const MAX_EVENTS = 1_000;

/** The events of a device since a sequence began. */
export class Inbox {
  private readonly events: { name: string; data: unknown }[] = [];
  private readonly heard = new Set<Agent>();
  private readonly stops: (() => void)[] = [];
  private wake: () => void = () => undefined;

  /** Also hears these; once they have been, their session stays open. */
  hear(agent: Agent): void {
    if (this.heard.has(agent)) return;
    this.heard.add(agent);
    if (!subscribed.has(agent)) agent.on("event", () => undefined);
    subscribed.add(agent);
    this.stops.push(
      agent.on("event", (name, data) => {
        this.events.push({ name, data });
        if (this.events.length > MAX_EVENTS) this.events.shift();
        this.wake();
      }),
    );
  }

  /** The first event of this name that has not been taken; those before it are gone. */
  async take(name: string, limit: Promise<never>): Promise<unknown> {
    for (;;) {
      const at = this.events.findIndex((one) => one.name === name);
      if (at >= 0) return this.events.splice(0, at + 1)[at]?.data;
      const woken = new Promise<void>((resolve) => {
        this.wake = resolve;
      });
      await Promise.race([woken, limit]);
    }
  }

  close(): void {
    for (const stop of this.stops) stop();
  }
}

/** Of which some inbox has heard. */
const subscribed = new WeakSet<Agent>();

/** Plays a step that is no call. */
export async function exchange(
  agent: Agent,
  inbox: Inbox,
  { kind, method, params, bytes = 0 }: Question,
  timeoutMs: number,
  timer: TimerPort,
): Promise<unknown> {
  const over = Promise.withResolvers<never>();
  over.promise.catch(() => undefined);
  const what = kind === "event" ? `no event ${method} came` : `the stream of ${method} had no end`;
  const late = (): void =>
    over.reject(new CallError("TIMED_OUT", `${what} within ${timeoutMs} ms`));
  const limit = timer.set(timeoutMs, late);
  const given = params as object | undefined;
  const options = { timeoutMs };
  try {
    if (kind === "event") {
      inbox.hear(agent);
      return await inbox.take(method, over.promise);
    }
    const opened =
      kind === "read"
        ? readAll(await agent.readStream(method, given, options), over.promise)
        : writeAll(await agent.writeStream(method, given, options), over.promise, bytes);
    return await Promise.race([over.promise, opened]);
  } finally {
    timer.clear(limit);
  }
}

async function readAll(stream: ReadStream, limit: Promise<never>): Promise<{ bytes: number }> {
  limit.catch(() => stream.cancel("it took too long"));
  for await (const _ of stream);
  return { bytes: stream.taken };
}

async function writeAll(
  stream: WriteStream,
  limit: Promise<never>,
  bytes: number,
): Promise<{ bytes: number }> {
  limit.catch(() => stream.abort("it took too long"));
  for (let sent = 0; sent < bytes; sent += CHUNK_BYTES) {
    await stream.write(pattern(sent, Math.min(CHUNK_BYTES, bytes - sent)));
  }
  await stream.end();
  return { bytes };
}
