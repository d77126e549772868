/**
 * The agent: a link that heals itself, the sessions of its clients, and the device program behind
 * them. Everything happens in answer to a link event, a timer, or a call of the program; the clock,
 * the network, randomness and crypto come in through ports, so the same file runs on a board and
 * under a virtual clock.
 *
 * One object is one life. Make it only after the boot count was raised (bootcount.ts), never from a
 * saved image, and make a new one, with a new count, to start again.
 *
 * [portable]
 */
import {
  AUTH_TIMEOUT_MS,
  CLOSE_NORMAL,
  MAX_MESSAGE_BYTES,
  MAX_PLAINTEXT_BYTES,
  OUTBOX_BYTES,
} from "@blindrelay/protocol";
import type { HmacKey, Suite, Version } from "@blindrelay/protocol/crypto";
import {
  asciiBytes,
  crc32,
  deriveSignatureKey,
  encodeJson,
  equalTexts,
  extractPrk,
  signPayload,
} from "@blindrelay/protocol/crypto";
import type { AgentSessionLimits } from "@blindrelay/protocol/session";
import { AgentSessions, CLOSE_METHOD, DEFAULT_AGENT_LIMITS } from "@blindrelay/protocol/session";
import type { AgentsPacket, Form, MessageForAgent, RelayError } from "@blindrelay/protocol/wire";
import {
  BARE,
  decodeForAgent,
  encodeAgentAuth,
  encodeInForm,
  PONG_TEXT,
} from "@blindrelay/protocol/wire";
import type { Link, LinkEvents, LinkPort, Log, Random, TimerPort } from "../ports.ts";
import type { SessionPart, SessionWiring } from "./agent.ts";
import { Agent } from "./agent.ts";
import { Backoff } from "./backoff.ts";
import { credentialsProblem } from "./credentials.ts";
import { CONNECT_TIMEOUT_MS, LINK_SILENCE_MS, SESSION_TOKEN_MARGIN_MS } from "./defaults.ts";
import type { CallContext } from "./dispatch.ts";
import { Dispatcher } from "./dispatch.ts";
import type { Failure } from "./failures.ts";
import { authFailure, LOST, linkFailure, RESTARTING } from "./failures.ts";
import type { LinkEvent, LinkState } from "./link-states.ts";
import { nextLinkState } from "./link-states.ts";

/** Above the normal close codes and private to us: the relay only logs it. */
const CLOSE_GIVEN_UP = 4000;

export interface AgentPorts {
  readonly link: LinkPort;
  readonly timer: TimerPort;
  readonly random: Random;
  readonly suite: Suite;
  readonly log: Log;
}

export interface AgentCoreOptions {
  /** Of the relay's WebSocket, such as wss://relay.example/wss. */
  readonly url: string;
  readonly agentId: string;
  /** `agt_`. */
  readonly relayToken: string;
  /** `e2e_`; see Credentials for others. */
  readonly agentToken: string;
  readonly foreignAgentToken?: boolean;
  /** The packet version that this agent and its clients were configured with. */
  readonly version: Version;
  /** For people; the agentId where absent. */
  readonly name?: string;
  /** Said at login and in system.info, such as "node 26.10.0"; its first word names the runtime. */
  readonly runtime: string;
  /**
   * Of the firmware that runs now: SemVer where releases are to be compared with it. Said at login.
   */
  readonly firmwareVersion?: string;
  readonly sdkVersion: string;
  /** Raised, flushed and read back for this very object; see raiseBootCount. */
  readonly bootCount: number;
  /** 16 bytes. */
  readonly deviceRandom: Uint8Array;
  /** null where the device has none. */
  readonly serialNumber: string | null;
  readonly ports: AgentPorts;
  /** Bytes; system.info says null where absent. */
  readonly freeMemory?: () => number;
  /** Of one call or answer, in bytes; a board says less than the contract's 47,000. */
  readonly maxPlaintext?: number;
  /**
   * Handlers run on a stack of their own: what came holds a board's memory until the call returns
   * to the link, and the answer wants as much again.
   */
  readonly freshStack?: boolean;
  /** How many sessions are held, and at what rate unknown ones may cost cryptography. */
  readonly limits?: AgentSessionLimits;
}

/** Where the link stands, and why, for a person or a supervising program. */
export interface AgentStatus {
  readonly state: LinkState;
  /** The relay's code for the last failure, where it gave one. */
  readonly code: string | null;
  /** What happened and what to do about it; null while all is well. */
  readonly advice: string | null;
  /** In the state `waiting`: milliseconds until the next connect. */
  readonly waitMs: number | null;
}

