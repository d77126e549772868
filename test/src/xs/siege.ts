/**
 * Boards in XS, people with the client's SDK, and between them the malicious relay of ../adversary, on one
 * virtual clock. It has the members that the moves of that attacker play with; what is watched is what
 * people may rely on (call-oracle.ts), as the sessions inside XS cannot be looked into.
 */
import type { TimerPort } from "@blindrelay/agent-sdk";
import { ManualTimer, seededRandom } from "@blindrelay/agent-sdk/memory";
import { makeToken } from "@blindrelay/protocol";
import { nodeSuite } from "@blindrelay/protocol/suites/node";
import { ClientCore } from "../../../client-sdk/src/core/client-core.ts";
import { CallOracle, type CallOutcome, type CallRecord } from "../adversary/call-oracle.ts";
import { Relay } from "../adversary/relay.ts";
import { Board } from "./siege-board.ts";

type Peer = ReturnType<ClientCore["addPeer"]>;

const PING_EVERY_MS = 30_000;
const RECOVERY_MS = 100_000;

class Person {
  readonly isAgent = false;
  readonly name: string;
  private readonly siege: Siege;
  private readonly core: ClientCore;
  private readonly peers = new Map<Board, Peer>();
  private readonly heard = new Map<string, number>();

  constructor(siege: Siege, name: string, seed: number) {
    this.siege = siege;
    this.name = name;
    const { relay, timer } = siege;
    this.core = new ClientCore(
      {
        url: "wss://relay.test/wss",
        accountToken: makeToken("account", new Uint8Array(32)),
        sessionToken: null,
        presence: false,
        ports: {
          link: relay.port(this),
          timer,
          random: seededRandom(seed),
          suite: nodeSuite(),
          log: () => undefined,
        },
      },
      {
        link: () => undefined,
        presence: () => undefined,
        event: (_peer, _event, data) => this.hear(data),
        gap: () => undefined,
      },
    );
    this.core.start();
    relay.pump();
  }

  meet(board: Board): void {
    const { name: agentId, agentToken, version } = board;
    this.peers.get(board)?.subscribe(false);
    this.peers.set(board, this.core.addPeer({ agentId, agentToken, version }));
  }

  call(board: Board, method: "now" | "slow", idempotent: boolean, timeoutMs: number): CallRecord {
    const record = this.siege.calls.made(this.name, board.name, idempotent);
    const request = { method, params: { marker: record.marker }, timeoutMs, idempotent };
    this.core.call(this.peers.get(board) as Peer, request, (outcome) =>
      this.siege.calls.ended(record, outcome as CallOutcome),
    );
    this.siege.relay.pump();
    return record;
  }

  listen(board: Board, on: boolean): void {
    this.peers.get(board)?.subscribe(on);
    this.siege.relay.pump();
  }

  private hear(data: unknown): void {
    const { from, number } = data as { from: string; number: number };
    if (number <= (this.heard.get(from) ?? 0)) {
      this.siege.violate(`${this.name} heard event ${number} of ${from} again or late`);
    }
    this.heard.set(from, number);
  }
}

export class Siege {
  readonly manual = new ManualTimer();
  readonly timer: TimerPort = {
    now: () => this.manual.now(),
    set: (ms, fn) => this.manual.set(ms, () => this.attempt(fn)),
    clear: (handle) => this.manual.clear(handle),
  };
  readonly violations: string[] = [];
  readonly relay = new Relay((act) => this.attempt(act));
  readonly calls = new CallOracle((what) => this.violate(what));
  readonly devices: readonly Board[];
  readonly people: readonly Person[];
  private pingedAt = 0;

  constructor(engine: string, script: string, seed: number) {
    const board = (name: string, version: "1" | "2", i: number): Board => {
      const made: Board = new Board({
        ...{ name, version, engine, script, seed: seed * 8 + i },
        relay: this.relay,
        timer: this.timer,
        executed: (marker) => this.calls.executed(name, marker),
        tokenChanged: () => {
          for (const person of this.people ?? []) person.meet(made);
        },
      });
      return made;
    };
    this.devices = [board("pump", "1", 0), board("lamp", "2", 1)];
    this.people = ["ada", "bob"].map((name, i) => new Person(this, name, seed * 1000 + i));
    for (const device of this.devices) {
      this.relay.addAgent(device);
      device.boot();
    }
  }

  violate(what: string): void {
    this.violations.push(what);
  }

  /** Runs what belongs to a participant: whatever it throws is a violation. */
  attempt(act: () => void): void {
    try {
      act();
    } catch (thrown) {
      this.violate(`exception: ${thrown instanceof Error ? thrown.stack : String(thrown)}`);
    }
  }

  /** Lets time pass; links stay alive, packets stay where they are. */
  wait(ms: number): void {
    const end = this.manual.now() + ms;
    while (this.manual.now() < end) {
      this.manual.advance(Math.min(end, this.pingedAt + PING_EVERY_MS) - this.manual.now());
      this.relay.pump();
      if (this.manual.now() - this.pingedAt < PING_EVERY_MS) continue;
      this.pingedAt = this.manual.now();
      this.relay.ping();
    }
  }

  /** Lets time pass with an honest relay, which looks at its sockets every `stepMs`. */
  behave(ms: number, stepMs = 250): void {
    const end = this.manual.now() + ms;
    this.relay.flow();
    while (this.manual.now() < end) {
      this.wait(Math.min(stepMs, end - this.manual.now()));
      this.relay.flow();
    }
  }

  /** The attacker gives up: whoever calls now gets an answer. */
  mustRecover(): void {
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
  }

  async end(): Promise<void> {
    for (const device of this.devices) {
      device.powerOff();
      await Promise.all(device.ends);
    }
  }
}
