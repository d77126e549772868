/**
 * Where the answer to an envelope without a packet goes (section 3, Routing): by agent and
 * `request_id`, for 60 s, to the connection that asked. An id that is in use cannot be taken over,
 * except by another connection of the same session token.
 */
import { REQUEST_ID_TTL_MS } from "@blindrelay/protocol";
import {
  FREE_PER_CONNECTION,
  MAX_REQUEST_IDS_PER_CONNECTION,
  MAX_REQUEST_IDS_PER_USER,
} from "./limits.ts";

/** One connection of a client, as far as request ids care. */
interface Requester {
  readonly sessionHash: string;
  readonly renews?: string | undefined;
  /** Keys of this connection's live ids, oldest first; kept by `RequestIds` alone. */
  readonly requests: Set<string>;
  readonly user: object;
}

/** What a connection's live ids are charged to. */
type ShareOf<R> = (client: R) => { requestIds: number };

interface Entry<R> {
  client: R;
  expiresAt: number;
}

export class RequestIds<R extends Requester> {
  /** In order of expiry, because all live equally long. */
  readonly #entries = new Map<string, Entry<R>>();
  readonly #shareOf: ShareOf<R>;

  constructor(shareOf: ShareOf<R>) {
    this.#shareOf = shareOf;
  }

  /** Remembers the requester. False when the id is live on another connection. */
  remember(agentId: string, requestId: string, client: R, now: number): boolean {
    const key = keyOf(agentId, requestId);
    const entry = this.#live(key, now);
    // A connection has one session token, so this also admits the connection itself.
    const before = entry?.client.sessionHash;
    const isSame = before === client.sessionHash || before === client.renews;
    if (entry !== null && entry.client.user === client.user && !isSame) return false;
    this.#forget(key);
    this.#entries.set(key, { client, expiresAt: now + REQUEST_ID_TTL_MS });
    client.requests.add(key);
    const share = this.#shareOf(client);
    share.requestIds += 1;
    const max =
      share.requestIds > MAX_REQUEST_IDS_PER_USER
        ? FREE_PER_CONNECTION
        : MAX_REQUEST_IDS_PER_CONNECTION;
    if (client.requests.size > max) {
      const [oldest] = client.requests;
      this.#forget(oldest as string);
    }
    return true;
  }

  /** The client that called this agent of its user under this id within the last 60 s. */
  clientFor(agentId: string, requestId: string, user: R["user"], now: number): R | null {
    const client = this.#live(keyOf(agentId, requestId), now)?.client;
    return client?.user === user ? client : null;
  }

  drop(client: R): void {
    for (const key of client.requests) {
      this.#forget(key);
    }
  }

  /** Forgets expired ids. Late or extra calls are harmless. */
  expire(now: number): void {
    for (const [key, entry] of this.#entries) {
      if (entry.expiresAt > now) {
        return;
      }
      this.#forget(key);
    }
  }

  get size(): number {
    return this.#entries.size;
  }

  #live(key: string, now: number): Entry<R> | null {
    const entry = this.#entries.get(key);
    return entry !== undefined && entry.expiresAt > now ? entry : null;
  }

  #forget(key: string): void {
    const entry = this.#entries.get(key);
    if (entry === undefined) return;
    entry.client.requests.delete(key);
    this.#shareOf(entry.client).requestIds -= 1;
    this.#entries.delete(key);
  }
}

/**
 * An agent_id contains no line break, so no two pairs share a key. The agent of an id may be
 * another user's soon after it was deleted.
 */
const keyOf = (agentId: string, requestId: string): string => `${agentId}\n${requestId}`;
