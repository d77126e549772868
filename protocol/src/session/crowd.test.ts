/**
 * Crowds of clients that open at once (section 2: "One epoch, a window of sessions", "Bounded
 * work"): real AgentSessions and ClientSessions in virtual time, behind an honest relay that
 * forwards in order. The agent handles one packet after another; each takes as long as a board
 * needs for it. Every client makes one call and leaves.
 */
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { asciiBytes, asciiText } from "../encoding/bytes.ts";
import { nodeSuite } from "../suites/node.ts";
import type { AgentSessionLimits, AgentVerdict } from "./agent.ts";
import { AgentSessions, DEFAULT_AGENT_LIMITS } from "./agent.ts";
import type { ClientEffect } from "./client.ts";
import { ClientSession, DEFAULT_CLIENT_TIMINGS } from "./client.ts";
import { CLOSE_NOTICE } from "./closing.ts";

const suite = nodeSuite();
let crowds = 0;
const IDENTITY = { agentToken: "a secret of the tests, and long enough", version: "1" as const };
const PONG = '{"jsonrpc":"2.0","id":1,"result":{}}';
const RESULT = '{"jsonrpc":"2.0","id":2,"result":{}}';
const CALL = '{"jsonrpc":"2.0","id":2,"method":"door.open"}';

/** A device, and how far away its clients are. */
interface Place {
  readonly limits: AgentSessionLimits;
  /** Of a packet that is opened or answered, and of one that is refused without cryptography. */
  readonly handlingMs: number;
  readonly refusingMs: number;
  readonly roundTripMs: number;
  /** What each client wants before it leaves: a call, or only a session. */
  readonly visit: "call" | "session";
}

const BOARD: Place = {
  limits: { maxSessions: 8, unheldPerSecond: 4, unheldBurst: 16, epochSessions: 16 },
  handlingMs: 60,
  refusingMs: 10,
  roundTripMs: 100,
  visit: "call",
};
const NODE: Place = {
  limits: DEFAULT_AGENT_LIMITS,
  handlingMs: 0.2,
  refusingMs: 0.05,
  roundTripMs: 200,
  visit: "session",
};
/** Clients in a crowd hold their sessions at the same time. */
const ROOMY: Place = {
  ...NODE,
  limits: { ...DEFAULT_AGENT_LIMITS, maxSessions: 256 },
  visit: "call",
};

/** Bytes that depend on the seed only. */
const randomFrom = (seed: number) => {
  let state = seed;
  return (length: number): Uint8Array =>
    Uint8Array.from({ length }, () => {
      state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
      return state >>> 24;
    });
};

interface Event {
  readonly at: number;
  readonly act: () => void;
}

class Clock {
  now = 0;
  private readonly events: Event[] = [];

  at(at: number, act: () => void): void {
    let i = this.events.length;
    while (i > 0 && (this.events[i - 1] as Event).at > at) i--;
    this.events.splice(i, 0, { at: Math.max(at, this.now), act });
  }

  /** Does what falls due until `endMs`, or until `isDone`. */
  run(endMs: number, isDone: () => boolean): void {
    while (!isDone()) {
      const next = this.events.shift();
      if (next === undefined || next.at > endMs) return;
      this.now = next.at;
      next.act();
    }
  }
}

/** One at a time, in the order of arrival. */
class Device {
  private readonly clock: Clock;
  private readonly place: Place;
  private readonly sessions: AgentSessions;
  private readonly clients = new Map<string, Client>();
  private freeAt = 0;

  constructor(clock: Clock, place: Place, agentId: string) {
    this.clock = clock;
    this.place = place;
    this.sessions = new AgentSessions({
      suite,
      agentId,
      ...IDENTITY,
      bootCount: 1,
      deviceRandom: new Uint8Array(16),
      serialNumber: null,
      limits: place.limits,
    });
  }

  /** From a client, at the relay now. */
  arrive(text: string, from: Client): void {
    const [first] = (JSON.parse(text) as { sid: string }).sid.split(".");
    this.clients.set(first as string, from);
    this.clock.at(this.clock.now + this.place.roundTripMs / 2, () => {
      this.clock.at(Math.max(this.clock.now, this.freeAt), () => this.handle(text));
    });
  }

  private handle(text: string): void {
    if (this.clock.now < this.freeAt) {
      this.clock.at(this.freeAt, () => this.handle(text));
      return;
    }
    const verdict = this.sessions.receive(text, this.clock.now);
    const isRefused = verdict.kind === "refused" && verdict.reason !== "forged";
    this.freeAt = this.clock.now + (isRefused ? this.place.refusingMs : this.place.handlingMs);
    this.clock.at(this.freeAt, () => this.act(verdict));
  }

