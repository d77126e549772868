/**
 * A device on a relay in memory whose clients hold one secret or the other. What a device says to a
 * message is complete when it has answered the relay's ping after it, so nothing here waits for
 * time to pass.
 */

import type { LinkPort, TimerPort } from "@blindrelay/agent-sdk";
import { memoryNetwork } from "@blindrelay/agent-sdk/memory";
import { makeToken } from "@blindrelay/protocol";
import { jsonBytes, type Version } from "@blindrelay/protocol/crypto";
import { ForwardClientSession } from "@blindrelay/protocol/forward-client";
import {
  type ClientEffect,
  ClientSession,
  DEFAULT_CLIENT_TIMINGS,
} from "@blindrelay/protocol/session";
import { nodeSuite } from "@blindrelay/protocol/suites/node";
import { nodeX25519 } from "@blindrelay/protocol/suites/node-x25519";
import { type FakeLink, FakeRelay } from "@blindrelay/protocol/testing/fake-relay";

export const AGENT_ID = "lamp-1";
export const RELAY_TOKEN = makeToken("agent", new Uint8Array(32).fill(1));
export const secretOf = (byte: number): string => makeToken("e2e", new Uint8Array(32).fill(byte));

/** Far more than a start, a login and an answer take. */
const MAX_TURNS = 100_000;

/** Lets what is due happen. */
export type Turn = () => void | Promise<void>;

export class Stage {
  readonly network: LinkPort;
  private readonly turn: Turn;
  private readonly relay: FakeRelay;
  private link: FakeLink | null = null;
  private received: string[] = [];
  private pongs = 0;

  constructor(timer: TimerPort, turn: Turn) {
    this.turn = turn;
    this.relay = new FakeRelay({
      auth: (link) => {
        this.link = link;
        link.accept(makeToken("session", new Uint8Array(32)));
      },
      packet: (_link, { text }) => this.received.push(text),
      message: (_link, { kind }) => {
        if (kind === "pong") this.pongs++;
      },
    });
    this.network = memoryNetwork({
      timer,
      accept: (end) => {
        const link = this.relay.attach(end);
        end.received = (text) => link.receive(text);
        return true;
      },
    });
  }

  /** A device was started on `network`. */
  async online(): Promise<void> {
    this.link = null;
    await this.until(() => this.link !== null);
  }

  private async until(isTrue: () => boolean): Promise<void> {
    for (let turns = 0; !isTrue(); turns++) {
      if (turns > MAX_TURNS) throw new Error("nothing happens any more");
      await this.turn();
    }
  }

  /** What the device sends because of this message. */
  private async say(text: string): Promise<string[]> {
    const link = this.link as FakeLink;
    this.received = [];
    const { pongs } = this;
    link.say(text);
    link.ping();
    await this.until(() => this.pongs > pongs);
    return this.received;
  }

  /** A session under this secret; null if none opens. */
  async open(agentToken: string, version: Version): Promise<ClientSession | null> {
    const options = {
      suite: nodeSuite(),
      random: (length: number) => crypto.getRandomValues(new Uint8Array(length)),
      agentId: AGENT_ID,
      agentToken,
      version,
      timings: DEFAULT_CLIENT_TIMINGS,
    };
    const session =
      version === "3"
        ? new ForwardClientSession(options, { x25519: nodeX25519, deviceKey: null })
        : new ClientSession(options);
    await this.carry(session, session.open(0));
    return session.state === "open" ? session : null;
  }

  async opens(agentToken: string, version: Version): Promise<boolean> {
    return (await this.open(agentToken, version)) !== null;
  }

  /** Calls a method, whatever the device answers. */
  async call(session: ClientSession, method: string, params: object): Promise<void> {
    const request = { jsonrpc: "2.0", id: 10, method, params };
    for (const text of await this.say(session.seal(jsonBytes(request)) as string))
      session.receive(text, 0);
  }

  private async carry(session: ClientSession, effects: readonly ClientEffect[]): Promise<void> {
    for (const effect of effects) {
      if (effect.kind !== "send") continue;
      for (const text of await this.say(effect.text)) {
        await this.carry(session, session.receive(text, 0));
      }
    }
  }
}
