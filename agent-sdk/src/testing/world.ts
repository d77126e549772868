/**
 * An agent core in a world of its own for tests: virtual time, a network in memory, a relay's end
 * controlled by the test, and a client with a real session. Only the relay is a stub.
 */
import { makeToken } from "@blindrelay/protocol";
import { jsonBytes, readJson } from "@blindrelay/protocol/crypto";
import {
  type ClientEffect,
  ClientSession,
  DEFAULT_CLIENT_TIMINGS,
} from "@blindrelay/protocol/session";
import { nodeSuite } from "@blindrelay/protocol/suites/node";
import { type FakeLink, FakeRelay } from "@blindrelay/protocol/testing/fake-relay";
import { decodeForAgent, encodeEnvelope } from "@blindrelay/protocol/wire";
import { AgentCore, type AgentCoreOptions } from "../core/agent-core.ts";
import type { AgentStatus } from "../core/link.ts";
import { ManualTimer, memoryNetwork, type RelayEnd, seededRandom } from "../memory/index.ts";
import type { LinkPort, Log } from "../ports.ts";

const tokenOf = (kind: "agent" | "e2e", byte: number): string =>
  makeToken(kind, new Uint8Array(32).fill(byte));

export const AGENT_ID = "lamp-1";
export const RELAY_TOKEN = tokenOf("agent", 1);
export const AGENT_TOKEN = tokenOf("e2e", 2);

// biome-ignore lint/suspicious/noExplicitAny: tests examine arbitrary JSON.
type Json = any;

/** One link at the relay that accepted it. */
class AcceptedLink {
  readonly end: RelayEnd;
  readonly relay: FakeLink;
  closedWith: number | null = null;

  constructor(end: RelayEnd, relay: FakeRelay) {
    this.end = end;
    this.relay = relay.attach(end);
    end.received = (text) => this.relay.receive(text);
    end.closed = (code) => {
      this.closedWith = code;
    };
  }

  /** Messages from the agent as received. */
  get texts(): readonly string[] {
    return this.relay.texts;
  }

  /** The same as JSON, so that tests show the wire format. */
  get messages(): readonly Json[] {
    return this.texts.map((text) => JSON.parse(text));
  }

  last(): Json {
    return this.messages.at(-1);
  }
}

export interface WorldOptions {
  readonly seed?: number;
  readonly bootCount?: number;
  /** The queue length that the agent's link reports. */
  readonly queuedBytes?: () => number;
  /** In place of the agent's own link to the relay. */
  readonly over?: (links: LinkPort, timer: ManualTimer, log: Log) => LinkPort;
  readonly core?: Partial<AgentCoreOptions>;
}

export class World {
  readonly timer = new ManualTimer();
  readonly links: AcceptedLink[] = [];
  /** Accepts no connection by itself: the test decides when. */
  private readonly relay = new FakeRelay({ auth: () => {} });
  readonly statuses: AgentStatus[] = [];
  readonly logs: string[] = [];
  /** The fields of each line of the log. */
  readonly logFields: unknown[] = [];
  readonly core: AgentCore;
  relayIsUp = true;
  readonly random;

  constructor(options: WorldOptions = {}) {
    this.random = seededRandom(options.seed ?? 1);
    const network = memoryNetwork({
      timer: this.timer,
      accept: (end) => {
        if (!this.relayIsUp) return false;
        this.links.push(new AcceptedLink(end, this.relay));
        return true;
      },
    });
    const { queuedBytes, over = (links) => links } = options;
    const links: LinkPort = {
      connect: (url, events) => ({ ...network.connect(url, events), queuedBytes }),
    };
    const log: Log = (level, message, fields) => {
      this.logs.push(`${level}: ${message}`);
      this.logFields.push(fields);
    };
    this.core = new AgentCore({
      url: "wss://relay.example/wss",
      agentId: AGENT_ID,
      relayToken: RELAY_TOKEN,
      agentToken: AGENT_TOKEN,
      version: "1",
      runtime: "test",
      firmwareVersion: "1.2.3",
      sdkVersion: "9.9.9",
      bootCount: options.bootCount ?? 2,
      deviceRandom: this.random(16),
      serialNumber: null,
      ports: {
        link: over(links, this.timer, log),
        timer: this.timer,
        random: this.random,
        suite: nodeSuite(),
        log,
      },
      ...options.core,
    });
    this.core.link.onState((status) => this.statuses.push(status));
  }

