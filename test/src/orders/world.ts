/**
 * One agent, a few clients and a relay that keeps every packet and may deliver each at any time,
 * any number of times, or never: the real sessions over ideal cryptography, as a state that can be
 * copied, compared and moved in every way. What breaks a promise of section 2 is `violation`.
 */
import type { AgentSessions, ClientEffect, ClientSession } from "@blindrelay/protocol/session";
import type { Build } from "./build.ts";
import { copyOf, textOfState } from "./copy.ts";
import { IdealSuite } from "./ideal-suite.ts";
import type { Bounds, Move } from "./moves.ts";
import type { Promised } from "./promises.ts";
import { Wire } from "./wire.ts";

/** Longer than a call may take, shorter than a session is kept. */
const WAIT_MS = 20_000;
const CALL_MS = 10_000;
/** What clocks are allowed: "Nothing old". */
const CLOCK_SHARE = 0.01;
const CLOCK_MS = 5_000;
const MAX_PLAINTEXT = 1_000;
const C_BYTES = 16;

const IDENTITY = { agentId: "a", agentToken: "t".repeat(40), version: "1" } as const;

export interface Person {
  session: ClientSession;
  /** How many `C`s it drew. */
  draws: number;
  calls: number;
  /** When the answer to the first ping came. */
  openedAt: number;
}

/** The same for all worlds of one search. */
export class Stage {
  readonly suite: IdealSuite;
  readonly build: Build;
  readonly bounds: Bounds;
  readonly dispatcher: InstanceType<Build["Dispatcher"]>;
  /** The world that moves at present. */
  world: World | null = null;

  constructor(build: Build, bounds: Bounds) {
    this.build = build;
    this.bounds = bounds;
    this.suite = new IdealSuite(bounds.collide);
    this.suite.witness = (place, content) => this.world?.sealed(place, content);
    this.dispatcher = new build.Dispatcher(MAX_PLAINTEXT, () => {});
    this.dispatcher.add("system.ping", () => this.world?.ran(null));
    this.dispatcher.add("work", (params) => this.world?.ran((params as { by: number }).by));
  }
}

export class World {
  private readonly stage: Stage;
  violation: Promised | null = null;
  now = 0;
  waits = 0;
  boot = 1;
  restarts = 0;
  agent: AgentSessions;
  readonly people: Person[] = [];
  readonly wire: Wire;
  /** What the agent accepted, and the sids that it stored. */
  readonly accepted: string[] = [];
  readonly stored: string[] = [];
  /** What clients accepted. */
  readonly taken: string[] = [];
  private readonly seals: Map<string, string>;
  /** The secrets of this boot's epochs, in order. */
  private readonly secrets: string[] = [];
  /** The session whose packet is executed, and its age. */
  private executing = { sid: "", ageMs: 0 };

  constructor(stage: Stage, from?: World) {
    this.stage = stage;
    this.wire = new Wire(from?.wire);
    if (from === undefined) {
      this.seals = new Map();
      this.agent = this.startAgent();
      for (let i = 0; i < stage.bounds.clients; i++) this.addPerson();
      return;
    }
    this.now = from.now;
    this.waits = from.waits;
    this.boot = from.boot;
    this.restarts = from.restarts;
    this.agent = copyOf(from.agent);
    for (const person of from.people) {
      this.people.push(this.ownRandom({ ...person, session: copyOf(person.session) }));
    }
    this.accepted.push(...from.accepted);
    this.stored.push(...from.stored);
    this.taken.push(...from.taken);
    this.seals = new Map(from.seals);
    this.secrets.push(...from.secrets);
  }

  copy(): World {
    return new World(this.stage, this);
  }

  /** Equal for two worlds with the same future if nothing that was sent before arrives again. */
  sessions(): string {
    const people = this.people.map((person) => [
      person.draws,
      person.calls,
      person.openedAt,
      textOfState(person.session),
    ]);
    const { waits, boot, restarts } = this;
    return JSON.stringify([waits, boot, restarts, textOfState(this.agent), people]);
  }

  /** Equal for two worlds with the same future, given their `sessions()`. */
  key(sessions: string): string {
    const texts = [this.wire.texts(), this.accepted, this.taken];
    return JSON.stringify(texts.map((each) => each.toSorted())) + sessions;
  }

