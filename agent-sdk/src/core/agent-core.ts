/**
 * The agent: a self-reconnecting link, the sessions of its clients, and the device program behind
 * them. Everything happens in response to a link event, a timer, or a call of the program; the
 * clock, the network, randomness and crypto are ports, so the same file runs on a board and under a
 * virtual clock.
 *
 * One instance per start. Construct it only after the boot count was raised (bootcount.ts), never
 * from a saved image, and construct a new one, with a new count, to start again.
 *
 * [portable]
 */
import { MAX_MESSAGE_BYTES, MAX_PLAINTEXT_BYTES } from "@blindrelay/protocol";
import type { HmacKey, Suite, Version } from "@blindrelay/protocol/crypto";
import {
  asciiBytes,
  deriveSignatureKey,
  encodeJson,
  equalTexts,
  extractPrk,
  signPayload,
} from "@blindrelay/protocol/crypto";
import type {
  AgentSessionLimits,
  AgentSessionsOptions,
  AgentVerdict,
} from "@blindrelay/protocol/session";
import {
  AgentSessions,
  CLOSE_METHOD,
  CLOSE_NOTICE,
  DEFAULT_AGENT_LIMITS,
} from "@blindrelay/protocol/session";
import type { AgentsPacket, Form } from "@blindrelay/protocol/wire";
import { BARE, encodeInForm } from "@blindrelay/protocol/wire";
import type { SessionPart, SessionWiring } from "./agent.ts";
import { Agent, CLIENT_LEFT } from "./agent.ts";
import { credentialsProblem } from "./credentials.ts";
import type { CallContext, Refuses } from "./dispatch.ts";
import { Dispatcher } from "./dispatch.ts";
import type { LinkOptions, LinkPorts } from "./link.ts";
import { RelayLink } from "./link.ts";

/** How often, and after what pause, an answer looks again for memory. */
const MEMORY_TRIES = 8;
const MEMORY_WAIT_MS = 250;

export interface AgentPorts extends LinkPorts {
  readonly suite: Suite;
}

export interface AgentCoreOptions extends LinkOptions {
  /** `e2e_`; see Credentials for others. */
  readonly agentToken: string;
  readonly foreignAgentToken?: boolean;
  /** The packet version that this agent and its clients were configured with. */
  readonly version: Version;
  /** For people; defaults to the agentId. */
  readonly name?: string;
  readonly sdkVersion: string;
  /** Raised, flushed and read back for this instance; see raiseBootCount. */
  readonly bootCount: number;
  /** Makes the sessions of versions "3" and "4" (forward.ts); others need none. */
  readonly forward?: ((options: AgentSessionsOptions) => AgentSessions) | undefined;
  /** 16 bytes. */
  readonly deviceRandom: Uint8Array;
  /** Null if the device has none. */
  readonly serialNumber: string | null;
  readonly ports: AgentPorts;
  /** Bytes; if absent, system.info reports null. */
  readonly freeMemory?: () => number;
  /** Of one call or answer, in bytes; a board's limit is below the contract's 47,000. */
  readonly maxPlaintext?: number;
  /**
   * Handlers run on a fresh stack: the received call occupies a board's memory until it returns to
   * the link, and the answer needs as much again.
   */
  readonly freshStack?: boolean;
  /**
   * Whether there is memory to seal so many bytes and queue them; if not, an event is not sent, as
   * if the link were down, and an answer waits for it. Absent: always.
   */
  readonly canSeal?: (bytes: number) => boolean;
  /** Asked for every plaintext before it is parsed, where the parser could end the device. */
  readonly refuses?: Refuses;
  /** Of sessions, and of the work that peers without the secret can cause; absent: Node's. */
  readonly limits?: AgentSessionLimits;
}

/** What the core needs of its sessions. */
type Sessions = Pick<
  AgentSessions,
  | "receive"
  | "resume"
  | "seal"
  | "close"
  | "expire"
  | "nextExpiry"
  | "end"
  | "heardAt"
  | "held"
  | "counters"
>;

