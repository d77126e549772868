/**
 * One client and many agents on a perfect network: the real hub, client core and agent cores, real
 * cryptography, links in memory, all on one virtual clock.
 */

import { AgentCore, type AgentPorts } from "@blindrelay/agent-sdk";
import {
  ManualTimer,
  memoryNetwork,
  type RelayEnd,
  seededRandom,
} from "@blindrelay/agent-sdk/memory";
import type { Peer } from "@blindrelay/client-sdk/testing";
import { ClientCore } from "@blindrelay/client-sdk/testing";
import { makeToken } from "@blindrelay/protocol";
import type { Suite } from "@blindrelay/protocol/crypto";
import { nodeSuite } from "@blindrelay/protocol/suites/node";
import { nodeX25519 as x25519 } from "@blindrelay/protocol/suites/node-x25519";
import type { AuthRequest } from "@blindrelay/relay-server/testing/core";
import { Hub, Lockout, MemoryStore, TICK_MS } from "@blindrelay/relay-server/testing/core";

const USER = "ann";
const URL = "wss://relay.example/wss";
const EPOCH_MS = 1_767_225_600_000; // 2026-01-01T00:00:00Z
const LATENCY_MS = 20;

/** The SDKs require tokens in the contract's format, the store knows each by its owner's name. */
const inStoresForm = (request: AuthRequest): AuthRequest => {
  const { apiToken, agentId } = request;
  if (apiToken === undefined) return request;
  return { ...request, apiToken: agentId === undefined ? `acct:${USER}` : `agt:${agentId}` };
};

/** How many calls ended in which way: `ok`, or the error's code. */
export type Tally = Record<string, number>;

const IGNORED = {
  event: () => undefined,
  gap: () => undefined,
  interrupted: () => undefined,
  reopened: () => undefined,
};

export class ManyAgents {
  readonly timer = new ManualTimer();
  readonly endings: Tally = {};
  readonly random = seededRandom(1);
  readonly client: ClientCore;
  private readonly suite: Suite = nodeSuite();
  private readonly store = new MemoryStore();
  private readonly hub: Hub;
  private links = 0;

  constructor() {
    this.store.users.add(USER);
    this.hub = new Hub(
      {
        authenticate: (connection, request) => {
          const result = this.store.authenticate(inStoresForm(request));
          this.timer.set(0, () => this.hub.authenticated(connection, result, this.now()));
        },
        findOwner: (connection, agentId) => {
          const owner = this.store.owners.get(agentId) ?? null;
          this.timer.set(0, () => this.hub.ownerFound(connection, owner, this.now()));
        },
        findLabels: () => undefined,
        nextTurn: () => {
          this.timer.set(0, () => this.hub.turn(this.now()));
        },
        saveRequestsUsed: (sessionHash, used) => {
          const session = this.store.sessions.get(sessionHash.slice(1));
          if (session !== undefined) session.used = used;
        },
        agentSeen: () => undefined,
      },
      { lockout: new Lockout() },
      this.now(),
    );
    this.tick();
    this.client = new ClientCore(
      {
        url: URL,
        accountToken: makeToken("account", seededRandom(0)(32)),
        sessionToken: null,
        presence: false,
        ports: { ...this.ports(0), x25519 },
      },
      {
        link: () => undefined,
        presence: () => undefined,
      },
    );
    this.client.start();
  }

  /** An agent whose method "work" takes `workMs`, and the client's handle for it. */
  agent(n: number, workMs: () => number): Peer {
    const agentId = `agent-${n}`;
    const agentToken = makeToken("e2e", seededRandom(n)(32));
    this.store.owners.set(agentId, USER);
    const core = new AgentCore({
      url: URL,
      agentId,
      relayToken: makeToken("agent", seededRandom(n)(32)),
      agentToken,
      version: "1",
      runtime: "test",
      sdkVersion: "0",
      bootCount: 1,
      deviceRandom: seededRandom(n)(16),
      serialNumber: null,
      ports: this.ports(n),
    });
    core.agent.handle("work", (params) => ({
      // biome-ignore lint/suspicious/noThenProperty: a promise that settles on the world's clock.
      then: (settle: (value: unknown) => void) => core.agent.after(workMs(), () => settle(params)),
    }));
    core.start();
    return this.client.addPeer({ agentId, agentToken, version: "1", deviceKey: null }, IGNORED);
  }

  call(peer: Peer): void {
    const request = { method: "work", params: {}, timeoutMs: 30_000, idempotent: false };
    this.client.call(peer, request, (outcome) => {
      const ending = outcome.ok ? "ok" : outcome.error.code;
      this.endings[ending] = (this.endings[ending] ?? 0) + 1;
    });
  }

  /** At least 0, below `below`. */
  draw(below: number): number {
    const [a = 0, b = 0, c = 0] = this.random(3);
    return (((a << 16) | (b << 8) | c) / 2 ** 24) * below;
  }

  private now(): number {
    return EPOCH_MS + this.timer.now();
  }

  private tick(): void {
    this.hub.tick(this.now());
    this.timer.set(TICK_MS, () => this.tick());
  }

  private ports(seed: number): AgentPorts {
    return {
      link: memoryNetwork({
        timer: this.timer,
        latencyMs: LATENCY_MS,
        accept: (end) => this.accept(end),
      }),
      timer: this.timer,
      random: seededRandom(1_000_000 + seed),
      suite: this.suite,
      log: () => undefined,
    };
  }

  /** A link reaches the relay, each from its own address. */
  private accept(end: RelayEnd): undefined {
    this.links += 1;
    const connection = this.hub.connect(
      {
        send: (frame) =>
          end.send(typeof frame === "string" ? frame : Buffer.from(frame).toString("utf8")),
        queued: () => 0,
        close: (code, reason) => end.close(code, reason),
        pause: () => undefined,
        resume: () => undefined,
      },
      `10.0.${this.links >> 8}.${this.links & 255}`,
      this.now(),
    );
    end.received = (text) =>
      this.hub.receive(connection, text, Buffer.from(text, "utf8"), this.now());
    end.closed = () => this.hub.closed(connection, this.now());
  }
}
