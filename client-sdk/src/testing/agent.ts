/** An agent for tests: protocol's AgentSessions with a few handlers, behind the in-memory relay. */
import { EXPIRES_CLOCK_MS, EXPIRES_CLOCK_SHARE, TOO_LATE_CODE } from "@blindrelay/protocol";
import {
  isForward,
  jsonBytes,
  readJson,
  type Suite,
  type Version,
} from "@blindrelay/protocol/crypto";
import { ForwardAgentSessions } from "@blindrelay/protocol/forward-agent";
import { AgentSessions, CLOSE_METHOD, DEFAULT_AGENT_LIMITS } from "@blindrelay/protocol/session";
import { nodeX25519 } from "@blindrelay/protocol/suites/node-x25519";
import type { TimerPort } from "../ports.ts";
import type { MemoryRelay, RelayedAgent } from "./relay.ts";

/**
 * Worlds with the same seed share secrets, but their agents must not share sessions (nonces would
 * repeat).
 */
let devices = 0;

interface TestAgentOptions {
  readonly id: string;
  readonly token: string;
  readonly suite: Suite;
  readonly timer: TimerPort;
  readonly relay: MemoryRelay;
  readonly version: Version;
}

/** What a handler is told, and how it answers: later, with an error, or never. */
interface Incoming {
  readonly params: unknown;
  readonly sid: string;
  readonly expires: number | undefined;
  /** Of the session, by the agent's clock. */
  readonly ageMs: number;
  answer(result: unknown): void;
  fail(code: number, message: string, data?: unknown): void;
}

interface Request {
  readonly id: number;
  readonly method: string;
  readonly params?: unknown;
  readonly expires?: number;
}

/** The rule of section 2, "Nothing old". */
const isLate = (expires: number, ageMs: number): boolean =>
  ageMs - Math.min(ageMs * EXPIRES_CLOCK_SHARE, EXPIRES_CLOCK_MS) > expires;

export class TestAgent implements RelayedAgent {
  readonly id: string;
  /** Every executed call, as `method:JSON of params`, except pings. */
  readonly executed: string[] = [];
  pings = 0;
  /** Calls that came too late and did not run. */
  late = 0;
  /** How fast its clock is; set it before there is a session. */
  rate = 1;
  readonly handlers = new Map<string, (incoming: Incoming) => void>();
  sessions: AgentSessions;

  private readonly options: TestAgentOptions;
  private readonly deviceRandom = new Uint8Array(16);
  private boots = 0;

  constructor(options: TestAgentOptions) {
    this.id = options.id;
    this.options = options;
    new DataView(this.deviceRandom.buffer).setUint32(0, devices++);
    this.sessions = this.boot();
    this.handlers.set("echo", ({ params, answer }) => answer(params));
    options.relay.known.add(this.id);
    options.relay.agents.set(this.id, this);
  }

  /** Power off and on: all sessions are gone, the boot count is higher. */
  restart(): void {
    this.sessions = this.boot();
  }

  /** Drops its session as if it needed the place. */
  dropSession(): void {
    const sid = this.sessions.held()[0];
    if (sid === undefined) return;
    this.say(sid, { method: CLOSE_METHOD });
    this.sessions.close(sid);
  }

  goOffline(): void {
    this.options.relay.agents.delete(this.id);
    this.options.relay.setPresence(this.id, false);
  }

  goOnline(): void {
    this.options.relay.agents.set(this.id, this);
    this.options.relay.setPresence(this.id, true);
  }

  emit(event: string, data: unknown): void {
    for (const sid of this.sessions.held()) this.say(sid, { method: event, params: data });
  }

  receive(text: string): void {
    const now = this.options.timer.now() * this.rate;
    const verdict = this.sessions.receive(text, now);
    if (verdict.kind === "answer") this.options.relay.fromAgent(this.id, verdict.text);
    if (verdict.kind !== "message") return;
    if (verdict.farewell !== null) this.options.relay.fromAgent(this.id, verdict.farewell.text);
    if (verdict.reply !== undefined) {
      this.options.relay.fromAgent(this.id, verdict.reply);
      return;
    }
    const { id, method, params, expires } = readJson(verdict.plaintext) as Request;
    const { sid, ageMs } = verdict;
    if (expires !== undefined && isLate(expires, ageMs)) {
      this.late++;
      this.say(sid, { id, error: { code: TOO_LATE_CODE, message: "too late" } });
      return;
    }
    if (method === "system.ping") {
      this.pings++;
      this.say(sid, { id, result: {} });
      return;
    }
    if (method === CLOSE_METHOD) {
      this.sessions.close(sid);
      return;
    }
    this.executed.push(`${method}:${JSON.stringify(params)}`);
    const handler = this.handlers.get(method);
    if (handler === undefined) {
      this.say(sid, { id, error: { code: -32601, message: "Method not found" } });
      return;
    }
    handler({
      params,
      sid,
      expires,
      ageMs,
      answer: (result) => this.say(sid, { id, result }),
      fail: (code, message, data) => this.say(sid, { id, error: { code, message, data } }),
    });
  }

  /** Sends any JSON in a session. */
  say(sid: string, message: object): void {
    const text = this.sessions.seal(sid, jsonBytes({ jsonrpc: "2.0", ...message }));
    if (text !== null) this.options.relay.fromAgent(this.id, text);
  }

  private boot(): AgentSessions {
    this.boots++;
    const { suite, token: agentToken, version } = this.options;
    const options = {
      suite,
      agentId: this.id,
      agentToken,
      version,
      bootCount: this.boots,
      deviceRandom: this.deviceRandom,
      serialNumber: null,
      limits: DEFAULT_AGENT_LIMITS,
    };
    if (!isForward(version)) return new AgentSessions(options);
    const seed = new Uint8Array(32).fill(this.boots);
    return new ForwardAgentSessions(options, { x25519: nodeX25519, seed, deviceKey: null });
  }
}