export interface AgentCounters {
  /** Envelopes whose signature did not verify. */
  badSignatures: number;
  /**
   * Packets not sent: the link was down or its queue full, the session gone, the message too large,
   * or memory too short.
   */
  notSent: number;
}

export class AgentCore {
  /** Passed to the device program. */
  declare readonly agent: Agent;
  /** Replaced where a secret is (rekey.ts). */
  declare sessions: Sessions;
  declare readonly dispatcher: Dispatcher;
  declare readonly counters: AgentCounters;
  declare readonly ports: AgentPorts;
  declare readonly link: RelayLink;
  /** Maximum size of a call or an answer, in bytes. */
  declare readonly maxPlaintext: number;

  declare private readonly options: AgentCoreOptions;
  declare private readonly bornAt: number;
  private part: SessionPart | null = null;

  private timer: unknown = null;
  private timerAt: number | null = null;
  /** Whether a session may have missed events without being told. */
  private unsaid = false;

  /** Of the envelopes' signatures, the first one that fits; null: not derived yet. */
  signatureKeys: HmacKey[] | null = null;
  /**
   * Sids and, at the same index, the form in which each was last addressed, which events use too;
   * and how many events that session has missed without being told.
   */
  declare private formSids: string[];
  declare private forms: Form[];
  declare private lost: number[];
  /** The forms of the packets that wait in `sessions`. */
  declare private delayed: Form[];

  /** Throws an Error for invalid credentials. Nothing is sent before `start`. */
  constructor(options: AgentCoreOptions) {
    const problem = credentialsProblem(options);
    if (problem !== null) throw new Error(problem);
    // Not fields with values: on Espruino those are on the prototype, so all cores would share
    // them.
    this.formSids = [];
    this.forms = [];
    this.lost = [];
    this.delayed = [];
    this.options = options;
    this.ports = options.ports;
    this.maxPlaintext = Math.min(
      options.maxPlaintext === undefined ? MAX_PLAINTEXT_BYTES : options.maxPlaintext,
      MAX_PLAINTEXT_BYTES,
    );
    this.bornAt = options.ports.timer.now();
    this.counters = { badSignatures: 0, notSent: 0 };
    this.link = new RelayLink(options, this);
    const forward = options.forward;
    const sessionsOptions = {
      suite: options.ports.suite,
      agentId: options.agentId,
      agentToken: options.agentToken,
      version: options.version,
      bootCount: options.bootCount,
      deviceRandom: options.deviceRandom,
      serialNumber: options.serialNumber,
      limits: options.limits === undefined ? DEFAULT_AGENT_LIMITS : options.limits,
    };
    this.sessions =
      forward === undefined ? new AgentSessions(sessionsOptions) : forward(sessionsOptions);
    this.dispatcher = new Dispatcher(this.maxPlaintext, (method, reason, thrown) =>
      options.ports.log("warn", `the handler of "${method}" failed`, { reason: reason }, thrown),
    );
    this.dispatcher.freshStack = options.freshStack === true;
    if (options.refuses !== undefined) this.dispatcher.refuses = options.refuses;
    const name = options.name === undefined ? options.agentId : options.name;
    this.dispatcher.add("system.ping", () => ({}));
    this.dispatcher.add("system.info", () => this.info(name));
    this.dispatcher.add(CLOSE_METHOD, (_params, context) => this.clientLeft(context));
    this.agent = new Agent(options.agentId, name, this);
  }

  /** Connects, and stays connected until `stop` or a refusal. Throws when called again. */
  start(): void {
    if (!this.link.start())
      throw new Error("this agent was started before: make a new one, with a raised boot count");
  }

  /** Ends the link, the program's timers and the sessions, permanently. Harmless when repeated. */
  stop(): void {
    this.tellPart(null, "the agent stopped");
    this.agent.stopTimers();
    this.link.stop();
    // A program may keep a reference to its agent, and a board's `save()` stores what that reaches
    // (section 2).
    this.sessions.end();
    this.arm();
  }

  // Time

