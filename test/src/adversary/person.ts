/** Somebody with a client: one link, a peer for every agent, and calls whose outcomes are kept. */
import { seededRandom } from "@blindrelay/agent-sdk/memory";
import { makeToken } from "@blindrelay/protocol";
import type { CallOutcome, CallRecord } from "./call-oracle.ts";
import type { Device } from "./device.ts";
import { observeClient } from "./taps.ts";
import type { World } from "./world.ts";

type ClientCore = InstanceType<World["build"]["client"]["ClientCore"]>;
type Peer = ReturnType<ClientCore["addPeer"]>;

export class Person {
  readonly isAgent = false;
  readonly name: string;
  readonly core: ClientCore;
  /** Events heard, by agent and number. */
  private readonly heard = new Map<string, number>();
  private readonly world: World;
  private readonly peers = new Map<Device, Peer>();

  constructor(world: World, name: string, seed: number) {
    this.world = world;
    this.name = name;
    const suite = world.makeSuite();
    observeClient(suite, world.sessions.client(name));
    this.core = new world.build.client.ClientCore(
      {
        url: "wss://relay.test/wss",
        accountToken: makeToken("account", new Uint8Array(32)),
        sessionToken: null,
        presence: false,
        ports: {
          link: world.relay.port(this),
          timer: world.makeTimer(() => true),
          random: seededRandom(seed),
          suite,
          log: () => undefined,
        },
      },
      {
        link: () => undefined,
        presence: () => undefined,
        event: (_peer, _event, data) => this.hear(data),
        gap: (_peer, packets) => {
          world.missed += packets;
        },
      },
    );
    this.core.start();
    world.relay.pump();
  }

  /** Learns the secret of an agent, or its new one. */
  meet(device: Device): void {
    const { name: agentId, agentToken, version } = device;
    this.peers.get(device)?.subscribe(false);
    this.peers.set(device, this.core.addPeer({ agentId, agentToken, version }));
  }

  call(device: Device, method: "now" | "slow", idempotent: boolean, timeoutMs: number): CallRecord {
    const record = this.world.calls.made(this.name, device.name, idempotent);
    const request = { method, params: { marker: record.marker }, timeoutMs, idempotent };
    this.core.call(this.peers.get(device) as Peer, request, (outcome) =>
      this.world.calls.ended(record, outcome as CallOutcome),
    );
    this.world.relay.pump();
    return record;
  }

  /** Holds sessions open to hear events, or lets go. */
  listen(device: Device, on: boolean): void {
    this.peers.get(device)?.subscribe(on);
    this.world.relay.pump();
  }

  private hear(data: unknown): void {
    const { from, number } = data as { from: string; number: number };
    if (number <= (this.heard.get(from) ?? 0)) {
      this.world.violate(`${this.name} heard event ${number} of ${from} again or late`);
    }
    this.heard.set(from, number);
  }
}
