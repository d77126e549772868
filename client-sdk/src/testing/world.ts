/** A client, a relay and agents in one virtual time, for the tests of this package. */

import { makeToken } from "@blindrelay/protocol";
import type { Version } from "@blindrelay/protocol/crypto";
import { nodeSuite } from "@blindrelay/protocol/suites/node";
import { nodeX25519 as x25519 } from "@blindrelay/protocol/suites/node-x25519";
import { Client, type ConnectOptions } from "../client.ts";
import type { CallError } from "../errors.ts";
import type { Ports } from "../ports.ts";
import { TestAgent } from "./agent.ts";
import { seededRandom, VirtualClock } from "./clock.ts";
import { MemoryRelay } from "./relay.ts";

const suite = nodeSuite();

const token = (kind: "account" | "session" | "e2e", n: number): string =>
  makeToken(kind, new Uint8Array(32).fill(n));

export const ACCOUNT_TOKEN = token("account", 1);
export const SECRET = token("e2e", 2);

/** The outcome of a call, once it has ended. */
export interface Ending {
  times: number;
  result?: unknown;
  error?: CallError;
}

export class World {
  readonly clock = new VirtualClock();
  readonly relay = new MemoryRelay(this.clock, [ACCOUNT_TOKEN], (n) => token("session", 10 + n));
  readonly ports: Ports;

  constructor(seed = 1) {
    this.ports = {
      link: this.relay,
      timer: this.clock,
      random: seededRandom(seed),
      suite,
      x25519,
      log: () => undefined,
    };
  }

  /** A suite that cannot seal while `fault.throws`. */
  failingSuite(throws: boolean): { throws: boolean } {
    const fault = { throws };
    const { suite } = this.ports;
    const seal: typeof suite.seal = (...all) => {
      if (fault.throws) throw new Error("Unknown cipher");
      return suite.seal(...all);
    };
    Object.assign(this.ports, { suite: { ...suite, seal } });
    return fault;
  }

  agent(id = "pump-7", secret = SECRET, version: Version = "1"): TestAgent {
    const { relay, clock: timer } = this;
    return new TestAgent({ id, token: secret, suite, timer, relay, version });
  }

  /** A client that is not connected yet. */
  client(options: Partial<ConnectOptions> = {}): Client {
    return new Client(
      { url: "https://relay.test", accountToken: ACCOUNT_TOKEN, ...options },
      this.ports,
    );
  }

  async connected(options: Partial<ConnectOptions> = {}): Promise<Client> {
    const started = this.client(options).start();
    await this.clock.run(100);
    return started;
  }

  run(ms: number): Promise<void> {
    return this.clock.run(ms);
  }

  /** Follows a promise without awaiting it. */
  follow(promise: Promise<unknown>): Ending {
    const ending: Ending = { times: 0 };
    promise.then(
      (result) => {
        ending.times++;
        ending.result = result;
      },
      (error: CallError) => {
        ending.times++;
        ending.error = error;
      },
    );
    return ending;
  }
}

export { token as testToken };
