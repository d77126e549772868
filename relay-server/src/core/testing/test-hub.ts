/**
 * For tests: a hub with everything around it under the test's control: a clock we move, links that
 * lead to peers we play, and a store that knows users, agents and sessions. Nothing is stubbed: the
 * store issues and looks up tokens, a link queues bytes when its peer does not read.
 */
import { SESSION_TTL_S } from "@blindrelay/protocol";
import { encodeClientAuth, PONG_TEXT } from "@blindrelay/protocol/wire";
import { ALONE, type Bus, type BusPort, type Claim } from "../bus.ts";
import type { Connection } from "../connections/connection.ts";
import { Hub } from "../hub.ts";
import { type HubLimits, TICK_MS } from "../limits/limits.ts";
import { Lockout } from "../limits/lockout.ts";
import type { AgentReport, Frame, HubLink } from "../link.ts";
import type { AuthRequest, AuthResult, HubPort } from "../ports.ts";

export type Fields = Record<string, unknown>;

const START_MS = 1_767_225_600_000; // 2026-01-01T00:00:00Z

/**
 * Answers as the store does: tokens read `acct:<user>`, `agt:<agent>`, `key:<id>`,
 * `sess:<kind>:<who>:<n>`.
 */
export class MemoryStore {
  readonly users = new Set<string>();
  /** User by agent. */
  readonly owners = new Map<string, string>();
  /** By agent; none: no labels. */
  readonly labels = new Map<string, Readonly<Record<string, string>>>();
  /** Access keys by identifier. */
  readonly keys = new Map<
    string,
    {
      readonly userId: string;
      /** Null: all agents. */
      readonly site: string | null;
      readonly expiresAtMs: number | null;
    }
  >();
  readonly sessions = new Map<string, { who: string; expiresAtMs: number; used: number }>();
  readonly seen: {
    agentId: string;
    nowMs: number;
    report: AgentReport | null;
    online: boolean;
  }[] = [];
  /** While true, look-ups fail as they do when a database is unavailable. */
  broken = false;
  #issued = 0;
  #logins = 0;

  authenticate(request: AuthRequest): AuthResult {
    const { apiToken, sessionToken, clientType, agentId, nowMs } = request;
    const side = clientType === "client" ? "client" : "agent";
    if (this.broken) {
      return { ok: false, code: "UNAVAILABLE", error: "The store is away", counted: false };
    }
    if (sessionToken !== undefined) {
      return this.#bySession(sessionToken, side, agentId, nowMs);
    }
    const [kind, who] = (apiToken ?? "").split(":") as [string, string];
    if (kind === "key" && side === "client") return this.#byKey(who, nowMs);
    if (kind === (side === "client" ? "agt" : "acct")) {
      const error = "Expected one kind of token, got the other";
      return { ok: false, code: "WRONG_TOKEN_KIND", error, counted: true };
    }
    const known = side === "client" ? this.users.has(who) : this.owners.has(who) && who === agentId;
    if (!known) {
      return INVALID;
    }
    this.#issued += 1;
    const token = `sess:${side}:${who}:${this.#issued}`;
    this.sessions.set(token, { who, expiresAtMs: nowMs + SESSION_TTL_S * 1000, used: 0 });
    const result = this.#accept(side, who, token);
    const { renews = "" } = request;
    const isTheirs = this.sessions.get(renews)?.who === who && renews.startsWith("sess:client:");
    return isTheirs && result.ok && result.role === "client"
      ? { ...result, renews: hashOf(renews) }
      : result;
  }

  #byKey(id: string, nowMs: number): AuthResult {
    const key = this.keys.get(id);
    if (key === undefined) return INVALID;
    const { userId, site, expiresAtMs } = key;
    const matches =
      site === null
        ? null
        : (_: string, labels: { readonly site?: string }) => labels.site === site;
    const agents = [...this.owners.keys()].filter(
      (agentId) =>
        this.owners.get(agentId) === userId && matches?.(agentId, this.labels.get(agentId) ?? {}),
    );
    this.#issued += 1;
    const token = `sess:client:${userId}:${this.#issued}`;
    const endsAtMs = Math.min(nowMs + SESSION_TTL_S * 1000, expiresAtMs ?? Infinity);
    this.sessions.set(token, { who: userId, expiresAtMs: endsAtMs, used: 0 });
    const result = this.#accept("client", userId, token) as Extract<AuthResult, { role: "client" }>;
    return { ...result, key: { id, matches, agents: matches && agents } };
  }

  #bySession(token: string, side: string, agentId: string | undefined, nowMs: number): AuthResult {
    const session = this.sessions.get(token);
    if (session === undefined || !token.startsWith(`sess:${side}:`)) {
      return INVALID;
    }
    if (side === "agent" && session.who !== agentId) {
      return INVALID;
    }
    if (session.expiresAtMs <= nowMs) {
      const error = "Session token expired";
      return { ok: false, code: "SESSION_EXPIRED", error, counted: false };
    }
    return this.#accept(side, session.who, token);
  }

  #accept(side: string, who: string, token: string): AuthResult {
    const { expiresAtMs, used } = this.sessions.get(token)!;
    const common = {
      ok: true as const,
      sessionHash: hashOf(token),
      sessionToken: token,
      expiresAtMs,
    };
    if (side === "client") return { ...common, role: "client", userId: who, requestsUsed: used };
    const userId = this.owners.get(who)!;
    this.#logins += 1;
    return { ...common, role: "agent", userId, agentId: who, loginNumber: this.#logins };
  }
}

