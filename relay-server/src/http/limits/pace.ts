/**
 * Limits how many requests begin in one turn of the event loop: many quick ones, so that concurrent
 * writes share a disk flush, or one slow one. Work on the store blocks the relay's thread;
 * everything else that is due, especially messages, runs between two turns, however many requests
 * have arrived. A long request pauses in the same way.
 *
 * Arriving and continuing requests are served alternately; the former by address in turn, the
 * latter by user, with refused logins as one more.
 */
import type { IncomingMessage, Server } from "node:http";
import { contained } from "../../base/contain.ts";
import { type HttpProblem, passingProblem } from "../base/problem.ts";
import { FairQueue } from "./fair-queue.ts";
import { guardRequests } from "./guard-requests.ts";

/** After this long in one turn no further request begins in it. */
const TURN_MS = 0.25;
const MOST_IN_ONE_TURN = 16;
/** Requests that may wait to begin, at most 15 KB each: a second of work. */
const MAX_ARRIVED = 4096;

type Waiting = PromiseWithResolvers<void>;

export class Pace {
  readonly #arrived: FairQueue<Waiting>;
  /** Not bounded here: concurrency-limit.ts limits them per user, hash-queue.ts refusals. */
  readonly #begun = new FairQueue<Waiting>(Number.POSITIVE_INFINITY);
  #lastBegan = false;
  /** Pending immediates, each for one request. */
  #steps = 0;
  #turnSinceMs: number | null = null;
  readonly #first: () => void;

  /** `first` is called before each request that begins, to write waiting messages. */
  constructor(first: () => void = () => undefined, maxArrived = MAX_ARRIVED) {
    this.#first = first;
    this.#arrived = new FairQueue(maxArrived);
  }

  /** Resolves when a request from this address may begin; rejects if too many wait. */
  begin(address: string): Promise<void> {
    return this.#wait(this.#arrived, address);
  }

  /** Resolves when a request that has begun may continue. `key`: its user, or what it is. */
  goOn(key: string): Promise<void> {
    return this.#wait(this.#begun, key);
  }

  #wait(queue: FairQueue<Waiting>, key: string): Promise<void> {
    const waiting: Waiting = Promise.withResolvers();
    queue.push(key, waiting)?.reject(tooMany());
    this.#schedule();
    return waiting.promise;
  }

  #schedule(): void {
    const waiting = this.#arrived.size + this.#begun.size;
    while (this.#steps < Math.min(MOST_IN_ONE_TURN, waiting)) {
      this.#steps += 1;
      setImmediate(this.#step);
    }
  }

  /** The synchronous part of a request is done before the next step of the same turn. */
  readonly #step = contained("request", "a request did not begin", () => {
    this.#steps -= 1;
    const nowMs = performance.now();
    if (this.#turnSinceMs === null) {
      this.#turnSinceMs = nowMs;
      setImmediate(this.#endTurn); // before the steps that wait for the next turn
    }
    if (nowMs - this.#turnSinceMs <= TURN_MS) {
      this.#first();
      this.#next()?.resolve();
    }
    this.#schedule();
  });

  #next(): Waiting | undefined {
    this.#lastBegan = !this.#lastBegan;
    const [one, other] = this.#lastBegan
      ? [this.#arrived, this.#begun]
      : [this.#begun, this.#arrived];
    return one.shift() ?? other.shift();
  }

  readonly #endTurn = contained("request", "a turn did not end", () => {
    this.#turnSinceMs = null;
  });
}

/** What became of a request that was paced. */
interface Paced {
  readonly waitedMs: number;
  /** Its error; null: it may begin. */
  readonly refusal: unknown;
}

/**
 * Paces a server's requests by `keyOf`. A refused one goes on as well, and is
 * answered like any other; the returned function knows what became of it.
 */
export const paceRequests = (
  server: Server,
  pace: Pace,
  keyOf: (request: IncomingMessage) => string,
): ((request: IncomingMessage) => Paced | undefined) => {
  const paced = new WeakMap<IncomingMessage, Paced>();
  guardRequests(server, async (request, _response, pass) => {
    const arrivedMs = performance.now();
    const refusal = await pace.begin(keyOf(request)).then(
      () => null,
      (error: unknown) => error,
    );
    paced.set(request, { waitedMs: performance.now() - arrivedMs, refusal });
    if (!request.socket.destroyed) pass(); // else nobody is left to answer
  });
  return (request) => paced.get(request);
};

const tooMany = (): HttpProblem =>
  passingProblem(
    "UNAVAILABLE",
    "Too many requests are waiting, most of them from the sender of this one.",
    1,
  );