export interface AgentCounters {
  /** Links that were opened for use, the first one included. */
  logins: number;
  /** Messages that are no JSON, no packet, or came before the login. */
  unreadable: number;
  /** Envelopes whose signature did not verify. */
  badSignatures: number;
  /**
   * Packets not sent: the link was away or its queue full, the session gone, or the message too
   * large.
   */
  notSent: number;
  /** `error` messages of the relay. */
  relayErrors: number;
}

export class AgentCore {
  /** What the device program is given. */
  declare readonly agent: Agent;
  declare readonly sessions: AgentSessions;
  declare readonly dispatcher: Dispatcher;
  declare readonly counters: AgentCounters;
  declare readonly ports: AgentPorts;
  state: LinkState = "stopped";

  declare private readonly options: AgentCoreOptions;
  declare private readonly maxPlaintext: number;
  declare private readonly backoff: Backoff;
  declare private readonly bornAt: number;
  declare private listeners: ((status: AgentStatus) => void)[];
  private part: SessionPart | null = null;
  private ended = false;
  declare private status: AgentStatus;

  private link: Link | null = null;
  /** Which connect is current: events of links given up earlier are not heard. */
  private turn = 0;
  /** End of the current wait, connect or login. */
  private deadline = 0;
  private heardAt = 0;
  private onlineAt: number | null = null;
  /** Milliseconds from an announced restart, until the relay closes. */
  private restartIn: number | null = null;

  private sessionToken: string | null = null;
  private sessionTokenEnds = 0;
  private triedSession = false;

  private timer: unknown = null;
  private timerAt: number | null = null;

  private signatureKey: HmacKey | null = null;
  /** Sids and, at the same index, how each was last addressed; events follow it. */
  declare private formSids: string[];
  declare private forms: Form[];

  /** Throws an Error for credentials that cannot be right. Nothing is sent before `start`. */
  constructor(options: AgentCoreOptions) {
    const problem = credentialsProblem(options);
    if (problem !== null) throw new Error(problem);
    // Not as fields with values: on Espruino those lie in the prototype, so all cores would share
    // them.
    this.listeners = [];
    this.status = { state: "stopped", code: null, advice: null, waitMs: null };
    this.formSids = [];
    this.forms = [];
    this.options = options;
    this.ports = options.ports;
    this.maxPlaintext = Math.min(
      options.maxPlaintext === undefined ? MAX_PLAINTEXT_BYTES : options.maxPlaintext,
      MAX_PLAINTEXT_BYTES,
    );
    this.bornAt = options.ports.timer.now();
    this.counters = { logins: 0, unreadable: 0, badSignatures: 0, notSent: 0, relayErrors: 0 };
    this.backoff = new Backoff(options.ports.random, crc32(asciiBytes(options.agentId)));
    this.sessions = new AgentSessions({
      suite: options.ports.suite,
      agentId: options.agentId,
      agentToken: options.agentToken,
      version: options.version,
      bootCount: options.bootCount,
      deviceRandom: options.deviceRandom,
      serialNumber: options.serialNumber,
      limits: options.limits === undefined ? DEFAULT_AGENT_LIMITS : options.limits,
    });
    this.dispatcher = new Dispatcher(this.maxPlaintext, (method, reason, thrown) =>
      options.ports.log("warn", `the handler of "${method}" failed`, { reason: reason }, thrown),
    );
    this.dispatcher.freshStack = options.freshStack === true;
    const name = options.name === undefined ? options.agentId : options.name;
    this.dispatcher.add("system.ping", () => ({}));
    this.dispatcher.add("system.info", () => this.info(name));
    this.dispatcher.add(CLOSE_METHOD, (_params, context) => this.clientLeft(context));
    this.agent = new Agent(options.agentId, name, this);
  }

  /**
   * Connects, and stays connected until `stop` or a final state. Throws unless it is the first
   * start.
   */
  start(): void {
    if (this.ended)
      throw new Error("this agent has ended: make a new one, with a raised boot count");
    this.move("start", null, null, null);
    this.connect();
  }

