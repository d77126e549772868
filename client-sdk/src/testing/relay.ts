/**
 * The protocol's fake relay on virtual time, with the part of section 3 that a client sees: session
 * tokens, bindings, limits, and hooks that lose, delay and refuse.
 */
import {
  CLOSE_POLICY,
  CLOSE_RESTART,
  PING_INTERVAL_MS,
  SESSION_MAX_REQUESTS,
  SESSION_TTL_S,
} from "@blindrelay/protocol";
import {
  type CarriedPacket,
  type FakeLink,
  FakeRelay,
} from "@blindrelay/protocol/testing/fake-relay";
import { type Credentials, decodeForClient, firstPart } from "@blindrelay/protocol/wire";
import type { Link, LinkEvents, LinkPort, TimerPort } from "../ports.ts";

/** The relay's view of an agent. */
export interface RelayedAgent {
  receive(text: string): void;
}

/** A hook's decision about one packet: deliver after this many ms, or null to lose it. */
type Fate = number | null;

/** A failed `auth_response`. */
export interface Refusal {
  readonly code: string;
  readonly error: string;
  /** Seconds. */
  readonly retryAfter: number;
}

interface Connection {
  readonly events: LinkEvents;
  readonly link: FakeLink;
  open: boolean;
  token: string | null;
  /** The session token that it renews. */
  renews: string | null;
  readonly bound: Set<string>;
  /** In each direction. */
  readonly latencyMs: number;
}

interface Session {
  used: number;
  readonly expiresAt: number;
}

const LATENCY_MS = 5;

export class MemoryRelay implements LinkPort {
  /** Every text from a client, in order, including `auth`. */
  readonly received: string[] = [];
  readonly agents = new Map<string, RelayedAgent>();
  /** Agents known to the relay, online or not. */
  readonly known = new Set<string>();
  accountTokens: string[];
  maxRequests = SESSION_MAX_REQUESTS;
  sessionTtlS = SESSION_TTL_S;
  maxBindings = 1_024;
  reachable = true;
  /** Neither answers nor pings, nor closes. */
  silent = false;
  toAgent: (agentId: string, text: string) => Fate = () => LATENCY_MS;
  toClient: (agentId: string, text: string) => Fate = () => LATENCY_MS;
  /** Returns a code to refuse the packet with that error. */
  refuse: (agentId: string, packet: string) => string | null = () => null;
  /** What the next link needs for each message, each way. */
  latencyMs = LATENCY_MS;
  /** An older one does not know `renews`. */
  renews = true;
  /** Returns a failed auth_response instead of the usual handling. */
  refuseAuth: () => Refusal | null = () => null;

  private readonly timer: TimerPort;
  private readonly relay: FakeRelay;
  private readonly connections = new Set<Connection>();
  private readonly sessions = new Map<string, Session>();
  private readonly bindings = new Map<string, { connection: Connection; agentId: string }>();
  private issued = 0;

  constructor(timer: TimerPort, accountTokens: string[], makeToken: (n: number) => string) {
    this.timer = timer;
    this.accountTokens = accountTokens;
    this.makeToken = makeToken;
    this.relay = new FakeRelay({
      auth: (link, credentials) => this.authenticate(this.connectionOf(link), credentials),
      packet: (link, packet) => this.forward(this.connectionOf(link), packet),
    });
  }

  private readonly makeToken: (n: number) => string;

  get connectionCount(): number {
    return this.connections.size;
  }

