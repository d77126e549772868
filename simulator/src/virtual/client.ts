/**
 * A client of the virtual world: the public client SDK over virtual time and the virtual network.
 */

import {
  type Agent,
  type CallError,
  Client,
  type Presence,
  type TimerPort,
} from "@blindrelay/client-sdk";
import type { Suite, X25519 } from "@blindrelay/protocol/crypto";
import { getOrMake } from "../base/maps.ts";
import { Stream } from "../base/random-streams.ts";
import type { PlannedNetwork } from "../scenario/plan.ts";
import type { Clock, Happening } from "./clock.ts";
import type { Device } from "./device.ts";
import { Conditions, type Net, type Peer } from "./net.ts";
import type { RelayStore } from "./relay-store.ts";

/** A client that could not connect at all retries after this long. */
const RETRY_MS = 5_000;
/** What is due with a call is done after this long. */
const USE_US = 2_000_000;

export interface ClientWorld {
  readonly seed: number;
  readonly clock: Clock;
  readonly net: Net;
  readonly suite: Suite;
  readonly x25519: X25519;
  readonly store: RelayStore;
  stir(): void;
  /** A client was made; nothing of it has run. */
  met(client: Client): void;
  presence(client: VirtualClient, presence: Presence): void;
  linked(client: VirtualClient, online: boolean): void;
}

/** The network of clients that no scenario describes. */
export const USUAL_NETWORK: PlannedNetwork = { latencyUs: 20_000, jitterUs: 5_000, bytesPerS: 0 };

/** Resolves after so many milliseconds of virtual time. */
export const sleep = (world: Pick<ClientWorld, "clock" | "stir">, ms: number): Promise<void> =>
  new Promise((resolve) => {
    world.clock.after(ms, () => {
      world.stir();
      resolve();
    });
  });

export interface ClientOptions {
  id: string;
  address: string;
  network: PlannedNetwork;
  presence: boolean;
  /** The account that owns it. */
  account: string;
  /** It is there only while it has something to do. */
  leaves?: boolean;
  /** Told of each SDK client that it makes. */
  met?: (client: Client) => void;
}

export class VirtualClient implements Peer {
  readonly id: string;
  readonly address: string;
  readonly conditions: Conditions;
  readonly netDraws: Stream;
  readonly pingSalt: number;
  sdk: Client | null = null;
  online = false;
  /** When it first tried to connect. */
  sinceUs = Number.POSITIVE_INFINITY;
  /** Since when it is online. */
  onlineSinceUs = 0;
  /** When it last lost its link. */
  lostUs = Number.NEGATIVE_INFINITY;
  links = 0;
  private readonly world: ClientWorld;
  /** It asked to be told which agents are online. */
  readonly presence: boolean;
  readonly leaves: boolean;
  /** What it does at the moment. */
  private busy = 0;
  /** The beginnings of two uses, the second one at least USE_US later. */
  private used: readonly [number, number] = [Number.NEGATIVE_INFINITY, Number.NEGATIVE_INFINITY];
  readonly userId: string;
  private readonly draws: Stream;
  private readonly met: ((client: Client) => void) | undefined;
  /** The client's handles, by the agent's secret. */
  private readonly agents = new Map<string, Agent>();

  constructor(world: ClientWorld, options: ClientOptions) {
    this.world = world;
    this.id = options.id;
    this.address = options.address;
    this.presence = options.presence;
    this.leaves = options.leaves === true;
    this.met = options.met;
    this.userId = options.account;
    this.conditions = new Conditions(options.network);
    this.netDraws = new Stream(`${world.seed}/${options.id}/net`);
    this.pingSalt = new Stream(`${world.seed}/${options.id}/pings`).next();
    this.draws = new Stream(`${world.seed}/${options.id}/random`);
  }

  /** The time of its process. */
  readonly timer: TimerPort = {
    now: () => this.world.clock.nowMs(),
    set: (ms, fn) => this.world.clock.at(this.world.clock.dueUs(ms), runTimer, this, fn),
    clear: (handle) => this.world.clock.cancel(handle as Happening),
  };

  get isOn(): boolean {
    return this.sinceUs <= this.world.clock.nowUs;
  }

  /** When something was begun with it, not just now. */
  get usedUs(): number {
    const [before, last] = this.used;
    return last <= this.world.clock.nowUs - USE_US ? last : before;
  }