/** In characters that a bus takes. */
export const hashOf = (token: string): string => token.replaceAll(":", "_");

const INVALID: AuthResult = {
  ok: false,
  code: "INVALID_TOKEN",
  error: "Invalid token",
  counted: true,
};

/** The far end of one link, and the link itself. */
export class VirtualPeer implements HubLink {
  readonly world: World;
  connection!: Connection;
  /** What arrived, pings left out. */
  readonly inbox: Fields[] = [];
  /** The same as it arrived. */
  readonly frames: Frame[] = [];
  pings = 0;
  closed: { code: number; reason: string } | null = null;
  paused = false;
  /** While true the peer does not answer pings. */
  silent = false;
  /** While true the peer reads nothing, and bytes pile up on the relay. */
  stalled = false;
  /** Whether the socket is gone. */
  hungUp = false;
  #queued = 0;

  constructor(world: World) {
    this.world = world;
  }

  // what the peer does

  /** Sends one message, an object as JSON or a text as it is; answers the bytes it sent. */
  say(message: Fields | string): Uint8Array {
    const text = typeof message === "string" ? message : JSON.stringify(message);
    const frame = new TextEncoder().encode(text);
    this.world.hub.receive(this.connection, text, frame, this.world.now);
    this.world.settle();
    return frame;
  }

  sayBinary(bytes: Uint8Array): void {
    this.world.hub.receive(this.connection, null, bytes, this.world.now);
    this.world.settle();
  }

  hangUp(): void {
    if (!this.hungUp) {
      this.hungUp = true;
      this.world.hub.closed(this.connection, this.world.now);
    }
  }

  /** Reads everything that waited. */
  read(): void {
    this.stalled = false;
    this.#queued = 0;
  }

  /** The messages since the last call. */
  take(): Fields[] {
    return this.inbox.splice(0);
  }

  takeFrames(): Frame[] {
    return this.frames.splice(0);
  }

  /** The codes of the errors since the last call; throws when something else arrived too. */
  codes(): unknown[] {
    return this.take().map((message) => {
      if (message.type !== "error") throw new Error(`unexpected ${JSON.stringify(message)}`);
      return message.code;
    });
  }

  // what the relay does with the link

  send(frame: Frame): void {
    if (this.closed !== null || this.hungUp) throw new Error("sent on a link that has ended");
    const text = typeof frame === "string" ? frame : new TextDecoder().decode(frame);
    if (this.stalled) {
      this.#queued += frame.length;
      this.world.later(() => this.world.hub.queues(this.connection));
    }
    const message = JSON.parse(text) as Fields;
    if (message.type === "ping") {
      this.pings += 1;
      if (!this.silent) this.world.later(() => this.#answerPing());
    } else {
      this.inbox.push(message);
      this.frames.push(frame);
    }
  }

  queued(): number {
    return this.#queued;
  }

  close(code: number, reason: string): void {
    if (this.closed !== null) throw new Error("closed twice");
    this.closed = { code, reason };
    this.world.later(() => this.hangUp());
  }

  pause(): void {
    this.paused = true;
  }

  resume(): void {
    this.paused = false;
  }

  #answerPing(): void {
    if (this.closed === null && !this.hungUp) this.say(PONG_TEXT);
  }
}

export class World {
  now = START_MS;
  readonly store: MemoryStore;
  readonly lockout = new Lockout();
  readonly hub: Hub;
  readonly peers: VirtualPeer[] = [];
  readonly saved: { sessionHash: string; used: number }[] = [];
  /** While true, look-ups wait for `answer`. */
  slowStore = false;
  /** While true, a look-up is answered before the call that asks for it returns. */
  storeAtHand = false;
  readonly lookUps: (() => void)[] = [];
  /** In a cluster: the sessions for which requests are to be reserved. */
  readonly reservations: string[] = [];
  /** How the next turn of the event loop comes about. */
  turn = (happen: () => void): void => this.later(happen);
  #later: (() => void)[] = [];