  moves(): Move[] {
    const { bounds } = this.stage;
    const moves: Move[] = [];
    // Clients are alike: they open in order.
    const next = this.people.findIndex((person) => person.draws === 0);
    if (next >= 0) moves.push(["open", next]);
    this.people.forEach(({ session, calls }, client) => {
      if (session.state === "open" && calls < bounds.calls) moves.push(["call", client]);
    });
    for (const { client, seq } of this.wire.toAgent) moves.push(["toAgent", client, seq]);
    for (const { client, boot, epoch, seq } of this.wire.toClient) {
      // Others drop it unread.
      if (this.people[client]?.session.first() !== null) {
        moves.push(["toClient", client, boot, epoch, seq]);
      }
    }
    for (const sid of this.agent.held()) {
      const from = this.wire.originOf(sid);
      if (from !== null) moves.push(["forget", from.client, from.boot, from.epoch]);
    }
    if (this.restarts < bounds.restarts) moves.push(["restart"]);
    if (this.waits < bounds.waits) moves.push(["wait"]);
    return moves;
  }

  do(move: Move): void {
    this.stage.world = this;
    const [kind] = move;
    if (kind === "open") this.act(move[1], this.person(move[1]).session.open(this.now));
    else if (kind === "call") this.call(move[1]);
    else if (kind === "toAgent") {
      this.deliverToAgent(this.wire.packetToAgent(move[1], move[2]));
    } else if (kind === "toClient") {
      const [, client, boot, epoch, seq] = move;
      this.deliverToClient(client, this.wire.packetToClient(client, boot, epoch, seq));
    } else if (kind === "forget") {
      this.forget(move[1], move[2], move[3]);
    } else if (kind === "restart") {
      this.restarts++;
      this.boot++;
      this.secrets.length = 0;
      this.agent = this.startAgent();
    } else {
      this.waits++;
      this.now += WAIT_MS;
      // The silence ends what was not confirmed. Whoever abandoned its C waits on.
      this.people.forEach(({ session }, client) => {
        if (session.state === "confirming") this.act(client, session.timeout(this.now));
      });
    }
    this.noteEpoch();
    this.agent.expire(this.now);
  }

  person(client: number): Person {
    const person = this.people[client];
    if (person === undefined) throw new Error(`no client ${client}`);
    return person;
  }

  /** Seals a call that must not run after CALL_MS; null unless the session is open. */
  call(client: number): string | null {
    this.stage.world = this;
    const person = this.person(client);
    const by = this.now + CALL_MS;
    const text = person.session.seal(
      Buffer.from(
        JSON.stringify({
          ...{ jsonrpc: "2.0", id: 2 + person.calls, method: "work", params: { by } },
          expires: by - person.openedAt,
        }),
      ),
    );
    if (text === null) return null;
    person.calls++;
    this.wire.fromClient(client, text);
    return text;
  }

  /** Returns what the agent sends in return. */
  deliverToAgent(text: string): string | null {
    this.stage.world = this;
    const verdict = this.agent.receive(text, this.now);
    this.noteEpoch();
    if (verdict.kind === "answer") {
      const sid = this.fromAgent(verdict.text);
      // The answer names an A to continue with, so it must be of the session that is held, or new.
      if (this.stored.includes(sid) && !this.agent.has(sid)) this.fail("derivedAgain");
      return verdict.text;
    }
    if (verdict.kind !== "message") return null;
    if (this.accepted.includes(text)) this.fail("twice");
    this.accepted.push(text);
    if (verdict.fresh) {
      this.stored.push(verdict.sid);
      this.checkEpoch(verdict.sid);
    }
    if (verdict.farewell !== null) this.fromAgent(verdict.farewell.text);
    let answer: string | null = null;
    this.executing = verdict;
    this.stage.dispatcher.receive(verdict.plaintext, verdict.sid, verdict.ageMs, (plaintext) => {
      answer = this.agent.seal(verdict.sid, plaintext);
      if (answer !== null) this.fromAgent(answer);
    });
    return answer;
  }

