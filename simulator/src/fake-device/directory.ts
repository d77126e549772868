/**
 * The accounts of a relay in memory: one user, its agents, and the tokens of both. It is the hub's
 * store, and REST reads and writes it.
 */
import { AGENT_ID_PATTERN, makeToken, SESSION_TTL_S, type TokenKind } from "@blindrelay/protocol";
import type {
  AgentReport,
  AuthRequest,
  AuthResult,
  HubLookups,
  WriteBehind,
} from "@blindrelay/relay-server/core";
import {
  admitted,
  EndedTokens,
  type Found,
  refusalOf,
  type StoredSession,
  sideOf,
  tokenOf,
} from "../base/credentials.ts";

/** The one user of a relay in memory. */
export const USER = { id: "00000000-0000-4000-8000-000000000001", username: "ada" } as const;
const MAX_AGENTS = 10_000;
/** The oldest sessions are forgotten first. */
const MAX_SESSIONS = 10_000;

/** An agent as REST shows it, and its relay token. */
export interface AgentRecord {
  readonly agentId: string;
  name: string;
  relayToken: string;
  labels: Record<string, string>;
  metadata: Record<string, unknown>;
  readonly createdAt: string;
  lastSeen: string | null;
  runtime: string | null;
  firmwareVersion: string | null;
}

export interface Session extends StoredSession {
  readonly token: string;
}

export const randomBytes = (length: number): Uint8Array =>
  crypto.getRandomValues(new Uint8Array(length));

const newToken = (kind: TokenKind): string => makeToken(kind, randomBytes(32));
const now = (): string => new Date().toISOString();

export class Directory implements HubLookups, WriteBehind {
  readonly agents = new Map<string, AgentRecord>();
  accountToken = newToken("account");
  readonly createdAt = now();
  private readonly agentByToken = new Map<string, string>();
  private readonly sessions = new Map<string, Session>();
  private readonly ended = new EndedTokens();

  /** Throws a RangeError if the id is not an agent's, is taken, or there are too many. */
  addAgent(agentId: string, name: string, metadata: Record<string, unknown> = {}): AgentRecord {
    if (!new RegExp(AGENT_ID_PATTERN).test(agentId)) {
      throw new RangeError(`not an agent id: ${agentId}`);
    }
    if (this.agents.has(agentId)) throw new RangeError(`there is an agent ${agentId} already`);
    if (this.agents.size >= MAX_AGENTS) throw new RangeError(`at most ${MAX_AGENTS} agents`);
    const record: AgentRecord = {
      agentId,
      name,
      labels: {},
      metadata,
      relayToken: newToken("agent"),
      createdAt: now(),
      lastSeen: null,
      runtime: null,
      firmwareVersion: null,
    };
    this.agents.set(agentId, record);
    this.agentByToken.set(record.relayToken, agentId);
    return record;
  }

  rotateAgent(record: AgentRecord): void {
    this.endAgent(record);
    record.relayToken = newToken("agent");
    this.agentByToken.set(record.relayToken, record.agentId);
  }

  removeAgent(agentId: string): void {
    const record = this.agents.get(agentId);
    if (record === undefined) return;
    this.agents.delete(agentId);
    this.endAgent(record);
  }

  rotateAccount(): void {
    this.ended.add(this.accountToken);
    this.accountToken = newToken("account");
    this.endSessions(({ side }) => side === "client");
  }

  addSession(side: Session["side"], agentId = ""): Session {
    const token = newToken("session");
    const expiresAtMs = Date.now() + SESSION_TTL_S * 1000;
    const session = { token, side, userId: USER.id, agentId, expiresAtMs, used: 0 };
    this.sessions.set(token, session);
    if (this.sessions.size > MAX_SESSIONS) {
      const [oldest] = this.sessions.values();
      this.endSession(oldest as Session);
    }
    return session;
  }

  /** A client's session that is still valid. */
  clientSession(token: string): Session | undefined {
    const session = this.sessions.get(token);
    return session?.side === "client" && session.expiresAtMs > Date.now() ? session : undefined;
  }

  private endAgent({ agentId, relayToken }: AgentRecord): void {
    this.agentByToken.delete(relayToken);
    this.ended.add(relayToken);
    this.endSessions((session) => session.agentId === agentId);
  }

  private endSessions(which: (session: Session) => boolean): void {
    for (const session of [...this.sessions.values()]) {
      if (which(session)) this.endSession(session);
    }
  }

  private endSession({ token }: Session): void {
    this.sessions.delete(token);
    this.ended.add(token);
  }

  private find(token: string): Found {
    const session = this.sessions.get(token);
    if (session !== undefined) return { ...session, holder: `${session.side}_session` };
    const persistent = { expiresAtMs: null, used: 0 };
    if (token === this.accountToken) return { ...persistent, holder: "account", agentId: null };
    const agentId = this.agentByToken.get(token);
    if (agentId !== undefined) return { ...persistent, holder: "agent", agentId };
    return this.ended.has(token) ? "ended" : null;
  }

  // ---- for the hub

  async authenticate(request: AuthRequest): Promise<AuthResult> {
    const token = tokenOf(request);
    const refusal = refusalOf(request, this.find(token), Date.now());
    if (refusal !== null) return refusal;
    const agentId = this.agentByToken.get(token);
    const session = this.sessions.get(token) ?? this.addSession(sideOf(request), agentId);
    // Nothing is stored here, so a token is its own hash.
    const result = admitted(session, session.token, session.token, 0);
    const { renews } = request;
    const isRenewed = renews !== undefined && this.sessions.get(renews)?.side === "client";
    return isRenewed && result.ok && result.role === "client" ? { ...result, renews } : result;
  }

  async ownerOf(agentId: string): Promise<string | null> {
    return this.agents.has(agentId) ? USER.id : null;
  }

  /** Asked for access keys only, and there are none here. */
  labelsOf(): null {
    return null;
  }

  async saveRequestsUsed(sessionHash: string, used: number): Promise<void> {
    const session = this.sessions.get(sessionHash);
    if (session !== undefined) session.used = used;
  }

  async agentSeen(agentId: string, nowMs: number, report: AgentReport | null): Promise<void> {
    const record = this.agents.get(agentId);
    if (record === undefined) return;
    record.lastSeen = new Date(nowMs).toISOString();
    if (report === null) return;
    record.runtime = report.runtime ?? record.runtime;
    record.firmwareVersion = report.firmwareVersion ?? record.firmwareVersion;
  }
}
