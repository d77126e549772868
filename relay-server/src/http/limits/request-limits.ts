/**
 * Limits how many requests a user, an agent and an address may make per minute, and how many of one
 * user run at a time. Requests over the rate get 429 with `Retry-After`; others wait, so that the
 * relay's other work is done between two of them.
 */
import rateLimit from "@fastify/rate-limit";
import type { FastifyReply, FastifyRequest } from "fastify";
import { type Credential, queueOf } from "../../control/credentials.ts";
import { addressKey } from "../../core/limits/address-group.ts";
import type { App, HttpContext } from "../base/context.ts";
import { type HttpProblem, passingProblem } from "../base/problem.ts";
import { isHealth } from "../routes/health.ts";
import { ConcurrencyLimit } from "./concurrency-limit.ts";
import { Pace, paceRequests } from "./pace.ts";
import { Untaken } from "./untaken-answers.ts";

const WINDOW_MS = 60_000;
/** Users, agents and addresses remembered at once; the least recent is dropped. */
const MAX_REMEMBERED = 10_000;

declare module "fastify" {
  interface FastifyInstance {
    requestLimits: RequestLimits;
  }
  interface FastifyContextConfig {
    /** Not counted for anybody: health. */
    unlimited?: boolean;
    /** Requires credentials, and is counted by them. */
    credentials?: boolean;
    /** Takes as long as its bytes do, and therefore no turn: artifacts. */
    streams?: boolean;
  }
}

type Check = (request: FastifyRequest) => Promise<void>;

export class RequestLimits {
  readonly #concurrency: ConcurrencyLimit;
  readonly #pace: Pace;
  readonly #paced: ReturnType<typeof paceRequests>;
  readonly #holders = new WeakMap<FastifyRequest, string>();
  readonly #users = new WeakMap<FastifyRequest, string>();
  readonly #ends = new WeakMap<FastifyRequest, () => void>();
  readonly #untaken = new Untaken();
  #holder: Check = async () => undefined;
  #address: Check = async () => undefined;

  /** Applies to `app`'s routes that are registered after this. */
  constructor(app: App, context: HttpContext) {
    const { quotas, addressOf } = context;
    this.#pace = new Pace(context.writeLinks);
    this.#concurrency = new ConcurrencyLimit(
      quotas.requestsAtOnce,
      quotas.requestsPerMinute,
      this.#pace,
    );
    this.#paced = paceRequests(app.server, this.#pace, (request) => addressKey(addressOf(request)));
    app.addHook("onRequest", async ({ raw }: FastifyRequest) => {
      const refusal = this.#paced(raw)?.refusal ?? null;
      // An answer costs as little as a refusal, which a balancer would take for the node's state.
      if (refusal !== null && !isHealth(raw)) throw refusal;
    });
    app.register(rateLimit, { global: false, cache: MAX_REMEMBERED });
    app.after(() => {
      const check = (max: number, keyGenerator: (request: FastifyRequest) => string): Check => {
        const count = app.createRateLimit({ max, timeWindow: WINDOW_MS, keyGenerator });
        return async (request) => {
          const answer = await count(request);
          if (answer.isAllowed || !answer.isExceeded) return;
          throw limited(`More than ${max} requests within a minute.`, answer.ttlInSeconds);
        };
      };
      this.#holder = check(
        quotas.requestsPerMinute,
        (request) => this.#holders.get(request) as string,
      );
      this.#address = check(quotas.anonymousRequestsPerMinute, (request) =>
        addressKey(addressOf(request.raw)),
      );
    });
    const end = async (request: FastifyRequest): Promise<void> => this.#end(request);
    app.addHook("onSend", async (request: FastifyRequest, reply: FastifyReply, payload) => {
      this.#end(request);
      this.#countAnswer(request, reply, payload);
      return payload;
    });
    app.addHook("onResponse", end);
    app.addHook("onRequestAbort", end);
  }

  /** How long a request waited before it began. */
  waitedMs({ raw }: FastifyRequest): number {
    return this.#paced(raw)?.waitedMs ?? 0;
  }

  /** Yields to other requests in the middle of a long one. `key`: its queue, or what it is. */
  pause(key: string): Promise<void> {
    return this.#pace.goOn(key);
  }

  /** Counts a request without valid credentials. */
  countAnonymous(request: FastifyRequest): Promise<void> {
    return this.#address(request);
  }

  /** Counts a request by its caller, and waits for its turn among those of the same user. */
  async admit(request: FastifyRequest, credential: Credential): Promise<void> {
    const { agentId } = credential;
    const user = queueOf(credential);
    this.#holders.set(request, agentId === null ? `user/${user}` : `agent/${agentId}`);
    this.#users.set(request, user);
    await this.#holder(request);
    if (request.routeOptions.config.streams === true) return;
    const end = await this.#concurrency.take(user);
    if (end === null) throw limited("Too many requests of this account wait.");
    this.#ends.set(request, end);
    if (request.raw.destroyed) this.#end(request); // disconnected while it waited
    // Changes go on: their answers are small, and one may end the key that takes no answers.
    if (request.method === "GET" && this.#untaken.isOver(user)) {
      throw limited("Answers of this account wait to be taken.");
    }
  }

  /** Streams read no further than they are taken. */
  #countAnswer(request: FastifyRequest, reply: FastifyReply, payload: unknown): void {
    const user = this.#users.get(request);
    if (user === undefined || typeof payload !== "string") return;
    this.#untaken.add(user, payload.length, request.raw.socket, reply.raw);
  }

  #end(request: FastifyRequest): void {
    this.#ends.get(request)?.();
    this.#ends.delete(request);
  }
}

const limited = (detail: string, seconds = 1): HttpProblem =>
  passingProblem("RATE_LIMITED", detail, Math.max(1, seconds));
