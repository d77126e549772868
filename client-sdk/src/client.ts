/**
 * The public API over the core: promises, AbortSignal, listeners. It is the same on every runtime;
 * the edges (node/, browser/) only supply the ports.
 */
import {
  AGENT_ID_PATTERN,
  accountTokenProblem,
  MIN_FOREIGN_SECRET_LENGTH,
  readToken,
  SESSION_RENEW_MS,
  tokenProblem,
} from "@blindrelay/protocol";
import {
  deviceKeyProblem,
  fromBase64url,
  isVersion,
  type Version,
} from "@blindrelay/protocol/crypto";
import { ClientCore, type LinkReport, type Presence } from "./core/client-core.ts";
import { CALL_TIMEOUT_MS, MIN_RENEW_MS } from "./core/defaults.ts";
import type { Peer, PeerEvents } from "./core/peer.ts";
import type { Missing } from "./core/session.ts";
import { CallError } from "./errors.ts";
import { Fleet } from "./fleet.ts";
import { Listeners } from "./listeners.ts";
import type { Log, Ports } from "./ports.ts";
import { ReadStream } from "./read-stream.ts";
import { openStream, type SessionStreams, type StreamOptions, streamsOf } from "./streams.ts";
import { relayUrl } from "./url.ts";
import { WriteStream } from "./write-stream.ts";

const AGENT_ID = new RegExp(AGENT_ID_PATTERN);

/** Agents whose last report is kept: a hostile relay could name others without end. */
const MAX_PRESENT = 100_000;

export interface ConnectOptions {
  /** The relay: `https://relay.example` or the full `wss://relay.example/wss`. */
  readonly url: string;
  /**
   * `acct_…`; used to get a new session token when the old one is used up. Null is as good as none:
   * a login that still has to enrol its second factor has no such token.
   */
  readonly accountToken?: string | null;
  /** `sess_…`; without an account token the client works for 24 hours or 10,000 requests. */
  readonly sessionToken?: string;
  /** Also report every agent that is online when the link opens, not only changes. */
  readonly presence?: boolean;
  /** Without it nothing is logged, but a listener that throws is reported to `console.error`. */
  readonly log?: Log;
}

export interface AgentOptions {
  /** The packet suite that belongs to the secret; defaults to "1". */
  readonly version?: Version;
  /**
   * The public half of the device's own key, base64url of 32 bytes, for versions "3" and "4".
   * An agent that does not prove it is refused, even if it has the secret.
   */
  readonly deviceKey?: string;
  /**
   * A new session follows after this long, 60,000 to 86,400,000 ms; defaults to 24 h, or 1 h under
   * "3" and "4" on Node. A device
   * whose clock is slow runs a call late by that share of the session's age; an hour bounds that.
   */
  readonly renewAfterMs?: number;
  /** Accept a secret that is not an `e2e_` token, if it has at least 32 characters. */
  readonly foreignSecret?: boolean;
}

export interface CallOptions {
  /** Time until the deadline, 1 to 2,147,483,647 ms; defaults to 30,000. */
  readonly timeoutMs?: number;
  /** The agent may execute the call twice, so the client repeats it if its outcome is unknown. */
  readonly idempotent?: boolean;
  /** If the agent is offline, for example asleep, wait for it until the deadline. */
  readonly waitForAgent?: boolean;
  readonly signal?: AbortSignal;
}

/** The listeners of one agent; the client calls them. */
type AgentListeners = {
  readonly [what in keyof PeerEvents]: Listeners<Parameters<PeerEvents[what]>>;
};

/** One agent, accessed with its end-to-end secret. */
export class Agent {
  readonly id: string;
  private readonly core: ClientCore;
  private readonly peer: Peer;
  private readonly listeners: AgentListeners;
  private readonly threw: (cause: unknown) => void;