  /** Ends the link, the program's timers and this object's life. Harmless when repeated. */
  stop(): void {
    this.ended = true;
    this.agent.stopTimers();
    this.tellPart(null, "the agent stopped");
    if (this.state !== "stopped") {
      this.dropLink(CLOSE_NORMAL, "stopped");
      this.move("stop", null, null, null);
    }
    // A program may keep its agent, and a board's `save()` keeps what it reaches (section 2).
    this.sessions.end();
    this.arm();
  }

  /** `fn` hears of every change of state; what it throws is logged, and the link goes on. */
  onState(fn: (status: AgentStatus) => void): void {
    this.listeners.push(fn);
  }

  currentStatus(): AgentStatus {
    return this.status;
  }

  // The link's life

  private connect(): void {
    const ports = this.ports;
    this.turn++;
    const turn = this.turn;
    const events: LinkEvents = {
      opened: () => {
        if (turn === this.turn) this.linkOpened();
      },
      received: (text) => {
        if (turn === this.turn) this.linkReceived(text);
      },
      closed: (code, reason) => {
        if (turn === this.turn) this.linkClosed(code, reason);
      },
    };
    this.deadline = ports.timer.now() + CONNECT_TIMEOUT_MS;
    this.restartIn = null;
    try {
      this.link = ports.link.connect(this.options.url, events);
    } catch {
      this.lose(LOST, null, null);
    }
    this.arm();
  }

  private linkOpened(): void {
    const now = this.ports.timer.now();
    this.heardAt = now;
    this.deadline = now + AUTH_TIMEOUT_MS;
    this.move("opened", null, null, null);
    const token = this.sessionToken;
    this.triedSession = token !== null && now < this.sessionTokenEnds;
    this.login(this.triedSession ? token : null);
    this.arm();
  }

  private login(sessionToken: string | null): void {
    const options = this.options;
    const isSession = sessionToken !== null;
    const token = isSession ? sessionToken : options.relayToken;
    const firmware = options.firmwareVersion === undefined ? null : options.firmwareVersion;
    this.sendText(encodeAgentAuth(token, isSession, options.agentId, options.runtime, firmware));
  }

  private linkReceived(text: string): void {
    this.heardAt = this.ports.timer.now();
    const message = decodeForAgent(text);
    if (message.kind === "ping") this.sendText(PONG_TEXT);
    else if (message.kind === "error") this.relayError(message);
    else if (this.state === "authenticating") this.authAnswered(message);
    else if (message.kind === "packet") this.receivePacket(message);
    else if (message.kind === "unreadable") this.counters.unreadable++;
    this.arm();
  }

  private linkClosed(code: number, reason: string): void {
    this.link = null;
    const asked = this.restartIn;
    if (asked === null) {
      this.ports.log("info", "link closed", { code: code, reason: reason });
      this.lose(LOST, null, null);
    } else {
      this.lose(RESTARTING, "RESTARTING", asked);
    }
    this.arm();
  }

  private authAnswered(message: MessageForAgent): void {
    const now = this.ports.timer.now();
    if (message.kind === "authenticated") {
      const expiresIn = message.expiresIn === null ? 0 : message.expiresIn;
      this.sessionToken = message.sessionToken;
      this.sessionTokenEnds = now + expiresIn * 1000 - SESSION_TOKEN_MARGIN_MS;
      this.onlineAt = now;
      this.counters.logins++;
      this.move("accepted", null, null, null);
      return;
    }
    if (message.kind !== "authFailed") {
      this.counters.unreadable++;
      return;
    }
    const failure = authFailure(message.code);
    if (failure.dropsSession) this.sessionToken = null;
    if (this.triedSession && failure.dropsSession) {
      // The link stays open for another try (section 3).
      this.triedSession = false;
      this.move("fallback", null, null, null);
      this.login(null);
      return;
    }
    this.ports.log("warn", "login failed", { code: message.code, error: message.error });
    this.lose(
      failure,
      message.code,
      message.retryAfter === null ? null : message.retryAfter * 1000,
    );
  }

  private relayError(message: RelayError): void {
    this.counters.relayErrors++;
    this.ports.log("debug", "the relay reports an error", {
      code: message.code,
      error: message.error,
    });
    if (message.code === "RESTARTING") {
      this.restartIn = message.reconnectIn === null ? 0 : message.reconnectIn * 1000;
      return;
    }
    const failure = linkFailure(message.code);
    if (failure === null) return;
    if (failure.dropsSession) this.sessionToken = null;
    this.lose(failure, message.code, null);
  }