  /** Connects, and retries if that fails. */
  start(): void {
    const { world } = this;
    this.sinceUs = Math.min(this.sinceUs, world.clock.nowUs);
    const client = new Client(
      {
        url: "ws://relay.invalid/wss",
        accountToken: world.store.accountToken(this.userId),
        presence: this.presence,
      },
      {
        link: {
          connect: (_url, events) => {
            this.links += 1;
            return world.net.connect(this, events);
          },
        },
        timer: this.timer,
        random: (length) => this.draws.bytes(length),
        suite: world.suite,
        x25519: world.x25519,
        log: () => undefined,
      },
    );
    world.met(client);
    this.met?.(client);
    client.on("link", ({ state }) => {
      const online = state === "online";
      if (online === this.online) return;
      this.online = online;
      world.linked(this, online);
    });
    if (this.presence) client.on("presence", (presence) => world.presence(this, presence));
    this.sdk = client;
    this.agents.clear();
    client.start().catch(() => {
      if (this.sdk !== client) return;
      this.sdk = null;
      world.clock.after(RETRY_MS, () => {
        // It may have left meanwhile, or come again for another call.
        if (this.sdk === null && this.isOn) this.start();
      });
    });
    world.stir();
  }

  stop(): void {
    this.sdk?.close();
    this.sdk = null;
    this.sinceUs = Number.POSITIVE_INFINITY;
    if (!this.online) return;
    this.online = false;
    this.world.linked(this, false);
  }

  /** Calls a device; `done` is called once with the outcome. */
  call(
    device: Device,
    request: {
      method: string;
      params: unknown;
      timeoutMs: number;
      idempotent: boolean;
      waitForAgent?: boolean;
      signal?: AbortSignal;
    },
    done: (result: unknown, error: CallError | null) => void,
  ): void {
    const { method, params, ...options } = request;
    this.use(device, (agent) => agent.call(method, params, options), done);
  }

  /** Does something with a device; `done` is called once with the outcome. */
  use(
    device: Device,
    does: (agent: Agent) => Promise<unknown>,
    done: (result: unknown, error: CallError | null) => void,
  ): void {
    this.world.stir();
    if (this.leaves && !this.isOn) this.start();
    const { nowUs } = this.world.clock;
    const [, last] = this.used;
    if (nowUs - last >= USE_US) this.used = [last, nowUs];
    const agent = this.agent(device);
    if (agent === null) {
      done(undefined, {
        code: "UNREACHABLE",
        message: "the client is not connected yet",
      } as CallError);
      return;
    }
    this.busy += 1;
    const ended = (result: unknown, error: CallError | null): void => {
      done(result, error);
      this.busy -= 1;
      if (this.leaves && this.busy === 0) this.stop();
    };
    does(agent).then(
      (result) => ended(result, null),
      (error: CallError) => ended(undefined, error),
    );
  }

  /** The SDK's handle of a device; null: it is not connected yet. */
  agent(device: Device): Agent | null {
    const { sdk } = this;
    if (sdk === null) return null;
    const { id, agentToken, agentOptions } = device;
    const made = () => sdk.agent(id, agentToken, agentOptions);
    return getOrMake(this.agents, agentToken, made);
  }

  stir(): void {
    this.world.stir();
  }
}

/**
 * The clients of people who do something with devices, one for each account. `kind` and `number`
 * name them; `net`: of their addresses.
 */
export const people = (
  world: ClientWorld,
  { kind, number, net, leaves }: { kind: string; number: number; net: number; leaves: boolean },
) => {
  const clients = new Map<string, VirtualClient>();
  const of = (account: string): VirtualClient =>
    getOrMake(clients, account, () => {
      const id = `${kind}-${number}/${clients.size + 1}`;
      const address = `172.${net}.${number & 255}.${clients.size & 255}`;
      const options = { id, address, network: USUAL_NETWORK, presence: false, account, leaves };
      const made = new VirtualClient(world, options);
      if (!leaves) made.start();
      return made;
    });
  const stop = (): void => {
    for (const client of clients.values()) client.stop();
  };
  return { of, stop };
};

const runTimer = (client: VirtualClient, fn: () => void): void => {
  client.stir();
  fn();
};