  constructor(
    limits: Partial<HubLimits> = {},
    bus: BusPort & Partial<Pick<Bus, "claim">> = ALONE,
    reserves = false,
    store = new MemoryStore(),
  ) {
    this.store = store;
    const port: HubPort = {
      authenticate: (connection, request) => {
        const result = this.store.authenticate(request);
        const finish = (claim?: Claim) =>
          this.hub.authenticated(connection, result, this.now, claim);
        this.#whenAnswered(() => {
          if (bus.claim === undefined || !result.ok || result.role === "client") finish();
          else if (!this.hub.isAuthenticating(connection)) finish();
          else bus.claim(result.userId, result.agentId, result.loginNumber, finish);
        });
      },
      findOwner: (connection, agentId) => {
        const owner = this.store.owners.get(agentId) ?? null;
        const { broken } = this.store;
        this.#whenAnswered(() =>
          broken
            ? this.hub.ownerUnknown(connection, this.now)
            : this.hub.ownerFound(connection, owner, this.now),
        );
      },
      findLabels: (agentId) => {
        const userId = this.store.owners.get(agentId);
        const labels = this.store.labels.get(agentId) ?? {};
        const { broken } = this.store;
        this.#whenAnswered(() =>
          broken
            ? this.hub.labelsUnknown(agentId, this.now)
            : this.hub.labelsFound(
                agentId,
                userId === undefined ? null : { userId, labels },
                this.now,
              ),
        );
      },
      nextTurn: () => this.turn(() => this.hub.turn(this.now)),
      saveRequestsUsed: (sessionHash, used) => {
        this.saved.push({ sessionHash, used });
        const session = this.store.sessions.get(sessionHash.replaceAll("_", ":"));
        if (session !== undefined) session.used = used;
      },
      agentSeen: (agentId, nowMs, report, online) => {
        this.store.seen.push({ agentId, nowMs, report, online });
      },
      ...(reserves
        ? { reserveRequests: (sessionHash: string) => this.reservations.push(sessionHash) }
        : {}),
    };
    this.hub = new Hub(port, { lockout: this.lockout, limits, bus }, this.now);
  }

  user(userId: string, ...agentIds: string[]): void {
    this.store.users.add(userId);
    for (const agentId of agentIds) this.store.owners.set(agentId, userId);
  }

  /** A connection that has sent nothing yet. */
  connect(address = "192.0.2.1"): VirtualPeer {
    const peer = new VirtualPeer(this);
    peer.connection = this.hub.connect(peer, address, this.now);
    this.peers.push(peer);
    this.settle();
    return peer;
  }

  /** A client that is online, its `auth_response` taken. */
  client(userId: string, presence = false): VirtualPeer & { session: string } {
    const peer = this.connect();
    peer.say(encodeClientAuth(`acct:${userId}`, false, presence));
    return Object.assign(peer, { session: this.#welcome(peer) });
  }

  /** A client that comes in with an access key. */
  clientWithKey(id: string, presence = false): VirtualPeer {
    const peer = this.connect();
    peer.say(encodeClientAuth(`key:${id}`, false, presence));
    this.#welcome(peer);
    return peer;
  }

  /** The same, with a session token it has. */
  clientAgain(sessionToken: string): VirtualPeer {
    const peer = this.connect();
    peer.say(encodeClientAuth(sessionToken, true, false));
    this.#welcome(peer);
    return peer;
  }

  agent(agentId: string): VirtualPeer {
    const peer = this.connect();
    peer.say(authOf(agentId));
    this.#welcome(peer);
    return peer;
  }

  /** Lets time pass, tick by tick. */
  advance(ms: number): void {
    const end = this.now + ms;
    while (this.now < end) {
      this.now = Math.min(end, this.now + TICK_MS);
      this.hub.tick(this.now);
      this.settle();
    }
  }

  /**
   * Lets happen what follows without time passing: answers of the store, of peers. False: nothing.
   */
  settle(): boolean {
    let isBusy = false;
    while (this.#later.length > 0 || (!this.slowStore && this.lookUps.length > 0)) {
      isBusy = true;
      for (const happen of this.#later.splice(0)) happen();
      if (!this.slowStore) this.answer();
    }
    return isBusy;
  }

  #whenAnswered(happen: () => void): void {
    if (this.storeAtHand) happen();
    else this.lookUps.push(happen);
  }

  /** The store answers what it was asked. */
  answer(): void {
    for (const happen of this.lookUps.splice(0)) happen();
  }

  later(happen: () => void): void {
    this.#later.push(happen);
  }

  /** How many messages were not forwarded, by reason. */
  dropped(): Fields {
    return Object.fromEntries(this.hub.counters.dropped);
  }

  #welcome(peer: VirtualPeer): string {
    const response = peer.inbox.shift();
    peer.frames.shift();
    if (response?.status !== "authenticated")
      throw new Error(`not let in: ${JSON.stringify(response)}`);
    return response.session_token as string;
  }
}

export const authOf = (agentId: string): Fields => ({
  type: "auth",
  api_token: `agt:${agentId}`,
  client_type: "agent",
  agent_id: agentId,
});

/** A packet as an object; the relay reads its sid only. */
export const packet = (sid: string, seq = 1, p = "AAAA"): Fields => ({ v: "1", sid, seq, p });

/** A `relay` envelope around a packet, or around any text. */
export const envelope = (payload: Fields | string, more: Fields = {}): Fields => ({
  type: "relay",
  payload: typeof payload === "string" ? payload : JSON.stringify(payload),
  ...more,
});
