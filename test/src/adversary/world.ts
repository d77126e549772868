// biome-ignore-all lint/complexity/useLiteralKeys: tables are private, and looked at from here only.
/**
 * Several agents and several clients, real SDK cores, around a relay that is the attacker; one
 * virtual clock, no sockets, everything from a seed. Two agents share one secret under two ids, one
 * agent speaks suite "2".
 */
import type { TimerPort } from "@blindrelay/agent-sdk";
import { ManualTimer, MEDIA } from "@blindrelay/agent-sdk/memory";
import { makeToken } from "@blindrelay/protocol";
import type { Suite } from "@blindrelay/protocol/crypto";
import { NonceRecorder, processRecorder, recorded } from "../nonces/recorder.ts";
import type { Build } from "./build.ts";
import { CallOracle } from "./call-oracle.ts";
import { Device, MAX_SESSIONS } from "./device.ts";
import { Person } from "./person.ts";
import { Relay } from "./relay.ts";
import { SessionOracle } from "./session-oracle.ts";
import { tap, withKeyNames } from "./taps.ts";

/** Timers that one instant may fire; more is a circle. */
const TIMERS_AT_ONCE = 1_000;
const PING_EVERY_MS = 30_000;
/** Longer than any back-off after lost links, so that everybody is back when the relay has reformed. */
const RECOVERY_MS = 100_000;

const secret = (fill: number): string => makeToken("e2e", new Uint8Array(32).fill(fill));

export class World {
  readonly build: Build;
  readonly timer = new ManualTimer();
  readonly relay: Relay;
  readonly sessions: SessionOracle;
  readonly calls: CallOracle;
  readonly devices: readonly Device[];
  readonly people: readonly Person[];
  private readonly found: string[] = [];
  private readonly nonces = new NonceRecorder();
  private pingedAt = 0;
  /** The latest instant in which a timer fired, and how many did. */
  private instant = { at: 0, fired: 0 };

  constructor(build: Build, seed = 1) {
    // The same secrets in every world, so what other worlds sealed is none of this one's business.
    processRecorder().startScope();
    tap(build);
    this.build = build;
    this.relay = new Relay((act) => this.attempt(act));
    this.sessions = new SessionOracle(
      (what) => this.violate(what),
      (first) => this.relay.agentOf(first),
    );
    this.calls = new CallOracle((what) => this.violate(what));
    const medium = (i: number) => MEDIA[(seed + i) % MEDIA.length] ?? "overwrite";
    const device = (name: string, token: string, version: "1" | "2", i: number): Device =>
      new Device(this, { name, agentToken: token, version, medium: medium(i), seed: 10 + i });
    this.devices = [
      device("pump", secret(101), "1", 0),
      device("lamp", secret(102), "2", 1),
      device("twin-of-pump", secret(101), "1", 2),
    ];
    this.people = ["ada", "bob"].map((name, i) => new Person(this, name, seed * 1000 + i));
    for (const agent of this.devices) this.relay.addAgent(agent);
    for (const person of this.people) for (const agent of this.devices) person.meet(agent);
    for (const agent of this.devices) agent.boot();
  }

  /** Packets that people were told are missing. */
  missed = 0;

  /** Everything that went wrong, oldest first. */
  get violations(): readonly string[] {
    for (const reuse of this.nonces.takeViolations()) this.found.push(reuse);
    return this.found;
  }

  violate(what: string): void {
    this.found.push(what);
  }

  /** Runs what belongs to a participant: whatever it throws is a violation. */
  attempt(act: () => void): void {
    try {
      act();
    } catch (thrown) {
      this.violate(`exception: ${thrown instanceof Error ? thrown.stack : String(thrown)}`);
    }
  }

  /** A suite object of its own for every participant, with every nonce recorded. */
  makeSuite(): Suite {
    return withKeyNames(recorded(this.build.suites.nodeSuite(), this.nonces));
  }

  /** A participant's view of the clock, while it is alive. */
  makeTimer(alive: () => boolean): TimerPort {
    return {
      now: () => this.timer.now(),
      set: (ms, fn) => {
        if (this.instant.fired > TIMERS_AT_ONCE) return null;
        return this.timer.set(ms, () => {
          if (this.instant.at !== this.timer.now())
            this.instant = { at: this.timer.now(), fired: 0 };
          this.instant.fired++;
          if (this.instant.fired === TIMERS_AT_ONCE) this.violate("timers fire in a circle");
          if (alive()) this.attempt(fn);
        });
      },
      clear: (handle) => this.timer.clear(handle),
    };
  }

  /** Lets time pass; links stay alive, packets stay where they are. */
  wait(ms: number): void {
    const end = this.timer.now() + ms;
    while (this.timer.now() < end) {
      const step = Math.min(end, this.pingedAt + PING_EVERY_MS) - this.timer.now();
      this.timer.advance(step);
      this.relay.pump();
      if (this.timer.now() - this.pingedAt < PING_EVERY_MS) continue;
      this.pingedAt = this.timer.now();
      this.relay.ping();
    }
  }

  /** Lets time pass with an honest relay, which looks at its sockets every `stepMs`. */
  behave(ms: number, stepMs = 250): void {
    const end = this.timer.now() + ms;
    this.relay.flow();
    while (this.timer.now() < end) {
      this.wait(Math.min(stepMs, end - this.timer.now()));
      this.relay.flow();
    }
  }

  /** A board was given a new secret; its people learn it. */
  tokenChanged(device: Device): void {
    for (const person of this.people) person.meet(device);
  }

  /** The attacker gives up: whoever calls now gets an answer, and no table has grown. */
  mustRecover(): void {
    for (const device of this.devices) if (device.core === null) device.boot();
    for (const held of [...this.relay.waiting]) this.relay.drop(held);
    this.behave(RECOVERY_MS, 2_000);
    const calls = this.people.flatMap((person) =>
      this.devices.map((device) => person.call(device, "now", true, 30_000)),
    );
    for (let i = 0; i < 120 && calls.some((call) => call.outcome === null); i++) this.behave(250);
    for (const call of calls) {
      if (call.outcome?.ok) continue;
      const how = call.outcome === null ? "nothing" : call.outcome.error.code;
      this.violate(`honest again, yet ${call.person} calls ${call.agentId} and gets ${how}`);
    }
    this.wait(31_000);
    for (const call of this.calls.pending) this.violate(`call ${call.marker} never ended`);
    if (this.missed !== this.sessions.counters.missing) {
      this.violate(`${this.missed} packets reported missing of ${this.sessions.counters.missing}`);
    }
    this.checkTables();
  }

  /** With every call ended, nothing is left of what the attacker did. */
  private checkTables(): void {
    const atMost = (limit: number, what: string, size: number): void => {
      if (size > limit) this.violate(`${what}: ${size} entries, at most ${limit} expected`);
    };
    for (const { name, core } of this.devices) {
      if (core === null) continue;
      atMost(MAX_SESSIONS, `forms of ${name}`, core["formSids"].length);
      atMost(0, `calls of ${name}`, core.dispatcher.inFlight());
    }
    for (const { name, core } of this.people) {
      atMost(core["peers"].size, `sessions of ${name}`, core["owners"].size);
      atMost(0, `calls of ${name}`, core["calls"].size + core["inFlight"].size);
    }
  }
}
