/**
 * A person with a client: one link, a peer for every agent, and calls whose outcomes are recorded.
 */

import { seededRandom } from "@blindrelay/agent-sdk/memory";
import { makeToken } from "@blindrelay/protocol";
import type { Suite } from "@blindrelay/protocol/crypto";
import { nodeX25519 as x25519 } from "@blindrelay/protocol/suites/node-x25519";
import type { CallOutcome, CallRecord } from "@blindrelay/simulator/testing";
import type { Build } from "./build.ts";
import { type Push, push } from "./pusher.ts";
import type { DeviceUnderAttack, Surroundings } from "./surroundings.ts";

type ClientCore = InstanceType<Build["client"]["ClientCore"]>;
type Peer = ReturnType<ClientCore["addPeer"]>;

const PUSH_CALL_MS = 20_000;
/** All of the same length, so that parts of two could be swapped. */
const PROGRAM_BYTES = 60;

export interface PersonOptions {
  readonly name: string;
  readonly seed: number;
  readonly ClientCore: Build["client"]["ClientCore"];
  readonly suite: Suite;
  /** Called for missing packets. */
  readonly gap?: (packets: number) => void;
}

export class Person {
  readonly isAgent = false;
  readonly name: string;
  core: ClientCore;
  /** Events received, by agent and number. */
  private readonly heard = new Map<string, number>();
  private readonly stage: Surroundings;
  private readonly peers = new Map<DeviceUnderAttack, Peer>();
  private readonly options: PersonOptions;
  private readonly random;
  private pushed = 0;

  constructor(stage: Surroundings, options: PersonOptions) {
    this.stage = stage;
    this.name = options.name;
    this.options = options;
    this.random = seededRandom(options.seed);
    this.core = this.connect();
  }

  private connect(): ClientCore {
    const { stage, options } = this;
    const core = new options.ClientCore(
      {
        url: "wss://relay.test/wss",
        accountToken: makeToken("account", new Uint8Array(32)),
        sessionToken: null,
        presence: false,
        ports: {
          link: stage.relay.port(this),
          timer: stage.makeTimer(() => true),
          random: this.random,
          suite: options.suite,
          x25519,
          log: () => undefined,
        },
      },
      {
        link: () => undefined,
        presence: () => undefined,
      },
    );
    core.start();
    stage.relay.pump();
    return core;
  }

  /** Ends the client, as a command does, and starts another one. */
  leave(): void {
    this.core.close();
    this.stage.relay.pump();
    this.core = this.connect();
    const boards = [...this.peers.keys()];
    this.peers.clear();
    for (const board of boards) this.meet(board);
  }

  /** Learns the secret of an agent, or its new one. */
  meet(board: DeviceUnderAttack): void {
    const { name: agentId, agentToken, version } = board;
    this.peers.get(board)?.subscribe(false);
    const peer = this.core.addPeer(
      { agentId, agentToken, version, deviceKey: null },
      {
        event: (_event, data) => this.hear(data),
        gap: (packets) => this.options.gap?.(packets),
        interrupted: () => undefined,
        reopened: () => undefined,
      },
    );
    this.peers.set(board, peer);
  }

  call(
    board: DeviceUnderAttack,
    method: "now" | "slow",
    idempotent: boolean,
    timeoutMs: number,
  ): CallRecord {
    const record = this.stage.calls.made(this.name, board.name, idempotent, timeoutMs);
    const request = { method, params: { marker: record.marker }, timeoutMs, idempotent };
    this.core.call(this.peers.get(board) as Peer, request, (outcome) =>
      this.stage.calls.ended(record, outcome as CallOutcome),
    );
    this.stage.relay.pump();
    return record;
  }

  /** Pushes a program, repeating it until the steps are done; null if the board accepts none. */
  push(board: DeviceUnderAttack, throws: boolean): Push | null {
    const { wishes } = board;
    if (wishes === undefined) return null;
    this.pushed++;
    const what = throws ? "that throws" : "that works";
    const program = `program ${this.pushed} of ${this.name} ${what}`.padEnd(PROGRAM_BYTES, ".");
    const ask = (params: object | undefined, answer: (result: unknown) => void): void => {
      const method = "system.push";
      const request = { method, params, timeoutMs: PUSH_CALL_MS, idempotent: true };
      this.core.call(this.peers.get(board) as Peer, request, (outcome) =>
        answer(outcome.ok ? outcome.result : null),
      );
      this.stage.relay.pump();
    };
    const timer = this.stage.makeTimer(() => true);
    return push(program, wishes, ask, (ms, fn) => timer.set(ms, fn));
  }

  /** Subscribes to events, or unsubscribes. */
  listen(board: DeviceUnderAttack, on: boolean): void {
    this.peers.get(board)?.subscribe(on);
    this.stage.relay.pump();
  }

  private hear(data: unknown): void {
    const { from, number } = data as { from: string; number: number };
    if (number <= (this.heard.get(from) ?? 0)) {
      this.stage.violate(`${this.name} received event ${number} of ${from} again or late`);
    }
    this.heard.set(from, number);
  }
}