  /** The link is of no more use: wait as the failure says, or give up for good. */
  private lose(failure: Failure, code: string | null, askedMs: number | null): void {
    const now = this.ports.timer.now();
    const onlineMs = this.onlineAt === null ? 0 : now - this.onlineAt;
    // Never the relay's own words: a close reason has at most 123 bytes, and edges throw for more.
    this.dropLink(CLOSE_GIVEN_UP, "no use");
    if (failure.course === "never") {
      this.ports.log("error", failure.advice, { code: code });
      this.move("refused", code, failure.advice, null);
      return;
    }
    const waitMs = this.backoff.next(failure, askedMs, onlineMs);
    this.deadline = now + waitMs;
    this.ports.log(failure.course === "slow" ? "warn" : "info", failure.advice, {
      code: code,
      waitMs: waitMs,
    });
    this.move("lost", code, failure.advice, waitMs);
  }

  private dropLink(code: number, reason: string): void {
    const link = this.link;
    this.turn++;
    this.link = null;
    this.onlineAt = null;
    if (link !== null) link.close(code, reason);
  }

  private move(
    event: LinkEvent,
    code: string | null,
    advice: string | null,
    waitMs: number | null,
  ): void {
    this.state = nextLinkState(this.state, event);
    const status = { state: this.state, code: code, advice: advice, waitMs: waitMs };
    this.status = status;
    for (const listener of this.listeners) {
      try {
        listener(status);
      } catch (error) {
        this.ports.log("error", "a listener to the state failed", { reason: `${error}` });
      }
    }
  }

  // Time

  /**
   * One timer for everything. It may fire early, when its reason went away; then it is set anew.
   */
  private arm(): void {
    const timer = this.ports.timer;
    const at = this.nextDeadline();
    if (at === null) {
      if (this.timerAt !== null) timer.clear(this.timer);
      this.timerAt = null;
      return;
    }
    if (this.timerAt !== null) {
      if (this.timerAt <= at) return;
      timer.clear(this.timer);
    }
    this.timerAt = at;
    this.timer = timer.set(Math.max(0, at - timer.now()), () => {
      this.timerAt = null;
      this.timeout(timer.now());
      this.arm();
    });
  }

  private nextDeadline(): number | null {
    if (this.ended) return null;
    const expiry = this.sessions.nextExpiry();
    if (this.state === "stopped" || this.state === "refused") return expiry;
    const due = this.state === "online" ? this.heardAt + LINK_SILENCE_MS : this.deadline;
    return expiry !== null && expiry < due ? expiry : due;
  }

  private timeout(now: number): void {
    this.forgetLapsed(now);
    if (this.state === "online") {
      if (now - this.heardAt >= LINK_SILENCE_MS) this.lose(LOST, null, null);
    } else if (this.state === "waiting") {
      if (now >= this.deadline) {
        this.move("elapsed", null, null, null);
        this.connect();
      }
    } else if (this.state === "connecting" || this.state === "authenticating") {
      if (now >= this.deadline) this.lose(LOST, null, null);
    }
  }

  // Packets and calls

  private receivePacket(message: AgentsPacket): void {
    if (message.signature !== null && !this.verifies(message.text, message.signature)) {
      this.counters.badSignatures++;
      return;
    }
    const form = message.form;
    const now = this.ports.timer.now();
    const verdict = this.sessions.receive(message.text, now);
    if (verdict.kind === "answer") {
      const farewell = verdict.farewell;
      if (farewell !== null) this.sendPacket(farewell.text, this.formOf(farewell.sid));
      this.sendPacket(verdict.text, form);
      this.forgetLapsed(now);
    } else if (verdict.kind === "message") {
      const sid = verdict.sid;
      if (verdict.fresh) this.forgetLapsed(now);
      if (verdict.gap > 0) this.tellPart(sid, "packets were lost");
      this.rememberForm(sid, form);
      this.dispatcher.receive(verdict.plaintext, sid, (plaintext) =>
        this.sendSealed(sid, plaintext, form),
      );
    }
  }

  /** The last packet of a session (section 2, "Leaving"). */
  private clientLeft(context: CallContext): void {
    if (!context.notification) throw new Error(`${CLOSE_METHOD} is a notification`);
    this.sessions.close(context.sid);
    this.forgetLapsed(this.ports.timer.now());
  }

