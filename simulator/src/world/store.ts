/**
 * A model of the relay's store: who may come in, whose is what, what was left behind. Answers take
 * time, an unavailable store fails, and a crash loses what was not flushed, as with the real one
 * (SQLite in WAL mode, a flush for what was promised, a second of write-behind for what was not).
 */
import { createHash } from "node:crypto";
import { makeToken, SESSION_TTL_S, TOKEN_NAMES, tokenKind } from "@blindrelay/protocol";
import type {
  AgentReport,
  AuthRequest,
  AuthResult,
  HubLookups,
  WriteBehind,
} from "@blindrelay/relay-server/core";
import type { Stream } from "../streams.ts";
import type { Clock } from "./clock.ts";

/** A look-up, and a write that is flushed before it is answered. */
const WRITE_MS = 4;
const FLUSH_MS = 1000;
/** An expired session is still known as such for a while. */
const KEPT_MS = 3_600_000;

/** The account that owns everything in the world. */
export const USER = "sim";

interface Session {
  readonly side: "client" | "agent";
  readonly agentId: string;
  readonly expiresAtMs: number;
  used: number;
}

export interface StoreWatcher {
  /** Texts that were stored. */
  stored(text: string): void;
  requestsSaved(sessionHash: string, used: number): void;
  /** Promises were settled. */
  stir(): void;
}

const hash = (token: string): string => createHash("sha256").update(token).digest("hex");

const INVALID = (counted: boolean): AuthResult => ({
  ok: false,
  code: "INVALID_TOKEN",
  error: "Invalid token",
  counted,
});

export class ModelStore implements HubLookups, WriteBehind {
  latencyMs: number;
  away = 0;
  accountToken: string;
  private readonly clock: Clock;
  private readonly draws: Stream;
  private readonly watcher: StoreWatcher;
  private readonly ttlMs: number;
  private readonly agents = new Map<string, string>();
  /** Hash -> agent; of tokens that once were valid, too. */
  private readonly agentByToken = new Map<string, string>();
  private readonly sessions = new Map<string, Session>();
  private unflushed = new Map<string, number>();
  private readonly lastSeen = new Map<string, number>();
  private flushing = false;

  constructor(
    clock: Clock,
    draws: Stream,
    watcher: StoreWatcher,
    options: { latencyMs: number; ttlMs?: number },
  ) {
    this.clock = clock;
    this.draws = draws;
    this.watcher = watcher;
    this.latencyMs = options.latencyMs;
    this.ttlMs = options.ttlMs ?? SESSION_TTL_S * 1000;
    this.accountToken = makeToken("account", draws.bytes(32));
  }

  /** A new agent, or a new relay token for one; the old one is refused from now on. */
  issueAgent(agentId: string): string {
    const token = makeToken("agent", this.draws.bytes(32));
    this.agents.set(agentId, hash(token));
    this.agentByToken.set(hash(token), agentId);
    for (const [key, session] of this.sessions) {
      if (session.side === "agent" && session.agentId === agentId) this.sessions.delete(key);
    }
    this.watcher.stored(`${agentId} ${hash(token)}`);
    return token;
  }

  /** Power gone: what waited for the next flush is lost. */
  crash(): void {
    this.unflushed = new Map();
    this.flushing = false;
  }

  authenticate(request: AuthRequest): Promise<AuthResult> {
    return this.answer(this.latencyMs + (request.apiToken === undefined ? 0 : WRITE_MS), () =>
      this.decide(request),
    );
  }

  ownerOf(agentId: string): Promise<string | null> {
    return this.answer(this.latencyMs, () => (this.agents.has(agentId) ? USER : null));
  }

  saveRequestsUsed(sessionHash: string, used: number): Promise<void> {
    this.watcher.requestsSaved(sessionHash, used);
    this.unflushed.set(sessionHash, used);
    this.flushSoon();
    return Promise.resolve();
  }

  agentSeen(agentId: string, nowMs: number, report: AgentReport | null): Promise<void> {
    this.lastSeen.set(agentId, nowMs);
    if (report?.runtime != null) this.watcher.stored(report.runtime);
    return Promise.resolve();
  }

  private flushSoon(): void {
    if (this.flushing) return;
    this.flushing = true;
    this.clock.after(FLUSH_MS, () => {
      this.flushing = false;
      for (const [sessionHash, used] of this.unflushed) {
        const session = this.sessions.get(sessionHash);
        if (session !== undefined) session.used = used;
      }
      this.unflushed.clear();
    });
  }

  private answer<T>(ms: number, decide: () => T): Promise<T> {
    return new Promise((resolve, reject) => {
      this.clock.after(ms, () => {
        if (this.away > 0) reject(new Error("the store is unavailable"));
        else resolve(decide());
        this.watcher.stir();
      });
    });
  }

  private decide({ apiToken, sessionToken, clientType, agentId, nowMs }: AuthRequest): AuthResult {
    const side = clientType === "client" ? "client" : "agent";
    if (sessionToken !== undefined) return this.bySession(sessionToken, side, agentId, nowMs);
    const token = apiToken ?? "";
    const expected = side === "client" ? "account" : "agent";
    const kind = tokenKind(token);
    if (kind !== null && kind !== expected) {
      const error = `Expected ${TOKEN_NAMES[expected]}, got ${TOKEN_NAMES[kind]}`;
      return { ok: false, code: "WRONG_TOKEN_KIND", error, counted: false };
    }
    if (side === "client") {
      if (token !== this.accountToken) return INVALID(true);
    } else {
      const owner = this.agentByToken.get(hash(token));
      if (owner === undefined) return INVALID(true);
      if (owner !== agentId || this.agents.get(owner) !== hash(token)) return INVALID(false);
    }
    const session = makeToken("session", this.draws.bytes(32));
    const expiresAtMs = nowMs + this.ttlMs;
    this.sessions.set(hash(session), { side, agentId: agentId ?? "", expiresAtMs, used: 0 });
    this.forgetExpired(nowMs);
    this.watcher.stored(hash(session));
    return this.admit(session, hash(session));
  }

  private bySession(
    token: string,
    side: string,
    agentId: string | undefined,
    nowMs: number,
  ): AuthResult {
    const session = this.sessions.get(hash(token));
    if (session === undefined || session.side !== side) return INVALID(false);
    if (side === "agent" && session.agentId !== agentId) return INVALID(false);
    if (session.expiresAtMs <= nowMs) {
      return { ok: false, code: "SESSION_EXPIRED", error: "Session token expired", counted: false };
    }
    return this.admit(token, hash(token));
  }

  private admit(sessionToken: string, sessionHash: string): AuthResult {
    const session = this.sessions.get(sessionHash) as Session;
    const common = {
      ok: true as const,
      userId: USER,
      sessionHash,
      sessionToken,
      expiresAtMs: session.expiresAtMs,
    };
    return session.side === "client"
      ? { ...common, role: "client", requestsUsed: session.used }
      : { ...common, role: "agent", agentId: session.agentId, loginNumber: 0 };
  }

  /** Sessions are in the order of their issue, and so of their end. */
  private forgetExpired(nowMs: number): void {
    for (const [key, { expiresAtMs }] of this.sessions) {
      if (nowMs - expiresAtMs < KEPT_MS) return;
      this.sessions.delete(key);
    }
  }
}
