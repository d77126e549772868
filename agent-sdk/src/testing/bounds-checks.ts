/**
 * Runs in an embedded engine: what a relay or a client sends beyond an agent's bounds is refused as
 * documented, and the agent goes on. The host, the relay and the clients are in this script, so any
 * engine that can run a file and print can run it.
 */
import { makeToken } from "@blindrelay/protocol";
import { asciiBytes, asciiText } from "@blindrelay/protocol/crypto";
import {
  type ClientEffect,
  ClientSession,
  DEFAULT_CLIENT_TIMINGS,
} from "@blindrelay/protocol/session";
import { encodeAuthenticated, PING_TEXT, PONG_TEXT } from "@blindrelay/protocol/wire";
import { SMALL_AGENT_LIMITS } from "../core/limits.ts";
import {
  embeddedPorts,
  type Host,
  messageBytes,
  provisionAgent,
  SMALL_MAX_NESTING,
  startAgent,
} from "../embedded/index.ts";

const MAX_PLAINTEXT = 2048;
const AGENT_ID = "bounds";
const AGENT_TOKEN = makeToken("e2e", new Uint8Array(32));
const RELAY_TOKEN = makeToken("agent", new Uint8Array(32));
const CROWD = 24;
const TOO_BIG = 1009;
/** Longer than any pause before the agent connects again, and shorter than a session. */
const PAUSE_MS = 60_000;

const brackets = (levels: number): string => "[".repeat(levels) + "]".repeat(levels);

class Bounded {
  readonly failures: string[] = [];
  readonly sent: string[] = [];
  readonly closed: number[] = [];
  now = 0;
  link = 0;
  private drawn = 0;
  private readonly values = new Map<string, string>();
  private readonly timers = new Map<number, number>();
  readonly host: Host = {
    now: () => this.now,
    setTimer: (id, ms) => void this.timers.set(id, this.now + ms),
    clearTimer: (id) => void this.timers.delete(id),
    random: (length) => {
      this.drawn++;
      const text = this.drawn.toString(16);
      return "0".repeat(2 * length - text.length) + text;
    },
    read: (name) => this.values.get(name) ?? null,
    write: (name, text) => void this.values.set(name, text),
    connect: (id) => {
      this.link = id;
    },
    send: (_id, text) => void this.sent.push(text),
    close: (_id, code) => void this.closed.push(code),
    log: () => undefined,
  };
  readonly ports = embeddedPorts(this.host);

  check(what: string, holds: boolean): void {
    if (!holds) this.failures.push(what);
  }

  say(text: string): void {
    this.ports.events.received(this.link, text);
  }

  logIn(): void {
    this.ports.events.opened(this.link);
    this.say(encodeAuthenticated("session", 3600, 100_000, false));
  }

  pass(ms: number): void {
    this.now += ms;
    for (const [id, due] of [...this.timers]) {
      if (due > this.now || !this.timers.delete(id)) continue;
      this.ports.events.fired(id);
    }
  }

  lives(after: string): void {
    this.sent.length = 0;
    this.say(PING_TEXT);
    this.check(`a ping is answered after ${after}`, this.sent.includes(PONG_TEXT));
  }

  client(): ClientSession {
    return new ClientSession({
      suite: this.ports.suite,
      random: this.ports.random,
      agentId: AGENT_ID,
      agentToken: AGENT_TOKEN,
      version: "1",
      timings: DEFAULT_CLIENT_TIMINGS,
    });
  }

  /** Carries texts both ways until there are none; plaintexts that the client got. */
  carry(client: ClientSession, effects: readonly ClientEffect[]): string[] {
    const got: string[] = [];
    let next = [...effects];
    while (next.length > 0) {
      this.sent.length = 0;
      for (const effect of next) {
        if (effect.kind === "send") this.say(effect.text);
        else if (effect.kind === "message") got.push(asciiText(effect.plaintext));
      }
      next = this.sent.flatMap((text) => client.receive(text, this.now));
    }
    return got;
  }

  call(client: ClientSession, plaintext: string): string {
    const text = client.seal(asciiBytes(plaintext));
    return text === null ? "not open" : (this.carry(client, [{ kind: "send", text }])[0] ?? "");
  }
}

/** One sentence for each bound that does not hold. Throws what the engine throws. */
export const checkBounds = (): string[] => {
  const bounded = new Bounded();
  const { ports } = bounded;
  provisionAgent(ports, AGENT_TOKEN);
  const core = startAgent(ports, {
    ...{ url: "wss://relay.test/wss", agentId: AGENT_ID, runtime: "bounds" },
    ...{ relayToken: RELAY_TOKEN, agentToken: AGENT_TOKEN, maxPlaintext: MAX_PLAINTEXT },
    program: (agent) => agent.handle("echo", (params) => params),
  });
  bounded.logIn();
  bounded.lives("the login");

  for (const levels of [SMALL_MAX_NESTING + 1, 400, 1000])
    bounded.say(`{"type":"x","a":${"[".repeat(levels)}`);
  bounded.say('{"a":'.repeat(400));
  bounded.lives("deep messages");

  const client = bounded.client();
  bounded.carry(client, client.open(bounded.now));
  const echo = (params: string): string =>
    bounded.call(client, `{"jsonrpc":"2.0","id":7,"method":"echo","params":${params}}`);
  const most = brackets(SMALL_MAX_NESTING - 1);
  bounded.check("a call as deep as it may be is answered", echo(most).includes(`"result":${most}`));
  for (const levels of [SMALL_MAX_NESTING, 900])
    bounded.check(
      `a call of ${levels + 1} levels is refused`,
      echo(brackets(levels)).includes(`levels deep, at most ${SMALL_MAX_NESTING} fit`),
    );
  bounded.check(
    "a long call is refused",
    echo(`["${"x".repeat(MAX_PLAINTEXT)}"]`).includes(`bytes, at most ${MAX_PLAINTEXT} fit`),
  );

  bounded.say(`"${"x".repeat(messageBytes(MAX_PLAINTEXT))}"`);
  bounded.check("a long message ends the link", bounded.closed.includes(TOO_BIG));
  const before = bounded.link;
  ports.events.closed(before, TOO_BIG, "");
  bounded.pass(PAUSE_MS);
  bounded.check("the agent connects again", bounded.link !== before);
  bounded.logIn();
  bounded.lives("a long message");

  for (let n = 0; n < SMALL_AGENT_LIMITS.maxSessions + 2; n++) {
    bounded.pass(1000);
    const one = bounded.client();
    bounded.carry(one, one.open(bounded.now));
    bounded.check(`client ${n} has a session`, one.state === "open");
  }
  bounded.check(
    "no more sessions are held than may be",
    core.sessions.held().length === SMALL_AGENT_LIMITS.maxSessions,
  );

  bounded.pass(PAUSE_MS / 4);
  let answered = 0;
  for (let n = 0; n < CROWD; n++) {
    const one = bounded.client();
    bounded.sent.length = 0;
    for (const effect of one.open(bounded.now))
      if (effect.kind === "send") bounded.say(effect.text);
    answered += bounded.sent.length;
  }
  bounded.check(
    `openings have a pace: ${answered} of ${CROWD} at once`,
    answered > 0 && answered <= SMALL_AGENT_LIMITS.unheldBurst,
  );
  bounded.lives("a crowd");
  return bounded.failures;
};
