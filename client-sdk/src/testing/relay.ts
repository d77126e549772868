/**
 * A relay in memory for tests: as much of section 3 as a client sees, on virtual time, with hooks
 * that lose, delay and refuse. It reads sids only, like a real one.
 */
import {
  CLOSE_POLICY,
  CLOSE_RESTART,
  PING_INTERVAL_MS,
  SESSION_MAX_REQUESTS,
  SESSION_TTL_S,
} from "@blindrelay/protocol";
import type { Link, LinkEvents, LinkPort, TimerPort } from "../ports.ts";

/** What an agent is to the relay. */
export interface RelayedAgent {
  receive(text: string): void;
}

/** What a hook says about one packet: deliver after so many ms, or null to lose it. */
export type Fate = number | null;

interface Connection {
  readonly events: LinkEvents;
  open: boolean;
  token: string | null;
  readonly bound: Set<string>;
}

interface Session {
  used: number;
  readonly expiresAt: number;
}

const LATENCY_MS = 5;

export class MemoryRelay implements LinkPort {
  /** Every text of a client, in order, `auth` included. */
  readonly received: string[] = [];
  readonly agents = new Map<string, RelayedAgent>();
  /** Known to the relay, online or not. */
  readonly known = new Set<string>();
  accountTokens: string[];
  maxRequests = SESSION_MAX_REQUESTS;
  sessionTtlS = SESSION_TTL_S;
  maxBindings = 1_024;
  reachable = true;
  /** Neither answers nor pings, and does not close either. */
  silent = false;
  toAgent: (agentId: string, text: string) => Fate = () => LATENCY_MS;
  toClient: (agentId: string, text: string) => Fate = () => LATENCY_MS;
  /** A code refuses the packet with that error. */
  refuse: (agentId: string, packet: string) => string | null = () => null;
  /** A failed auth_response instead of the usual handling. */
  refuseAuth: (auth: { [key: string]: unknown }) => object | null = () => null;

  private readonly timer: TimerPort;
  private readonly connections = new Set<Connection>();
  private readonly sessions = new Map<string, Session>();
  private readonly bindings = new Map<string, { connection: Connection; agentId: string }>();
  private issued = 0;

  constructor(timer: TimerPort, accountTokens: string[], makeToken: (n: number) => string) {
    this.timer = timer;
    this.accountTokens = accountTokens;
    this.makeToken = makeToken;
  }

  private readonly makeToken: (n: number) => string;

  get connectionCount(): number {
    return this.connections.size;
  }

  connect(_url: string, events: LinkEvents): Link {
    const connection: Connection = { events, open: false, token: null, bound: new Set() };
    this.timer.set(LATENCY_MS, () => {
      if (!this.reachable) {
        events.closed(1006, "refused");
        return;
      }
      connection.open = true;
      this.connections.add(connection);
      events.opened();
      this.ping(connection);
    });
    return {
      send: (text) => {
        this.timer.set(LATENCY_MS, () => {
          if (connection.open && !this.silent) this.receive(connection, text);
        });
      },
      close: (code, reason) => {
        this.timer.set(LATENCY_MS, () => this.cut(connection, code, reason));
      },
    };
  }

  /** Ends every connection. */
  cutAll(code = 1006, reason = ""): void {
    for (const connection of [...this.connections]) this.cut(connection, code, reason);
  }

  /** Every client loses its connection, and the relay does not notice. */
  loseClients(): void {
    for (const { events } of this.connections) events.closed(1006, "");
  }

  /** Announces a restart, then closes. */
  restart(reconnectInS: number): void {
    for (const connection of this.connections) {
      this.tell(connection, { type: "error", code: "RESTARTING", reconnect_in: reconnectInS });
    }
    this.timer.set(LATENCY_MS, () => this.cutAll(CLOSE_RESTART));
  }

  /** All session tokens are worth nothing from now on. */
  forgetSessions(): void {
    this.sessions.clear();
  }

  /** Loses all bindings, as a client with too many sees it. */
  forgetBindings(): void {
    this.bindings.clear();
  }

  /** An agent's packet on its way to whoever its sid is bound to. */
  fromAgent(agentId: string, text: string): void {
    const bound = this.bindings.get(firstOf(text));
    if (bound === undefined || bound.agentId !== agentId) return;
    const fate = this.toClient(agentId, text);
    if (fate === null) return;
    this.timer.set(fate, () => {
      if (bound.connection.open && !this.silent) bound.connection.events.received(text);
    });
  }

  setPresence(agentId: string, online: boolean): void {
    const timestamp = "2026-01-01T00:00:00.000Z";
    for (const connection of this.connections) {
      if (connection.token === null) continue;
      this.tell(connection, { type: "agent_status", agent_id: agentId, online, timestamp });
    }
  }

