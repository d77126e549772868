/**
 * The relay's real hub without sockets: its links are callbacks, its store is a Directory, its
 * clock is the runtime's. Messages are delivered as microtasks, in order and never from inside
 * `send`, so that a test with fake timers need not advance them.
 */

import type { AgentPorts } from "@blindrelay/agent-sdk";
import type { Link, LinkEvents, TimerPort } from "@blindrelay/agent-sdk/ports";
import { Client } from "@blindrelay/client-sdk";
import type { Version } from "@blindrelay/protocol/crypto";
import { nobleSuite } from "@blindrelay/protocol/suites/noble";
import { nobleX25519 as x25519 } from "@blindrelay/protocol/suites/noble-x25519";
import {
  type DriverTimer,
  type HubLink,
  Lockout,
  type RunningHub,
  runHub,
} from "@blindrelay/relay-server/core";
import { Directory, randomBytes } from "./directory.ts";
import { FakeDevice, type FakeDeviceParts } from "./fake-device.ts";

export interface FakeDeviceOptions {
  /** `agent_id`; defaults to "device-1", "device-2", …. */
  readonly id?: string;
  /** A display name; defaults to the id. */
  readonly name?: string;
  /** Suite of the packets. Defaults to "1". */
  readonly version?: Version;
}

/** The relay's operations on a peer's link. */
export interface PeerLink {
  send(text: string): void;
  close(code: number, reason: string): void;
}

/** A peer's operations on its link. */
export interface RelayLink {
  receive(text: string): void;
  closed(): void;
}

/** setTimeout fires at once for longer delays. */
const LONGEST_MS = 2 ** 31 - 1;
/** The address of every peer of a relay in memory. */
const ADDRESS = "127.0.0.1";
const LOST = 1006;

export class MemoryRelay {
  /** The account, its agents and their tokens. */
  readonly directory = new Directory();
  private readonly running: RunningHub;
  private readonly devices: FakeDevice[] = [];
  private readonly clients: Client[] = [];
  private readonly suite = nobleSuite();

  constructor() {
    this.running = runHub({
      lookups: this.directory,
      writeBehind: this.directory,
      lockout: new Lockout(),
      clocks: { steadyMs: nowMs, wallMs: nowMs },
      log: { error: () => undefined },
      timer: DRIVER_TIMER,
    });
  }

  get accountToken(): string {
    return this.directory.accountToken;
  }

  /**
   * Creates a device with this program and switches it on. Resolves once it is online; rejects with
   * the error that the program threw, or if the id is taken.
   */
  async addDevice(
    program: FakeDeviceParts["program"],
    options: FakeDeviceOptions = {},
  ): Promise<FakeDevice> {
    const { id = `device-${this.directory.agents.size + 1}`, name = id, version = "1" } = options;
    const record = this.directory.addAgent(id, name);
    let cut = (): void => undefined;
    const ports: AgentPorts = {
      link: {
        connect: (_url, events) => {
          const link = new MemoryLink(this, events);
          cut = () => link.close(LOST, "cut");
          return link;
        },
      },
      timer: TIMER,
      random: randomBytes,
      suite: this.suite,
      log: () => undefined,
    };
    const device = new FakeDevice({ record, version, program, ports, cut: () => cut() });
    this.devices.push(device);
    await device.powerOn();
    return device;
  }

  /** A client of the SDK, logged in to the account, like one from an edge's `connect`. */
  async connect(options: { readonly presence?: boolean } = {}): Promise<Client> {
    const { presence = false } = options;
    const client = new Client(
      { url: "ws://relay.invalid/wss", accountToken: this.accountToken, presence },
      {
        link: { connect: (_url, events) => new MemoryLink(this, events) },
        timer: TIMER,
        random: randomBytes,
        suite: this.suite,
        x25519,
        log: () => undefined,
      },
    );
    this.clients.push(client);
    return client.start();
  }

  /** Whether an agent is logged in. */
  isOnline(agentId: string): boolean {
    return this.running.hub.isOnline(agentId);
  }

  /** Ends an agent's link, because its token was rotated. */
  endAgent(agentId: string): void {
    this.running.hub.endAgent(agentId, "REVOKED", nowMs());
  }

