/**
 * A simulated hour on a board: the whole agent over a link and a clock of its own, with clients
 * that connect, call, fall silent and return. For a real Espruino's Storage.
 *
 * [portable]
 */
import { makeToken } from "@blindrelay/protocol";
import { asciiBytes } from "@blindrelay/protocol/crypto";
import type { ClientEffect } from "@blindrelay/protocol/session";
import { ClientSession, DEFAULT_CLIENT_TIMINGS } from "@blindrelay/protocol/session";
import { encodeAuthenticated, PING_TEXT } from "@blindrelay/protocol/wire";
import { AgentCore } from "../core/agent-core.ts";
import { SMALL_AGENT_LIMITS } from "../core/limits.ts";
import type { EspruinoCrypto } from "../espruino/board.ts";
import { boardRandom } from "../espruino/ports.ts";
import { EspruinoSuite } from "../espruino/suite.ts";
import type { Link, LinkEvents } from "../ports.ts";

const AGENT_TOKEN = makeToken("e2e", new Uint8Array(32));
const RELAY_TOKEN = makeToken("agent", new Uint8Array(32));

interface Timer {
  at: number;
  fn: () => void;
  live: boolean;
}

class Clock {
  declare timers: Timer[];
  time = 0;

  constructor() {
    this.timers = [];
  }

  now(): number {
    return this.time;
  }

  set(ms: number, fn: () => void): unknown {
    const timer = { at: this.time + ms, fn: fn, live: true };
    this.timers.push(timer);
    return timer;
  }

  clear(handle: unknown): void {
    (handle as Timer).live = false;
    this.timers = this.timers.filter((timer) => timer.live);
  }

  /** Fires what falls due meanwhile, in order. */
  advance(ms: number): void {
    const end = this.time + ms;
    let next = this.nextBefore(end);
    while (next !== null) {
      this.clear(next);
      this.time = Math.max(this.time, next.at);
      next.fn();
      next = this.nextBefore(end);
    }
    this.time = end;
  }

  nextBefore(end: number): Timer | null {
    let first: Timer | null = null;
    for (const timer of this.timers) {
      if (timer.at <= end && (first === null || timer.at < first.at)) first = timer;
    }
    return first;
  }
}

/** The agent's end of the link, with the relay and one client at a time behind it. */
export class Hour implements Link {
  declare clock: Clock;
  declare suite: EspruinoSuite;
  declare core: AgentCore;
  declare sent: string[];
  declare events: LinkEvents | null;
  answered = 0;

  constructor(crypto: EspruinoCrypto) {
    this.clock = new Clock();
    this.suite = new EspruinoSuite(crypto, () => {});
    this.sent = [];
    this.events = null;
    this.core = new AgentCore({
      url: "ws://relay/wss",
      agentId: "hour",
      relayToken: RELAY_TOKEN,
      agentToken: AGENT_TOKEN,
      version: "2",
      runtime: "espruino",
      sdkVersion: "0",
      bootCount: 7,
      deviceRandom: new Uint8Array(16),
      serialNumber: null,
      limits: Object.assign({}, SMALL_AGENT_LIMITS, { maxSessions: 4 }),
      ports: {
        link: this,
        timer: this.clock,
        random: boardRandom,
        suite: this.suite,
        log: () => {},
      },
    });
    this.core.agent.handle("echo", (params) => params);
    this.core.start();
    this.clock.advance(1);
    this.say(encodeAuthenticated("s", 86400, 10000));
  }

  connect(_url: string, events: LinkEvents): Link {
    this.events = events;
    this.clock.set(0, () => events.opened());
    return this;
  }

  send(text: string): void {
    this.sent.push(text);
  }

  close(): void {}

  say(text: string): void {
    if (this.events !== null) this.events.received(text);
  }

  /** Carries packets both ways until there are none left; returns the plaintexts for the client. */
  settle(client: ClientSession, effects: ClientEffect[]): number {
    let got = 0;
    for (const effect of effects) {
      if (effect.kind === "send") this.say(effect.text);
      if (effect.kind === "message") got++;
    }
    const waiting = this.sent;
    this.sent = [];
    for (const text of waiting) {
      if (text.indexOf('{"v"') === 0)
        got += this.settle(client, client.receive(text, this.clock.now()));
    }
    return got;
  }

  /** One client's visit: an opening, its ping, and `calls` calls of 200 bytes. */
  visit(calls: number): void {
    const client = new ClientSession({
      suite: this.suite,
      random: boardRandom,
      agentId: "hour",
      agentToken: AGENT_TOKEN,
      version: "2",
      timings: DEFAULT_CLIENT_TIMINGS,
    });
    this.settle(client, client.open(this.clock.now()));
    for (let i = 0; i < calls; i++) {
      const text = `{"jsonrpc":"2.0","id":${i + 2},"method":"echo","params":{"x":"${"x".repeat(140)}"}}`;
      const packet = client.seal(asciiBytes(text));
      if (packet !== null) this.say(packet);
      this.answered += this.settle(client, []);
    }
  }

  /** Minutes of this life: each has a visit, and pings from the relay. */
  run(minutes: number): void {
    for (let i = 0; i < minutes; i++) {
      this.visit(2);
      this.clock.advance(30000);
      this.say(PING_TEXT);
      this.clock.advance(30000);
      this.say(PING_TEXT);
      this.sent = [];
    }
  }
}