  connect(_url: string, events: LinkEvents): Link {
    const { latencyMs } = this;
    const link = this.relay.attach({
      send: (text) => {
        this.timer.set(latencyMs, () => {
          if (connection.open && !this.silent) events.received(text);
        });
      },
      close: (code, reason) => this.cut(connection, code, reason),
    });
    const connection: Connection = {
      events,
      link,
      open: false,
      token: null,
      renews: null,
      bound: new Set(),
      latencyMs,
    };
    this.timer.set(latencyMs, () => {
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
        this.timer.set(latencyMs, () => {
          if (!connection.open || this.silent) return;
          this.received.push(text);
          link.receive(text);
        });
      },
      close: (code, reason) => {
        this.timer.set(latencyMs, () => this.cut(connection, code, reason));
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
    for (const { link } of this.connections) link.restarting(reconnectInS);
    this.timer.set(LATENCY_MS, () => this.cutAll(CLOSE_RESTART));
  }

  /** All session tokens are invalid from now on. */
  forgetSessions(): void {
    this.sessions.clear();
  }

  /** Loses all bindings, as happens to a client with too many. */
  forgetBindings(): void {
    this.bindings.clear();
  }

  /** Forwards an agent's packet to the client that its sid is bound to. */
  fromAgent(agentId: string, text: string): void {
    const bound = this.bindings.get(firstOf(text));
    if (bound === undefined || bound.agentId !== agentId) return;
    const fate = this.toClient(agentId, text);
    if (fate === null) return;
    const { latencyMs } = bound.connection;
    this.timer.set(fate + latencyMs - LATENCY_MS, () => {
      if (bound.connection.open && !this.silent) bound.connection.events.received(text);
    });
  }

  setPresence(agentId: string, online: boolean): void {
    for (const { link, token } of this.connections) {
      if (token !== null) link.agentStatus(agentId, online);
    }
  }

  /** Sends an `error` about a packet to every client. */
  errorToAll(code: string, sid: string): void {
    for (const { link } of this.connections) link.error(code, { sid, requestId: null });
  }

  /** Sends any text to every client. */
  sayToAll(text: string): void {
    for (const { link } of this.connections) link.say(text);
  }

  /** Sends any text on the connection that has been open longest. */
  sayToOldest(text: string): void {
    for (const { link } of this.connections) {
      link.say(text);
      return;
    }
  }

  private connectionOf(link: FakeLink): Connection {
    const found = [...this.connections].find((connection) => connection.link === link);
    if (found === undefined) throw new Error("a message on a link that is closed");
    return found;
  }

  private ping(connection: Connection): void {
    this.timer.set(PING_INTERVAL_MS, () => {
      if (!connection.open) return;
      connection.link.ping();
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

  private authenticate(connection: Connection, credentials: Credentials): void {
    const { link } = connection;
    const refusal = this.refuseAuth();
    if (refusal !== null) {
      link.refuse(refusal.code, refusal.error, refusal.retryAfter);
      return;
    }
    let token = credentials.sessionToken;
    if (token === undefined) {
      if (!this.accountTokens.includes(credentials.apiToken ?? "")) {
        link.refuse("INVALID_TOKEN", "Invalid token");
        return;
      }
      token = this.makeToken(this.issued++);
      this.sessions.set(token, { used: 0, expiresAt: this.timer.now() + this.sessionTtlS * 1000 });
    }
    const session = this.sessions.get(token);
    if (session === undefined) {
      link.refuse("SESSION_EXPIRED", "Session token expired");
      return;
    }
    if (session.used >= this.maxRequests) {
      link.refuse("LIMIT_EXCEEDED", "Session token used up");
      return;
    }
    connection.token = token;
    const leftS = Math.ceil((session.expiresAt - this.timer.now()) / 1000);
    const { renews = "" } = credentials;
    if (this.renews && this.sessions.has(renews)) connection.renews = renews;
    link.accept(token, leftS, this.maxRequests, connection.renews !== null);
    if (credentials.presence) for (const id of this.agents.keys()) this.setPresence(id, true);
  }

  private forward(connection: Connection, packet: CarriedPacket): void {
    const sid = packet.sid ?? "";
    const first = firstPart(sid);
    const complain = (code: string) =>
      connection.link.error(code, { sid, requestId: packet.requestId });
    const session = this.sessions.get(connection.token as string) as Session;
    if (session.used >= this.maxRequests) {
      complain("LIMIT_EXCEEDED");
      this.timer.set(LATENCY_MS, () => this.cut(connection, CLOSE_POLICY, ""));
      return;
    }
    session.used++;
    const bound = this.bindings.get(first);
    const agentId = packet.agentId ?? bound?.agentId;
    if (agentId === undefined || (!packet.enveloped && bound?.connection !== connection)) {
      complain("UNKNOWN_SESSION");
      return;
    }
    const refusal = this.refuse(agentId, packet.text);
    if (refusal !== null) {
      complain(refusal);
      return;
    }
    if (!this.known.has(agentId)) {
      complain("AGENT_NOT_FOUND");
      return;
    }
    const binder = bound?.connection;
    const takesOver = [connection.token, connection.renews].includes(binder?.token ?? null);
    if (binder?.open && !takesOver) {
      complain("SID_IN_USE");
      return;
    }
    if (packet.enveloped) this.bind(connection, first, agentId);
    const agent = this.agents.get(agentId);
    if (agent === undefined) {
      complain("AGENT_OFFLINE");
      return;
    }
    const fate = this.toAgent(agentId, packet.text);
    if (fate !== null) this.timer.set(fate, () => agent.receive(packet.text));
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

/** The first part of the sid of an agent's packet. */
const firstOf = (text: string): string => {
  const message = decodeForClient(text);
  if (message.kind !== "packet") throw new Error(`an agent wrote ${text}`);
  return message.first;
};