  /**
   * One timer for the link and the sessions. It may fire early if its reason has gone; then it is
   * set again. What could not be said before is said here: this is called after all that the link
   * received.
   */
  arm(): void {
    this.sayUnsaid();
    const timer = this.ports.timer;
    const due = this.link.nextDeadline();
    const expiry = this.sessions.nextExpiry();
    const at = due === null || (expiry !== null && expiry < due) ? expiry : due;
    if (this.timerAt !== null) {
      if (at !== null && this.timerAt <= at) return;
      timer.clear(this.timer);
    }
    this.timerAt = at;
    if (at === null) return;
    this.timer = timer.set(Math.max(0, at - timer.now()), () => {
      this.timerAt = null;
      const now = timer.now();
      this.forgetLapsed(now);
      // One at a time: a board has no room for all of them at once.
      const verdict = this.sessions.resume(now);
      if (verdict !== null) this.act(verdict, this.delayed.shift() as Form);
      this.link.timeout(now);
      this.arm();
    });
  }

  // Packets and calls

  /** See LinkOwner. */
  receivePacket(message: AgentsPacket): void {
    if (message.signature !== null && !this.verifies(message.text, message.signature)) {
      this.counters.badSignatures++;
      return;
    }
    const verdict = this.sessions.receive(message.text, this.ports.timer.now());
    if (verdict.kind === "waits") this.delayed.push(message.form);
    else this.act(verdict, message.form);
  }

  /** Does what a verdict says, in the form of its packet. */
  private act(verdict: AgentVerdict, form: Form): void {
    if (verdict.kind === "answer") {
      this.sendPacket(verdict.text, form);
    } else if (verdict.kind === "message") {
      const sid = verdict.sid;
      const farewell = verdict.farewell;
      // First: a client that moves on hears its old session until the new one has answered.
      this.sayUnsaid();
      if (farewell !== null) this.sendPacket(farewell.text, this.formOf(farewell.sid));
      if (verdict.fresh) this.forgetLapsed(this.ports.timer.now());
      if (verdict.gap > 0) this.tellPart(sid, "packets were lost");
      this.rememberForm(sid, form);
      if (verdict.reply !== undefined) this.sendPacket(verdict.reply, form);
      else {
        this.dispatcher.receive(verdict.plaintext, sid, verdict.ageMs, (plaintext) =>
          this.sendAnswer(sid, plaintext, form, MEMORY_TRIES),
        );
      }
    }
  }

  /** The last packet of a session (section 2, "Leaving"). */
  private clientLeft(context: CallContext): void {
    if (!context.notification) throw new Error(`${CLOSE_METHOD} is a notification`);
    this.sessions.close(context.sid);
    this.forgetLapsed(this.ports.timer.now(), CLIENT_LEFT);
  }

  /** Goes on under another secret: sessions of the one before end, and their clients are told. */
  adopt(sessions: AgentSessions): void {
    const before = this.sessions;
    for (const sid of before.held()) {
      const packet = before.seal(sid, asciiBytes(CLOSE_NOTICE));
      if (packet !== null) this.sendPacket(packet, this.formOf(sid));
      before.close(sid);
    }
    this.forgetLapsed(this.ports.timer.now(), "the agent's secret was changed");
    this.delayed = [];
    this.sessions = sessions;
  }

  /** See Agent.attach. */
  attach(part: SessionPart): SessionWiring {
    if (this.part !== null) throw new Error("this agent has its part already");
    for (const method of part.methods) this.addPartMethod(part, method);
    this.part = part;
    return {
      maxPlaintext: this.maxPlaintext,
      send: (sid, text) => this.notify(sid, text),
      heardAt: (sid) => this.sessions.heardAt(sid),
    };
  }

  /** Seals ASCII JSON for a session; false if it cannot be sent now. */
  notify(sid: string, text: string): boolean {
    return this.sendSealed(sid, asciiBytes(text), this.formOf(sid));
  }

  /**
   * A separate method, because a closure over a loop's variable sees its last value on Espruino.
   */
  private addPartMethod(part: SessionPart, method: string): void {
    this.dispatcher.add(method, (params, context) => part.receive(method, params, context.sid));
  }