  /** Ends an agent's link and removes its bindings, because it was deleted. */
  forgetAgent(agentId: string): void {
    this.running.hub.forgetAgent(agentId, "REVOKED", nowMs());
  }

  /** Ends the links of the account's clients, because its token was rotated. */
  endClients(userId: string): void {
    this.running.hub.endClients(userId, "REVOKED", nowMs());
  }

  /** A link of any kind, such as a WebSocket; the result receives what its peer does. */
  accept(peer: PeerLink): RelayLink {
    const { hub } = this.running;
    let isPaused = false;
    /** Messages that came while the hub was not reading. */
    const held: string[] = [];
    const take = () => {
      while (!isPaused && held.length > 0) {
        const text = held.shift() as string;
        try {
          hub.receive(connection, text, encoder.encode(text), nowMs());
        } catch {
          peer.close(1011, "INTERNAL");
        }
      }
    };
    const link: HubLink = {
      send: (frame) => peer.send(typeof frame === "string" ? frame : decoder.decode(frame)),
      // Nothing waits: a peer in memory accepts every message at once.
      queued: () => 0,
      close: (code, reason) => peer.close(code, reason),
      pause: () => {
        isPaused = true;
      },
      resume: () => {
        isPaused = false;
        take();
      },
    };
    const connection = hub.connect(link, ADDRESS, nowMs());
    return {
      receive: (text) => {
        held.push(text);
        take();
      },
      closed: () => hub.closed(connection, nowMs()),
    };
  }

  /** Ends everything: devices, clients and the relay's own timers. */
  close(): void {
    for (const device of this.devices) device.powerOff();
    for (const client of this.clients) client.close();
    this.running.stop();
  }
}

const encoder = new TextEncoder();
const decoder = new TextDecoder();

/** A link between a core and the relay. Both ends are notified of its end, each once. */
class MemoryLink implements Link, PeerLink {
  private state: "connecting" | "open" | "closed" = "connecting";
  private readonly events: LinkEvents;
  private relay: RelayLink | null = null;

  constructor(relay: MemoryRelay, events: LinkEvents) {
    this.events = events;
    queueMicrotask(() => {
      if (this.state !== "connecting") return;
      this.state = "open";
      this.relay = relay.accept({
        send: (text) => this.deliver(() => events.received(text)),
        close: (code, reason) => this.close(code, reason),
      });
      events.opened();
    });
  }

  /** From the core to the relay. */
  send(text: string): void {
    this.deliver(() => this.relay?.receive(text));
  }

  /** Messages that were already sent still arrive. */
  close(code: number, reason: string): void {
    queueMicrotask(() => {
      if (this.state === "closed") return;
      this.state = "closed";
      this.events.closed(code, reason);
      this.relay?.closed();
    });
  }

  private deliver(arrive: () => void): void {
    queueMicrotask(() => {
      if (this.state === "open") arrive();
    });
  }
}

let latestMs = 0;

/**
 * The wall clock, except that it never goes back: a test that fakes its timers sets
 * `performance.now` back to 0, and later restores real time.
 */
const nowMs = (): number => {
  latestMs = Math.max(latestMs, Date.now());
  return latestMs;
};

/** Timers that do not keep Node running; browsers have no such concept. */
const unref = (timer: unknown): void => (timer as { unref?: () => void }).unref?.();

const TIMER: TimerPort = {
  now: nowMs,
  set: (ms, fn) => {
    // One more, because setTimeout may fire up to a millisecond early.
    const timer = setTimeout(fn, Math.min(Math.ceil(ms) + 1, LONGEST_MS));
    unref(timer);
    return timer;
  },
  clear: (handle) => clearTimeout(handle as ReturnType<typeof setTimeout>),
};

const DRIVER_TIMER: DriverTimer = {
  now: nowMs,
  every: (ms, fn) => {
    const timer = setInterval(fn, ms);
    unref(timer);
    return () => clearInterval(timer);
  },
  after: (ms, fn) => {
    const timer = setTimeout(fn, ms);
    unref(timer);
    return () => clearTimeout(timer);
  },
  soon: (fn) => void setTimeout(fn, 0),
};