  /** Says anything to every client. */
  tellAll(message: object): void {
    for (const connection of this.connections) this.tell(connection, message);
  }

  private tell(connection: Connection, message: object): void {
    this.timer.set(LATENCY_MS, () => {
      if (connection.open && !this.silent) connection.events.received(JSON.stringify(message));
    });
  }

  private ping(connection: Connection): void {
    this.timer.set(PING_INTERVAL_MS, () => {
      if (!connection.open) return;
      this.tell(connection, { type: "ping" });
      this.ping(connection);
    });
  }

  private cut(connection: Connection, code: number, reason: string): void {
    if (!connection.open) return;
    connection.open = false;
    this.connections.delete(connection);
    for (const first of connection.bound) {
      if (this.bindings.get(first)?.connection === connection) this.bindings.delete(first);
    }
    connection.events.closed(code, reason);
  }

  private receive(connection: Connection, text: string): void {
    this.received.push(text);
    const message = JSON.parse(text);
    if (message.type === "auth") this.authenticate(connection, message);
    else if (message.type === "relay") this.forward(connection, message.payload, message);
    else if (message.type === undefined) this.forward(connection, text, null);
  }

  private authenticate(connection: Connection, auth: { [key: string]: unknown }): void {
    const fail = (code: string, error: string) =>
      this.tell(connection, {
        type: "auth_response",
        status: "failed",
        code,
        error,
        retry_after: 0,
      });
    const refusal = this.refuseAuth(auth);
    if (refusal !== null) {
      this.tell(connection, { type: "auth_response", status: "failed", ...refusal });
      return;
    }
    let token = auth.session_token as string | undefined;
    if (token === undefined) {
      if (!this.accountTokens.includes(auth.api_token as string)) {
        fail("INVALID_TOKEN", "Invalid token");
        return;
      }
      token = this.makeToken(this.issued++);
      this.sessions.set(token, { used: 0, expiresAt: this.timer.now() + this.sessionTtlS * 1000 });
    }
    const session = this.sessions.get(token);
    if (session === undefined) {
      fail("SESSION_EXPIRED", "Session token expired");
      return;
    }
    if (session.used >= this.maxRequests) {
      fail("LIMIT_EXCEEDED", "Session token used up");
      return;
    }
    connection.token = token;
    this.tell(connection, {
      type: "auth_response",
      status: "authenticated",
      session_token: token,
      expires_in: Math.ceil((session.expiresAt - this.timer.now()) / 1000),
      max_requests: this.maxRequests,
    });
    if (auth.presence === true) for (const id of this.agents.keys()) this.setPresence(id, true);
  }

  private forward(
    connection: Connection,
    packet: string,
    envelope: { agent_id: string; request_id?: string } | null,
  ): void {
    const sid = JSON.parse(packet).sid as string;
    const first = firstOf(packet);
    const complain = (code: string) =>
      this.tell(connection, {
        type: "error",
        code,
        error: code,
        sid,
        ...(envelope?.request_id === undefined ? {} : { request_id: envelope.request_id }),
      });
    const session = this.sessions.get(connection.token as string) as Session;
    if (session.used >= this.maxRequests) {
      complain("LIMIT_EXCEEDED");
      this.timer.set(LATENCY_MS, () => this.cut(connection, CLOSE_POLICY, ""));
      return;
    }
    session.used++;
    const bound = this.bindings.get(first);
    const agentId = envelope?.agent_id ?? bound?.agentId;
    if (agentId === undefined || (envelope === null && bound?.connection !== connection)) {
      complain("UNKNOWN_SESSION");
      return;
    }
    const refusal = this.refuse(agentId, packet);
    if (refusal !== null) {
      complain(refusal);
      return;
    }
    if (!this.known.has(agentId)) {
      complain("AGENT_NOT_FOUND");
      return;
    }
    if (bound?.connection.open && bound.connection.token !== connection.token) {
      complain("SID_IN_USE");
      return;
    }
    if (envelope !== null) this.bind(connection, first, agentId);
    const agent = this.agents.get(agentId);
    if (agent === undefined) {
      complain("AGENT_OFFLINE");
      return;
    }
    const fate = this.toAgent(agentId, packet);
    if (fate !== null) this.timer.set(fate, () => agent.receive(packet));
  }

  private bind(connection: Connection, first: string, agentId: string): void {
    this.bindings.set(first, { connection, agentId });
    connection.bound.delete(first);
    connection.bound.add(first);
    if (connection.bound.size <= this.maxBindings) return;
    const [oldest] = connection.bound;
    connection.bound.delete(oldest as string);
    this.bindings.delete(oldest as string);
  }
}

const firstOf = (packet: string): string =>
  (JSON.parse(packet).sid as string).split(".")[0] as string;
