/**
 * `Idempotency-Key` on POST: a request repeated with the same key within a day gets the
 * first response, and does nothing. The key is stored before the work begins, so not even a crash
 * in between can execute it twice: the key then stays in use until it expires.
 *
 * Responses contain tokens, so they are stored sealed under the master key, and requests, which may
 * contain passwords, only as an HMAC.
 */
import { IDEMPOTENCY_TTL_S } from "@blindrelay/protocol";
import { IDEMPOTENCY_HEADER, type IdempotencyHeaders } from "@blindrelay/protocol/schema/rest";
import type { FastifyReply, FastifyRequest } from "fastify";
import { Overloaded } from "../../control/hash-queue.ts";
import { QuotaExceeded } from "../../control/quotas.ts";
import { BOUNDS } from "../../store/bounds.ts";
import {
  claimIdempotent,
  dropIdempotent,
  findIdempotent,
  trimIdempotent,
  writeIdempotentAnswer,
} from "../../store/idempotency.ts";
import { holdKey } from "../../store/key-rotation.ts";
import { credentialOf } from "./access.ts";
import type { HttpContext } from "./context.ts";
import { jsonText } from "./json-text.ts";
import { HttpProblem, invalidBody, invalidHeader } from "./problem.ts";

/**
 * Of the account, and of all its access keys. A script that needs more within a day loses its
 * oldest, and the store stays small.
 */
const MAX_KEPT = BOUNDS.idempotency.perOwner / 2;

/** What a route with a key may answer in addition to its own problems. */
export const IDEMPOTENCY_PROBLEMS = ["IDEMPOTENCY_KEY_REUSED", "IDEMPOTENCY_KEY_IN_USE"] as const;

/** Nothing was changed: the caller was refused, or its turn to be hashed never came. */
const REFUSALS = [HttpProblem, QuotaExceeded, Overloaded];

interface Kept {
  readonly status: number;
  readonly location: string | null;
  readonly body: unknown;
}

/** Runs `work`, or returns its first response for this key. Without a key it just runs it. */
export const idempotently = async <T>(
  context: HttpContext,
  request: FastifyRequest,
  reply: FastifyReply,
  work: () => Promise<T>,
  isTrue: IsTrue<T> = async () => true,
): Promise<T> => {
  const given = (request.headers as IdempotencyHeaders)[IDEMPOTENCY_HEADER];
  if (given === undefined) return work();
  const { userId, key: accessKey } = credentialOf(request);
  // Whoever has less than the account gets no answer that was another's.
  const ofAccessKey = accessKey !== null;
  const key = ofAccessKey ? `${accessKey.id} ${given}` : given;
  const turn = () =>
    answerOnce(context, request, reply, { userId, key, ofAccessKey }, work, isTrue);
  return context.mutex.pass(`idempotency/${userId}/${key}`, turn);
};

const answerOnce = async <T>(
  context: HttpContext,
  request: FastifyRequest,
  reply: FastifyReply,
  { userId, key, ofAccessKey }: { userId: string; key: string; ofAccessKey: boolean },
  work: () => Promise<T>,
  isTrue: IsTrue<T>,
): Promise<T> => {
  const { store, secrets } = context;
  const nowMs = context.nowMs();
  const text = jsonText(request.body ?? null);
  if (text === null) throw invalidBody("", "is nested too deeply");
  const print = secrets.requestPrint(`${userId}\n${request.method} ${request.url}\n${text}`);
  const lapsedBefore = nowMs - IDEMPOTENCY_TTL_S * 1000;
  const claimed = await store.write(async (tx) => {
    await holdKey(tx, secrets.check());
    await trimIdempotent(tx, userId, ofAccessKey, lapsedBefore, MAX_KEPT);
    return claimIdempotent(tx, { user_id: userId, key, request: print, created_at: nowMs });
  });
  if (!claimed) {
    const row = await findIdempotent(store.db, userId, key);
    if (row !== undefined && row.request !== print) {
      throw invalidHeader(
        "IDEMPOTENCY_KEY_REUSED",
        "This Idempotency-Key came with another request before: draw a new one for each.",
        IDEMPOTENCY_HEADER,
        "must be new",
      );
    }
    if (row === undefined || row.answer === null) {
      throw new HttpProblem(
        "IDEMPOTENCY_KEY_IN_USE",
        "A request with this key has started and has no response yet: check whether it took effect before you try again with a new key.",
      );
    }
    const { answer } = row;
    const kept = store.decoded(
      () => JSON.parse(secrets.unseal(sealName(userId, key), answer)) as Kept,
    );
    if (!(await isTrue(kept.body as T))) {
      throw new HttpProblem(
        "CONFLICT",
        "The token that the first request was answered with was renewed since, or its agent removed.",
      );
    }
    reply.code(kept.status).header("idempotency-replayed", "true");
    if (kept.location !== null) reply.header("location", kept.location);
    return kept.body as T;
  }
  try {
    const body = await work();
    const location = reply.getHeader("location");
    const kept: Kept = {
      status: reply.statusCode,
      location: typeof location === "string" ? location : null,
      body,
    };
    const sealed = secrets.seal(sealName(userId, key), JSON.stringify(kept));
    await store.write((tx) => writeIdempotentAnswer(tx, userId, key, sealed));
    return body;
  } catch (error) {
    // A refusal changed nothing. After an internal error that is unknown, and the key stays taken.
    const isRefusal = REFUSALS.some((kind) => error instanceof kind);
    if (isRefusal) await store.write((tx) => dropIdempotent(tx, userId, key));
    throw error;
  }
};

/** Whether a response is still true; a token that was renewed must not be returned again. */
export type IsTrue<T> = (answer: T) => Promise<boolean>;

const sealName = (userId: string, key: string): string => `idempotency/${userId}/${key}`;