  /** Created by `Client.agent`. */
  constructor(
    core: ClientCore,
    peer: Peer,
    listeners: AgentListeners,
    threw: (cause: unknown) => void,
  ) {
    this.id = peer.agentId;
    this.core = core;
    this.peer = peer;
    this.listeners = listeners;
    this.threw = threw;
  }

  /**
   * Calls a method. `params`: an object, an array, or absent. Resolves with the agent's result, or
   * rejects with a CallError.
   */
  call<Result = unknown>(
    method: string,
    params?: unknown,
    options: CallOptions = {},
  ): Promise<Result> {
    const {
      timeoutMs = CALL_TIMEOUT_MS,
      idempotent = false,
      waitForAgent = false,
      signal,
    } = options;
    return new Promise((resolve, reject) => {
      if (signal?.aborted) {
        const cause = signal.reason;
        reject(new CallError("ABORTED", `${method} was aborted before it was sent`, { cause }));
        return;
      }
      const request = { method, params, timeoutMs, idempotent, waitForAgent };
      // A call that cannot be queued ends inside `core.call`, before there is anything to abort.
      let abort = (_why: unknown): void => undefined;
      const onAbort = () => abort(signal?.reason);
      signal?.addEventListener("abort", onAbort, { once: true });
      abort = this.core.call(this.peer, request, (outcome) => {
        signal?.removeEventListener("abort", onAbort);
        if (outcome.ok) resolve(outcome.result as Result);
        else reject(outcome.error);
      });
    });
  }

  /**
   * Calls a method that opens a stream from the agent, such as "serial.read". `params`: an object,
   * to which the stream's number is added. Rejects as `call` does.
   */
  readStream(
    method: string,
    params: object = {},
    options: StreamOptions = {},
  ): Promise<ReadStream> {
    return ReadStream.open(this.opening(method, params, options), options.windowBytes);
  }

  /** Calls a method that opens a stream to the agent, such as "serial.write". See readStream. */
  writeStream(
    method: string,
    params: object = {},
    options: StreamOptions = {},
  ): Promise<WriteStream> {
    return WriteStream.open(this.opening(method, params, options), this.threw);
  }

  /**
   * Calls a method that opens streams which the caller numbers and acknowledges itself.
   * `sent`: gets the session's streams before the answer can come, again if the call is made in
   * another session. Rejects as `call` does.
   */
  callWithStreams<Result = unknown>(
    method: string,
    params: object,
    sent: (streams: SessionStreams) => void,
    timeoutMs: number = CALL_TIMEOUT_MS,
  ): Promise<Result> {
    const { core, peer } = this;
    return openStream({ core, peer, method, params, timeoutMs }, (session) =>
      sent(streamsOf(core, session, this.threw)),
    );
  }

  /** A stream's number for `callWithStreams`. */
  streamNumber(): number {
    return this.core.streamNumber();
  }

  private opening(method: string, params: object, options: StreamOptions) {
    const { core, peer } = this;
    const { timeoutMs = CALL_TIMEOUT_MS } = options;
    const id = core.streamNumber();
    return { core, peer, method, params: { ...params, stream: id }, timeoutMs, id };
  }

  /**
   * The agent's events, sent with `agent.emit(event, data)`. A session stays open while there is a
   * listener.
   */
  on(what: "event", fn: (event: string, data: unknown) => void): () => void;
  /**
   * This many packets of the agent (events or answers) were lost, or it could not send this many
   * events, for example because it had no link.
   */
  on(what: "gap", fn: (count: number, of: Missing) => void): () => void;
  /** The session that carries events ended, for this reason; the client opens a new one. */
  on(what: "interrupted", fn: (reason: string) => void): () => void;
  /**
   * A new session is open after an interruption, for this reason; events in between are missing.
   */
  on(what: "reopened", fn: (reason: string) => void): () => void;
  on(
    what: "event" | "gap" | "interrupted" | "reopened",
    fn: ((event: string, data: unknown) => void) &
      ((count: number, of: Missing) => void) &
      ((reason: string) => void),
  ): () => void {
    const { [what]: listeners } = this.listeners;
    const remove = listeners.add(fn);
    if (what !== "event") return remove;
    this.peer.subscribe(true);
    return () => {
      remove();
      if (listeners.size === 0) this.peer.subscribe(false);
    };
  }
}

