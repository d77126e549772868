// biome-ignore-all lint/complexity/useLiteralKeys: tables are private, and read only here.
/**
 * Several agents and several clients, real SDK cores, around a relay that is the attacker; one
 * virtual clock, no sockets, everything from a seed. Two agents share one secret under two ids, one
 * agent uses suite "2".
 */
import { MEDIA } from "@blindrelay/agent-sdk/memory";
import { makeToken } from "@blindrelay/protocol";
import type { Suite } from "@blindrelay/protocol/crypto";
import { NonceRecorder, processRecorder, recorded } from "../instruments/nonces/recorder.ts";
import type { Build } from "./build.ts";
import { Device, MAX_SESSIONS } from "./device.ts";
import { Person } from "./person.ts";
import { SessionOracle } from "./session-oracle.ts";
import { Stage } from "./stage.ts";
import { observeClient, tap, withKeyNames } from "./taps.ts";

const secret = (fill: number): string => makeToken("e2e", new Uint8Array(32).fill(fill));

export class World extends Stage {
  readonly build: Build;
  readonly sessions: SessionOracle;
  readonly devices: readonly Device[];
  readonly people: readonly Person[];
  /** Packets reported as missing. */
  missed = 0;
  private readonly nonces = new NonceRecorder();

  constructor(build: Build, seed = 1) {
    super();
    // All worlds use the same secrets, so what other worlds sealed does not count here.
    processRecorder().startScope();
    tap(build);
    this.build = build;
    this.sessions = new SessionOracle(
      (what) => this.violate(what),
      (first) => this.relay.agentOf(first),
    );
    const medium = (i: number) => MEDIA[(seed + i) % MEDIA.length] ?? "overwrite";
    const device = (name: string, token: string, version: "1" | "2", i: number): Device =>
      new Device(this, { name, agentToken: token, version, medium: medium(i), seed: 10 + i });
    this.devices = [
      device("pump", secret(101), "1", 0),
      device("lamp", secret(102), "2", 1),
      device("twin-of-pump", secret(101), "1", 2),
    ];
    this.people = ["ada", "bob"].map((name, i) => this.makePerson(name, seed * 1000 + i));
    for (const agent of this.devices) this.relay.addAgent(agent);
    for (const person of this.people) for (const agent of this.devices) person.meet(agent);
    for (const agent of this.devices) agent.boot();
  }

  override get violations(): readonly string[] {
    for (const reuse of this.nonces.takeViolations()) this.violate(reuse);
    return super.violations;
  }

  /** A separate suite object for every participant, with every nonce recorded. */
  makeSuite(): Suite {
    return withKeyNames(recorded(this.build.suites.nodeSuite(), this.nonces));
  }

  /** Everything works as usual, and no table has grown. */
  override mustRecover(): void {
    for (const device of this.devices) if (device.core === null) device.boot();
    super.mustRecover();
    this.mustTakePush();
    if (this.missed !== this.sessions.counters.missing) {
      this.violate(`${this.missed} packets reported missing of ${this.sessions.counters.missing}`);
    }
    this.checkTables();
  }

  private makePerson(name: string, seed: number): Person {
    const suite = this.makeSuite();
    observeClient(suite, this.sessions.client(name));
    const { ClientCore } = this.build.client;
    const gap = (packets: number): void => {
      this.missed += packets;
    };
    return new Person(this, { name, seed, ClientCore, suite, gap });
  }

  /** Any trial has ended, and another program is accepted. */
  private mustTakePush(): void {
    const [person] = this.people;
    const [device] = this.devices;
    if (person === undefined || device === undefined) return;
    const pushed = person.push(device, false);
    for (let i = 0; i < 200 && pushed?.kept === null; i++) this.behave(250);
    if (pushed?.kept !== true) this.violate("honest again, yet a program is not kept");
    this.wait(31_000);
  }

  /** After every call has ended, nothing is left of what the attacker did. */
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