  /** See Agent.attach. */
  attach(part: SessionPart): SessionWiring {
    if (this.part !== null) throw new Error("this agent has its part already");
    for (const method of part.methods) this.addPartMethod(part, method);
    this.part = part;
    return {
      maxPlaintext: this.maxPlaintext,
      send: (sid, text) => this.sendSealed(sid, asciiBytes(text), this.formOf(sid)),
    };
  }

  /** Of its own, because a closure over a loop's variable sees its last value on Espruino. */
  private addPartMethod(part: SessionPart, method: string): void {
    this.dispatcher.add(method, (params, context) => part.receive(method, params, context.sid));
  }

  private tellPart(sid: string | null, reason: string): void {
    if (this.part !== null) this.part.lost(sid, reason);
  }

  private verifies(payload: string, signature: string): boolean {
    const suite = this.ports.suite;
    if (this.signatureKey === null) {
      const prk = extractPrk(suite, this.options.agentId, this.options.agentToken);
      this.signatureKey = deriveSignatureKey(suite, prk);
    }
    return equalTexts(signPayload(suite, this.signatureKey, payload), signature);
  }

  /** See Agent.emit. */
  emit(event: string, data: unknown): number {
    if (typeof event !== "string" || event === "") throw new Error("an event needs a name");
    if (data !== undefined && (typeof data !== "object" || data === null)) {
      throw new Error("an event's data is an object or an array");
    }
    const params = data === undefined ? "" : encodeJson(data);
    if (params === undefined) throw new Error("an event's data is not a JSON value");
    const head = `{"jsonrpc":"2.0","method":${encodeJson(event)}`;
    const text = params === "" ? `${head}}` : `${head},"params":${params}}`;
    if (text.length > this.maxPlaintext) {
      throw new Error(`the event has ${text.length} bytes, at most ${this.maxPlaintext} fit`);
    }
    const plaintext = asciiBytes(text);
    let sent = 0;
    for (const sid of this.sessions.held()) {
      if (this.sendSealed(sid, plaintext, this.formOf(sid))) sent++;
    }
    return sent;
  }

  private sendSealed(sid: string, plaintext: Uint8Array, form: Form): boolean {
    // A session idle too long is over, also where the timer that says so is late.
    this.forgetLapsed(this.ports.timer.now());
    // Before sealing: a taken seq that is never sent would look like a loss to the client.
    const packet = this.canSend() ? this.sessions.seal(sid, plaintext) : null;
    if (packet === null) {
      this.counters.notSent++;
      return false;
    }
    return this.sendPacket(packet, form);
  }

  private sendPacket(packet: string, form: Form): boolean {
    const text = encodeInForm(packet, form, this.options.agentId);
    if (!this.canSend() || text.length > MAX_MESSAGE_BYTES) {
      this.counters.notSent++;
      return false;
    }
    this.sendText(text);
    return true;
  }

  private canSend(): boolean {
    const link = this.link;
    if (link === null || this.state !== "online") return false;
    return link.queuedBytes === undefined || link.queuedBytes() <= OUTBOX_BYTES;
  }

  private sendText(text: string): void {
    if (this.link !== null) this.link.send(text);
  }

  private rememberForm(sid: string, form: Form): void {
    const index = this.formSids.indexOf(sid);
    if (index >= 0) {
      this.forms[index] = form;
      return;
    }
    this.formSids.push(sid);
    this.forms.push(form);
  }

  /** How events go to a session: as it was last addressed, but in answer to no request. */
  private formOf(sid: string): Form {
    const index = this.formSids.indexOf(sid);
    const form = index < 0 ? BARE : (this.forms[index] as Form);
    return { enveloped: form.enveloped, asObject: form.asObject, requestId: null };
  }

  private forgetLapsed(now: number): void {
    for (const sid of this.sessions.expire(now)) {
      this.dispatcher.forget(sid);
      this.tellPart(sid, "the session is over");
      const index = this.formSids.indexOf(sid);
      if (index >= 0) {
        this.formSids.splice(index, 1);
        this.forms.splice(index, 1);
      }
    }
  }

  private info(name: string): object {
    const options = this.options;
    const aliveMs = options.ports.timer.now() - this.bornAt;
    return {
      name: name,
      sdk_version: options.sdkVersion,
      runtime: options.runtime,
      free_memory: options.freeMemory === undefined ? null : options.freeMemory(),
      uptime_s: Math.floor(aliveMs / 1000),
      methods: this.dispatcher.methods(),
      max_plaintext: this.maxPlaintext,
    };
  }
}