/** The ids of the account's agents that a selector matches, over REST. */
export type ListMatching = (where: string) => Promise<readonly string[]>;

const cannotList: ListMatching = () =>
  Promise.reject(new CallError("BAD_ARGUMENT", "this client cannot list agents: name their ids"));

/** A self-reconnecting link to a relay, and the agents behind it. */
export class Client {
  private readonly list: ListMatching;
  private readonly core: ClientCore;
  private readonly log: Log | null;
  private readonly agents = new Map<string, Agent>();
  private readonly presence: Listeners<[presence: Presence]>;
  /** The latest report about each agent since the link opened. */
  private readonly present = new Map<string, Presence>();
  private readonly links: Listeners<[report: LinkReport]>;
  private giveUp: (why: CallError) => void = () => undefined;

  /** Created by an edge's `connect`. Throws a CallError BAD_ARGUMENT for invalid options. */
  constructor(options: ConnectOptions, ports: Ports, list: ListMatching = cannotList) {
    this.list = list;
    const { accountToken = null, sessionToken = null } = options;
    if (accountToken === null && sessionToken === null) {
      throw new CallError("BAD_ARGUMENT", "give an accountToken or a sessionToken");
    }
    if (accountToken !== null) {
      demand(textProblem(accountToken) ?? accountTokenProblem(accountToken), "accountToken");
    }
    if (sessionToken !== null) {
      demand(textProblem(sessionToken) ?? tokenProblem(sessionToken, "session"), "sessionToken");
    }
    this.log = options.log ?? null;
    this.presence = new Listeners(this.listenerThrew);
    this.links = new Listeners(this.listenerThrew);
    this.core = new ClientCore(
      {
        url: relayUrl(options.url),
        accountToken,
        sessionToken,
        presence: options.presence ?? false,
        ports,
      },
      {
        link: (report) => {
          if (report.state !== "online") this.present.clear();
          this.links.emit(report);
        },
        presence: (presence) => {
          const { agentId } = presence;
          if (!AGENT_ID.test(agentId)) return;
          if (this.present.size < MAX_PRESENT || this.present.has(agentId)) {
            this.present.set(agentId, presence);
          }
          this.presence.emit(presence);
        },
      },
    );
  }

  /**
   * An agent by its id and end-to-end secret; the same object for the same arguments. Sends nothing
   * yet. Throws a CallError BAD_ARGUMENT if the secret is of another kind.
   */
  agent(id: string, agentToken: string, options: AgentOptions = {}): Agent {
    const { version = "1", foreignSecret = false, renewAfterMs, deviceKey } = options;
    if (typeof id !== "string" || !AGENT_ID.test(id)) demand(`not an agent id: ${id}`, "agent");
    if (!isVersion(version)) demand(`unknown packet version ${String(version)}`, "agent");
    demand(textProblem(agentToken) ?? secretProblem(agentToken, foreignSecret), "agentToken");
    demand(deviceKeyProblem(version, deviceKey), "deviceKey");
    if (renewAfterMs !== undefined && !isRenewal(renewAfterMs)) {
      demand(`renewAfterMs must be ${MIN_RENEW_MS} to ${SESSION_RENEW_MS}`, "agent");
    }
    const key = `${version} ${renewAfterMs} ${deviceKey} ${id} ${agentToken}`;
    const known = this.agents.get(key);
    if (known !== undefined) return known;
    const listeners = {
      event: new Listeners<[string, unknown]>(this.listenerThrew),
      gap: new Listeners<[number, Missing]>(this.listenerThrew),
      interrupted: new Listeners<[string]>(this.listenerThrew),
      reopened: new Listeners<[string]>(this.listenerThrew),
    };
    const peer = this.core.addPeer(
      {
        agentId: id,
        agentToken,
        version,
        deviceKey: deviceKey === undefined ? null : fromBase64url(deviceKey),
        renewAfterMs,
      },
      {
        event: (event, data) => listeners.event.emit(event, data),
        gap: (count, of) => listeners.gap.emit(count, of),
        interrupted: (reason) => listeners.interrupted.emit(reason),
        reopened: (reason) => listeners.reopened.emit(reason),
      },
    );
    const agent = new Agent(this.core, peer, listeners, this.listenerThrew);
    this.agents.set(key, agent);
    return agent;
  }