  /** Delivers everything in transit; no measurable time passes. */
  settle(): void {
    this.timer.advance(0);
  }

  /** The newest link. */
  link(): AcceptedLink {
    const link = this.links.at(-1);
    if (link === undefined) throw new Error("no link yet");
    return link;
  }

  /** Sends one message from the relay to the agent and delivers the answers. */
  say(message: object | string): void {
    this.link().end.send(typeof message === "string" ? message : JSON.stringify(message));
    this.settle();
  }

  accept(expiresIn = 86400, token = "sess_1"): void {
    this.link().relay.accept(token, expiresIn);
    this.settle();
  }

  fail(code: string | undefined, retryAfter = 0): void {
    if (code === undefined) this.say({ type: "auth_response", status: "failed" });
    else this.link().relay.refuse(code, "Invalid token", retryAfter);
    this.settle();
  }

  /** Starts the agent and logs it in. */
  online(): this {
    this.core.start();
    this.settle();
    this.accept();
    return this;
  }

  /** Advances time until the next connect reaches the relay; returns the milliseconds taken. */
  untilConnected(limitMs = 7200000): number {
    const from = this.timer.now();
    const links = this.links.length;
    while (this.links.length === links && this.timer.now() - from < limitMs) {
      const next = this.timer.nextAt();
      if (next === null) break;
      this.timer.advance(next - this.timer.now());
    }
    this.settle();
    return this.timer.now() - from;
  }
}

/** How a client wraps its packets. */
type Wrapping = "bare" | "envelope";

/** A client of the world's agent, which uses the relay's end of the newest link. */
export class Client {
  readonly world: World;
  readonly session: ClientSession;
  readonly wrapping: Wrapping;
  /** Verified plaintexts, parsed. */
  readonly inbox: Json[] = [];
  /** Packets from the agent that were lost. */
  gaps = 0;
  private requests = 0;
  private ids = 10;
  private seen = 0;
  private seenLink: AcceptedLink | null = null;

  constructor(world: World, wrapping: Wrapping = "bare", agentToken = AGENT_TOKEN) {
    this.world = world;
    this.wrapping = wrapping;
    this.session = new ClientSession({
      suite: nodeSuite(),
      random: world.random,
      agentId: AGENT_ID,
      agentToken,
      version: "1",
      timings: DEFAULT_CLIENT_TIMINGS,
    });
  }

  /** Opens the session: opening, answer, first ping. */
  open(): this {
    this.run(this.session.open(this.world.timer.now()));
    this.pump();
    return this;
  }

  /** The message that carries a packet in this client's form. */
  wrap(packet: string, extra: object = {}): string {
    if (this.wrapping === "bare") return packet;
    this.requests++;
    const envelope = encodeEnvelope(packet, AGENT_ID, `request-${this.requests}`);
    return JSON.stringify({ ...JSON.parse(envelope), ...extra });
  }

  /** Seals any plaintext and sends it. */
  send(plaintext: Uint8Array): void {
    const packet = this.session.seal(plaintext);
    if (packet === null) throw new Error("the session is not open");
    this.world.say(this.wrap(packet));
    this.pump();
  }

  /** Sends a JSON value as plaintext. */
  sendJson(value: unknown): void {
    this.send(jsonBytes(value));
  }

  /** Calls a method and returns the answer, or undefined if there is none yet. */
  call(method: string, params?: unknown): Json {
    const id = this.ids++;
    this.sendJson({ jsonrpc: "2.0", id, method, params });
    return this.answerTo(id);
  }

  answerTo(id: unknown): Json {
    return this.inbox.find((message) => message.id === id);
  }

  /** Reads what the agent has sent since the last call. */
  pump(): void {
    this.world.settle();
    const link = this.world.link();
    if (link !== this.seenLink) {
      this.seenLink = link;
      this.seen = 0;
    }
    while (this.seen < link.texts.length) {
      const message = decodeForAgent(link.texts[this.seen] as string);
      this.seen++;
      if (message.kind !== "packet") continue;
      this.run(this.session.receive(message.text, this.world.timer.now()));
      this.world.settle();
    }
  }

  private run(effects: ClientEffect[]): void {
    for (const effect of effects) {
      if (effect.kind === "send") this.world.say(this.wrap(effect.text));
      if (effect.kind === "message") this.gaps += effect.gap;
      if (effect.kind === "message") this.inbox.push(readJson(effect.plaintext));
    }
  }
}