  private act(verdict: AgentVerdict): void {
    if (verdict.kind === "answer") this.send(verdict.text);
    if (verdict.kind !== "message") return;
    if (verdict.farewell !== null) this.send(verdict.farewell.text);
    const said = asciiText(verdict.plaintext);
    if (said === CLOSE_NOTICE) this.sessions.close(verdict.sid);
    else this.reply(verdict.sid, said === CALL ? RESULT : PONG);
  }

  private reply(sid: string, plaintext: string): void {
    const text = this.sessions.seal(sid, asciiBytes(plaintext));
    if (text !== null) this.send(text);
  }

  private send(text: string): void {
    const [first] = (JSON.parse(text) as { sid: string }).sid.split(".");
    const client = this.clients.get(first as string);
    this.clock.at(this.clock.now + this.place.roundTripMs / 2, () => client?.receive(text));
  }
}

class Client {
  /** How long it had to wait; null: it still does. */
  waited: number | null = null;
  private startedAt = 0;
  private readonly clock: Clock;
  private readonly device: Device;
  private readonly visit: Place["visit"];
  private readonly session: ClientSession;

  constructor(clock: Clock, device: Device, agentId: string, visit: Place["visit"], seed: number) {
    this.visit = visit;
    this.clock = clock;
    this.device = device;
    this.session = new ClientSession({
      suite,
      random: randomFrom(seed),
      agentId,
      ...IDENTITY,
      timings: DEFAULT_CLIENT_TIMINGS,
    });
  }

  start(): void {
    this.startedAt = this.clock.now;
    this.open();
  }

  private open(): void {
    this.take(this.session.open(this.clock.now));
  }

  receive(text: string): void {
    this.take(this.session.receive(text, this.clock.now));
  }

  private take(effects: readonly ClientEffect[]): void {
    for (const effect of effects) {
      if (effect.kind === "send") this.send(effect.text);
      if (effect.kind === "opened") this.opened();
      if (effect.kind === "message") this.hear(asciiText(effect.plaintext));
    }
    const wakeAt = this.session.wakeAt();
    if (wakeAt === null) return;
    this.clock.at(wakeAt, () => {
      if (this.session.wakeAt() === wakeAt) this.take(this.session.timeout(this.clock.now));
    });
  }

  private opened(): void {
    if (this.visit === "call") this.seal(CALL);
    else this.leave();
  }

  private hear(said: string): void {
    if (said === RESULT) {
      this.leave();
    } else if (said === CLOSE_NOTICE) {
      // Dropped for lack of room: a client opens anew at once.
      this.session.giveUp();
      this.open();
    }
  }

  private leave(): void {
    this.waited = this.clock.now - this.startedAt;
    this.seal(CLOSE_NOTICE);
    this.session.giveUp();
  }

  private seal(plaintext: string): void {
    this.send(this.session.seal(asciiBytes(plaintext)) as string);
  }

  private send(text: string): void {
    this.device.arrive(text, this);
  }
}

/** How long the clients of a crowd, who come within `spreadMs`, had to wait; within 5 minutes. */
const waitsOf = (place: Place, count: number, seed: number, spreadMs = 0): (number | null)[] => {
  crowds++;
  const agentId = `crowd-${crowds}`; // with keys of its own
  const clock = new Clock();
  const device = new Device(clock, place, agentId);
  const random = randomFrom(seed);
  const clients = Array.from(
    { length: count },
    (_, i) => new Client(clock, device, agentId, place.visit, seed * 1000 + i),
  );
  for (const client of clients) {
    clock.at(((random(1)[0] as number) / 256) * spreadMs, () => client.start());
  }
  clock.run(300_000, () => clients.every(({ waited }) => waited !== null));
  return clients.map(({ waited }) => waited);
};

const longest = (waits: readonly (number | null)[]): number =>
  Math.max(...waits.map((wait) => wait ?? Infinity));

describe("a crowd that opens at once", () => {
  it.each([
    ["50 clients of a board within 30 s", BOARD, 50, 30_000],
    ["100 clients of a board within 60 s", BOARD, 100, 60_000],
    ["200 clients of a Node agent within 1 s", NODE, 200, 1_000],
    ["200 clients and their calls, where a Node agent has room for them", ROOMY, 200, 1_000],
  ])("is served: %s", (_what, place, count, limitMs) => {
    for (const seed of [1, 2, 3]) {
      expect(longest(waitsOf(place, count, seed))).toBeLessThanOrEqual(limitMs);
    }
  });

  it("is served by a board within 30 s, whatever its size up to 50 and its haste", () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 50 }),
        fc.integer({ min: 0, max: 20_000 }),
        fc.integer({ min: 20, max: 400 }),
        fc.nat(),
        (count, spreadMs, roundTripMs, seed) => {
          const waits = waitsOf({ ...BOARD, roundTripMs }, count, seed, spreadMs);
          expect(longest(waits)).toBeLessThanOrEqual(30_000);
        },
      ),
      { numRuns: 40 },
    );
  });
});
