/**
 * What the handler of an event or a timer throws is a bug, and a peer may have found it: it ends
 * the connection, the request or the attempt that it was thrown for, is logged and counted here,
 * and never ends the process. contain.test.ts finds handlers that are registered in another way.
 * Shared by the whole process: most handlers do not know whose they are.
 */
import { TOKEN_PATTERN } from "@blindrelay/protocol";

/** Where a fault was contained, as the metric names it. */
const PLACES = ["bus", "connection", "hub", "process", "request", "store", "timer"] as const;
export type Place = (typeof PLACES)[number];

/** The part of a log that this needs. */
interface FaultLog {
  error(fields: { readonly err: unknown; readonly since?: number }, what: string): void;
}

/** A fault that repeats is logged again only after this time, with the number of those since. */
const EVERY_MS = 60_000;
const STACK_LENGTH = 4096;

const counts = new Map<Place, number>(PLACES.map((place) => [place, 0]));
const logs = new Set<FaultLog>();
/** By what failed, of which there are as many as there are handlers. */
const said = new Map<string, { atMs: number; since: number }>();

/** How many faults this process has contained so far, by place. */
export const faultCounts = (): Iterable<readonly [Place, number]> => counts;

/** From now on faults are written to this log, until the returned function is called. */
export const logFaults = (log: FaultLog): (() => void) => {
  logs.add(log);
  return () => {
    logs.delete(log);
  };
};

/** Counts a fault that its caller logs. */
export const countFault = (place: Place): void => {
  counts.set(place, (counts.get(place) ?? 0) + 1);
};

/** Counts and logs what a handler has thrown. `what`: a fixed text. */
export const fault = (place: Place, what: string, error: unknown): void => {
  countFault(place);
  const last = said.get(what);
  const nowMs = performance.now();
  if (last !== undefined && nowMs - last.atMs < EVERY_MS) {
    last.since += 1;
    return;
  }
  said.set(what, { atMs: nowMs, since: 0 });
  const since = last?.since ?? 0;
  for (const log of logs) {
    log.error({ err: withoutSecrets(error), ...(since === 0 ? {} : { since }) }, what);
  }
};

/** An error's fields may hold what a peer has sent, and its message may quote it. */
const withoutSecrets = (error: unknown): object => {
  const { name, message, stack } = error instanceof Error ? error : new Error(String(error));
  const clean = (text = "") =>
    text.slice(0, STACK_LENGTH).replaceAll(new RegExp(TOKEN_PATTERN, "g"), "(a secret)");
  return { type: name, message: clean(message), stack: clean(stack) };
};

/**
 * A handler that neither throws nor rejects. `end` gets the same arguments after a fault, and ends
 * what they stand for. It keeps its own `this`, which is often the emitter.
 */
export const contained = <This, Args extends unknown[]>(
  place: Place,
  what: string,
  handler: (this: This, ...args: Args) => unknown,
  end: (this: This, ...args: Args) => void = () => undefined,
): ((this: This, ...args: Args) => void) => {
  const failed = (self: This, args: Args, error: unknown): void => {
    fault(place, what, error);
    try {
      end.apply(self, args);
    } catch (second) {
      fault(place, `${what}, and could not be ended`, second);
    }
  };
  return function (this: This, ...args: Args): void {
    try {
      const answer = handler.apply(this, args);
      if (answer instanceof Promise) answer.catch((error) => failed(this, args, error));
    } catch (error) {
      failed(this, args, error);
    }
  };
};

/** Work that nobody waits for. */
export const detached = (place: Place, what: string, work: Promise<unknown>): void => {
  work.catch((error: unknown) => fault(place, what, error));
};