  /** Returns what the client sends in return. */
  deliverToClient(client: number, text: string): ClientEffect[] {
    this.stage.world = this;
    const effects = this.person(client).session.receive(text, this.now);
    if (effects.some(({ kind }) => kind === "opened" || kind === "message")) {
      if (this.taken.includes(text)) this.fail("takenTwice");
      this.taken.push(text);
    }
    this.act(client, effects);
    return effects;
  }

  /** Notes what a client did. */
  act(client: number, effects: readonly ClientEffect[]): void {
    for (const effect of effects) {
      if (effect.kind === "send") this.wire.fromClient(client, effect.text);
      if (effect.kind === "opened") this.person(client).openedAt = this.now;
    }
  }

  /** A fresh client, which has not opened. */
  addPerson(): void {
    const { build, suite } = this.stage;
    const session = new build.ClientSession({
      ...{ ...IDENTITY, suite, random: () => new Uint8Array() },
      timings: build.DEFAULT_CLIENT_TIMINGS,
    });
    this.people.push(this.ownRandom({ session, draws: 0, calls: 0, openedAt: 0 }));
  }

  /** Called by the suite. */
  sealed(place: string, content: string): void {
    const before = this.seals.get(place);
    if (before !== undefined && before !== content) this.fail("nonce");
    this.seals.set(place, content);
  }

  /** Called by a handler; the result differs each time that this session is executed. */
  ran(by: number | null): unknown {
    const { sid, ageMs } = this.executing;
    const allowed = Math.min(ageMs * CLOCK_SHARE, CLOCK_MS);
    if (by !== null && this.now > by + allowed) this.fail("late");
    return this.accepted.filter((text) => text.includes(sid)).length;
  }

  fail(violation: Promised): void {
    this.violation ??= violation;
  }

  private startAgent(): AgentSessions {
    const { build, suite, bounds } = this.stage;
    this.stage.world = this;
    const agent = new build.AgentSessions({
      ...{ ...IDENTITY, suite, bootCount: this.boot },
      // As on a board that gives the same bytes after every reset.
      ...{ deviceRandom: new Uint8Array(16), serialNumber: null },
      limits: {
        maxSessions: bounds.places,
        // What a bucket refuses is a loss, and those are searched anyway.
        unheldPerSecond: Number.POSITIVE_INFINITY,
        unheldBurst: 1,
        epochSessions: bounds.window,
      },
    });
    this.secrets.push(secretOf(agent));
    return agent;
  }

  private noteEpoch(): void {
    const secret = secretOf(this.agent);
    if (!this.secrets.includes(secret)) this.secrets.push(secret);
  }

  /** W sessions while it is current, then W more. */
  private checkEpoch(sid: string): void {
    const { window } = this.stage.bounds;
    const from = this.wire.originOf(sid);
    const isSame = (other: string): boolean => {
      const origin = this.wire.originOf(other);
      return origin?.boot === from?.boot && origin?.epoch === from?.epoch;
    };
    const isCurrent = from?.boot === this.boot && from.epoch === this.secrets.length - 1;
    const most = isCurrent ? window : 2 * window;
    if (this.stored.filter(isSame).length > most) this.fail("tooMany");
  }

  private forget(client: number, boot: number, epoch: number): void {
    const sid = this.agent.held().find((held) => {
      const from = this.wire.originOf(held);
      return from?.client === client && from.boot === boot && from.epoch === epoch;
    });
    if (sid === undefined) throw new Error(`client ${client} has no session of ${boot}, ${epoch}`);
    this.agent.close(sid);
  }

  private ownRandom(person: Person): Person {
    const client = this.people.length;
    person.session.random = (length) => {
      const bytes = new Uint8Array(length);
      // A C differs each time; a fraction need not.
      if (length === C_BYTES) bytes.set([client + 1, ++person.draws]);
      return bytes;
    };
    return person;
  }

  /** Returns the packet's sid. */
  private fromAgent(text: string): string {
    return this.wire.fromAgent(text, { boot: this.boot, epoch: this.secrets.length - 1 });
  }
}

const secretOf = (agent: AgentSessions): string =>
  Buffer.from((agent.epochs[0] as { secret: Uint8Array }).secret).toString("latin1");
