/**
 * A model of the relay's store: credentials, owners, and the hub's pending writes. Answers take
 * time, an unavailable store fails, and a crash loses what was not flushed, as with the real one
 * (SQLite in WAL mode, a flush for what was promised, a second of write-behind for the rest).
 */
import { hash as digest } from "node:crypto";
import { makeToken, SESSION_MAX_REQUESTS, SESSION_TTL_S } from "@blindrelay/protocol";
import type { Notice } from "@blindrelay/relay-server/cluster";
import type { AgentReport, AuthRequest, AuthResult } from "@blindrelay/relay-server/core";
import {
  admitted,
  EndedTokens,
  type Found,
  refusalOf,
  type StoredSession,
  sideOf,
  tokenOf,
} from "../base/credentials.ts";
import { getOrMake } from "../base/maps.ts";
import type { Stream } from "../base/random-streams.ts";
import { DEFAULT_ACCOUNT } from "../scenario/plan.ts";
import type { Clock } from "./clock.ts";
import { FLUSH_MS, RelayStore, type StoreWatcher, WRITE_MS } from "./relay-store.ts";

/** An expired session is remembered as such for a while. */
const KEPT_MS = 3_600_000;

/** What one node of a cluster reserves at a time, as with the real store. */
const MAX_BLOCK = 64;

/** As of the real one: whoever asked has hung up, and gets no session. */
const UNWANTED: AuthResult = {
  ok: false,
  code: "UNAVAILABLE",
  error: "Nobody waits for the answer",
  counted: false,
};

const hash = (token: string): string => digest("sha256", token);

export class ModelStore extends RelayStore {
  readonly endsLinks = false;
  private readonly accountTokens = new Map<string, string>();
  private readonly userByToken = new Map<string, string>();
  private readonly owners = new Map<string, string>();
  private readonly notices: Notice[] = [];
  /** True if several nodes share it. */
  numbersLogins = false;
  private loginNumber = 0;
  private readonly ttlMs: number;
  private readonly agents = new Map<string, string>();
  /** Hash -> agent; includes tokens that were valid once. */
  private readonly agentByToken = new Map<string, string>();
  private readonly sessions = new Map<string, StoredSession>();
  /** Hashes of session tokens. */
  private readonly ended = new EndedTokens();
  private unflushed = new Map<string, number>();
  private readonly lastSeen = new Map<string, number>();
  private flushing = false;

  constructor(
    clock: Clock,
    draws: Stream,
    watcher: StoreWatcher,
    options: { latencyMs: number; ttlMs?: number },
  ) {
    super(clock, draws, watcher, options.latencyMs);
    this.ttlMs = options.ttlMs ?? SESSION_TTL_S * 1000;
    this.accountToken(DEFAULT_ACCOUNT);
  }

  accountToken(userId: string): string {
    return getOrMake(this.accountTokens, userId, () => {
      const token = makeToken("account", this.draws.bytes(32));
      this.userByToken.set(token, userId);
      return token;
    });
  }

  issueAgent(agentId: string, userId = this.owners.get(agentId) ?? DEFAULT_ACCOUNT): string {
    const token = makeToken("agent", this.draws.bytes(32));
    this.owners.set(agentId, userId);
    this.agents.set(agentId, hash(token));
    this.agentByToken.set(hash(token), agentId);
    for (const [key, session] of this.sessions) {
      if (session.side === "agent" && session.agentId === agentId) this.endSession(key);
    }
    this.watcher.stored(`${agentId} ${hash(token)}`);
    return token;
  }

  crash(): void {
    this.unflushed = new Map();
    this.flushing = false;
  }

  protected findOwner(agentId: string): string | null {
    return this.owners.get(agentId) ?? null;
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

  // ---- shared by several nodes

  /** Posted in the same transaction as the change. */
  post(kind: Notice["kind"], subject: string, at: number): Notice {
    const notice = { seq: this.notices.length + 1, kind, subject, at };
    this.notices.push(notice);
    return notice;
  }

  noticesAfter(seq: number): Promise<Notice[]> {
    return this.answer(this.latencyMs, () => this.notices.slice(seq));
  }

  get lastNotice(): number {
    return this.notices.length;
  }

  /** Reserves requests of a session for one node; 0: none are left. */
  reserve(sessionHash: string): Promise<number> {
    return this.answer(this.latencyMs + WRITE_MS, () => {
      const session = this.sessions.get(sessionHash);
      if (session === undefined) return 0;
      const left = Math.max(0, SESSION_MAX_REQUESTS - session.used);
      const requests = Math.min(MAX_BLOCK, Math.floor((left + 3) / 4));
      session.used += requests;
      return requests;
    });
  }

  /** A negative number returns requests. */
  addRequests(counts: ReadonlyMap<string, number>): Promise<void> {
    return this.answer(this.latencyMs + WRITE_MS, () => {
      for (const [sessionHash, requests] of counts) {
        const session = this.sessions.get(sessionHash);
        if (session !== undefined) session.used += requests;
      }
    });
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

  protected decide(request: AuthRequest): AuthResult {
    const { nowMs } = request;
    if (request.isWanted?.() === false) return UNWANTED;
    const token = tokenOf(request);
    const refusal = refusalOf(request, this.find(token), nowMs);
    if (refusal !== null) return refusal;
    if (this.sessions.has(hash(token))) return this.admit(token, hash(token));
    const agentId = this.agentByToken.get(hash(token)) ?? "";
    const userId = this.userByToken.get(token) ?? this.owners.get(agentId) ?? DEFAULT_ACCOUNT;
    const session = makeToken("session", this.draws.bytes(32));
    const expiresAtMs = nowMs + this.ttlMs;
    const side = sideOf(request);
    this.sessions.set(hash(session), { side, userId, agentId, expiresAtMs, used: 0 });
    this.forgetExpired(nowMs);
    this.watcher.stored(hash(session));
    return this.renewing(request, this.admit(session, hash(session)));
  }

  /** Sessions are forgotten an hour after their end, and until then can be renewed. */
  private renewing({ renews }: AuthRequest, result: AuthResult): AuthResult {
    if (renews === undefined || !result.ok || result.role !== "client") return result;
    const renewed = this.sessions.get(hash(renews));
    const isTheirs = renewed?.side === "client" && renewed.userId === result.userId;
    return isTheirs ? { ...result, renews: hash(renews) } : result;
  }

  private find(token: string): Found {
    const key = hash(token);
    const session = this.sessions.get(key);
    if (session !== undefined) return { ...session, holder: `${session.side}_session` };
    const persistent = { expiresAtMs: null, used: 0 };
    if (this.userByToken.has(token)) return { ...persistent, holder: "account", agentId: null };
    const agentId = this.agentByToken.get(key);
    if (agentId === undefined) return this.ended.has(key) ? "ended" : null;
    return this.agents.get(agentId) === key ? { ...persistent, holder: "agent", agentId } : "ended";
  }

  private admit(sessionToken: string, sessionHash: string): AuthResult {
    const session = this.sessions.get(sessionHash) as StoredSession;
    if (this.numbersLogins && session.side === "agent") this.loginNumber += 1;
    return admitted(session, sessionToken, sessionHash, this.loginNumber);
  }

  /** Sessions are in the order of issue, and so of expiry. */
  private forgetExpired(nowMs: number): void {
    for (const [key, { expiresAtMs }] of this.sessions) {
      if (nowMs - expiresAtMs < KEPT_MS) return;
      this.endSession(key);
    }
  }

  private endSession(sessionHash: string): void {
    this.sessions.delete(sessionHash);
    this.ended.add(sessionHash);
  }
}