  private tellPart(sid: string | null, reason: string): void {
    if (this.part !== null) this.part.lost(sid, reason);
  }

  private verifies(payload: string, signature: string): boolean {
    const suite = this.ports.suite;
    if (this.signatureKeys === null) {
      const prk = extractPrk(suite, this.options.agentId, this.options.agentToken);
      this.signatureKeys = [deriveSignatureKey(suite, prk)];
    }
    for (const key of this.signatureKeys)
      if (equalTexts(signPayload(suite, key, payload), signature)) return true;
    return false;
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
      else this.countLost(sid);
    }
    return sent;
  }

  private countLost(sid: string): void {
    const index = this.formSids.indexOf(sid);
    if (index < 0) return;
    this.lost[index] = (this.lost[index] as number) + 1;
    this.unsaid = true;
  }

  private sayUnsaid(): void {
    if (!this.unsaid) return;
    this.unsaid = false;
    for (const sid of this.formSids) this.sayLost(sid);
  }

  /** Tells a session how many events it has missed, if that can be sent now. */
  private sayLost(sid: string): void {
    const index = this.formSids.indexOf(sid);
    const events = index < 0 ? 0 : (this.lost[index] as number);
    if (events === 0) return;
    const text = `{"jsonrpc":"2.0","method":"system.lost","params":{"events":${events}}}`;
    if (!this.canSeal(text.length)) {
      this.unsaid = true;
      return;
    }
    this.lost[index] = 0;
    const packet = this.sessions.seal(sid, asciiBytes(text));
    if (packet !== null) this.sendPacket(packet, this.formOf(sid));
  }

  private canSeal(bytes: number): boolean {
    const options = this.options;
    return this.link.canSend() && (options.canSeal === undefined || options.canSeal(bytes));
  }

  /** Waits for memory that messages that arrived meanwhile have taken. */
  private sendAnswer(sid: string, plaintext: Uint8Array, form: Form, tries: number): void {
    if (this.sendSealed(sid, plaintext, form) || tries === 0) return;
    if (this.options.canSeal === undefined) return;
    const again = () => this.sendAnswer(sid, plaintext, form, tries - 1);
    this.ports.timer.set(MEMORY_WAIT_MS, again);
  }

  private sendSealed(sid: string, plaintext: Uint8Array, form: Form): boolean {
    // An expired session is over, even if its timer is late.
    this.forgetLapsed(this.ports.timer.now());
    // Before what was emitted later.
    this.sayLost(sid);
    // Before sealing: to the client, a used seq that is never sent would look like a loss.
    const packet = this.canSeal(plaintext.length) ? this.sessions.seal(sid, plaintext) : null;
    if (packet === null) {
      this.counters.notSent++;
      return false;
    }
    return this.sendPacket(packet, form);
  }

  private sendPacket(packet: string, form: Form): boolean {
    const text = encodeInForm(packet, form, this.options.agentId);
    if (!this.link.canSend() || text.length > MAX_MESSAGE_BYTES) {
      this.counters.notSent++;
      return false;
    }
    this.link.send(text);
    return true;
  }

  private rememberForm(sid: string, form: Form): void {
    const index = this.formSids.indexOf(sid);
    if (index >= 0) {
      this.forms[index] = form;
      return;
    }
    this.formSids.push(sid);
    this.forms.push(form);
    this.lost.push(0);
  }

  /** The form of events to a session: as it was last addressed, but without a request_id. */
  private formOf(sid: string): Form {
    const index = this.formSids.indexOf(sid);
    const form = index < 0 ? BARE : (this.forms[index] as Form);
    return { enveloped: form.enveloped, requestId: null };
  }

  /** `reason`: absent where time ended them. */
  private forgetLapsed(now: number, reason?: string): void {
    for (const sid of this.sessions.expire(now)) {
      this.dispatcher.forget(sid);
      this.tellPart(sid, reason === undefined ? "the session is over" : reason);
      const index = this.formSids.indexOf(sid);
      if (index >= 0) {
        this.formSids.splice(index, 1);
        this.forms.splice(index, 1);
        this.lost.splice(index, 1);
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