  /**
   * Many agents, for a call to each: those that a selector matches, such as
   * `label.site=hall-7,firmware<1.5.0`, or these ids. Agents whose secret `agent` was not given are
   * `skipped`.
   *
   *     for await (const { agentId, outcome } of client.fleet("online=true").call("valve.close")) …
   */
  fleet(agents: string | readonly string[]): Fleet {
    const known = new Map([...this.agents.values()].map((agent) => [agent.id, agent]));
    return new Fleet(
      async () => (typeof agents === "string" ? this.list(agents) : agents),
      (id) => known.get(id) ?? null,
    );
  }

  /**
   * The relay's unproven claim that an agent connected or disconnected. A new listener first gets
   * the current state, because the relay may send it before `connect` has resolved.
   */
  on(what: "presence", fn: (presence: Presence) => void): () => void;
  /** The link to the relay opened or closed, or is permanently refused. */
  on(what: "link", fn: (report: LinkReport) => void): () => void;
  on(
    what: "presence" | "link",
    fn: ((presence: Presence) => void) & ((report: LinkReport) => void),
  ): () => void {
    if (what === "link") return this.links.add(fn);
    return this.presence.add(fn, () => [...this.present.values()].map((presence) => [presence]));
  }

  /**
   * Connects; resolves once authenticated. At the first failure it closes and rejects with a
   * CallError.
   */
  start(): Promise<this> {
    return new Promise((resolve, reject) => {
      this.giveUp = reject;
      const off = this.on("link", (report) => {
        off();
        if (report.state === "online") {
          resolve(this);
          return;
        }
        reject(report.reason);
        this.close();
      });
      this.core.start();
    });
  }

  /** Permanently ends the link, and every call with CLOSED. */
  close(): void {
    this.core.close();
    // Of a start that has ended this does nothing.
    this.giveUp(new CallError("CLOSED", "the client was closed"));
  }

  private readonly listenerThrew = (cause: unknown): void => {
    // Without a log nobody would ever know.
    if (this.log === null) console.error("blindrelay: a listener threw", cause);
    else this.log("error", "a listener threw", { error: String(cause) }, cause);
  };
}

const demand = (problem: string | null, what: string): void => {
  if (problem !== null) throw new CallError("BAD_ARGUMENT", `${what}: ${problem}`);
};

/** Programs without types pass what an unset variable holds. */
const textProblem = (value: unknown): string | null =>
  typeof value === "string" ? null : "it must be a text";

const isRenewal = (ms: number): boolean => ms >= MIN_RENEW_MS && ms <= SESSION_RENEW_MS;

/** Why a text cannot be an agent's end-to-end secret, or null. */
const secretProblem = (secret: string, foreignAllowed: boolean): string | null => {
  const problem = tokenProblem(secret, "e2e");
  if (problem === null || !foreignAllowed) return problem;
  if (readToken(secret).kind !== null) return problem;
  return secret.length >= MIN_FOREIGN_SECRET_LENGTH
    ? null
    : `a secret that is no e2e_ token needs ${MIN_FOREIGN_SECRET_LENGTH} characters`;
};
