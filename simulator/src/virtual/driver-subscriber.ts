/**
 * A client that listens to the events of busy devices, which number them: it must hear of each one
 * that is missing, and hear events again once everything is well.
 */
import type { Client } from "@blindrelay/client-sdk";
import type { VirtualClient } from "./client.ts";
import type { Device } from "./device.ts";
import type { DriverWorld } from "./driver-world.ts";

/** A busy device has an event every five seconds. */
const DEAF_MS = 60_000;
const LOOK_MS = 10_000;

interface Heard {
  /** Of the device: it numbers its events anew from each. */
  start: number;
  n: number;
  atUs: number;
  /** Since then it was told that something is missing. */
  isTold: boolean;
}

export class Subscriber {
  private readonly world: DriverWorld;
  private readonly id: string;
  private readonly devices: readonly Device[];
  private readonly heard = new Map<Device, Heard>();
  /** The secret with which each is listened to: a device that lost its storage has another. */
  private readonly tokens = new Map<Device, string>();
  private current: Client | null = null;
  private peer: VirtualClient | null = null;

  constructor(world: DriverWorld, id: string, devices: readonly Device[]) {
    this.world = world;
    this.id = id;
    this.devices = devices;
    const look = (): void => {
      this.look();
      world.clock.after(LOOK_MS, look);
    };
    world.clock.after(LOOK_MS, look);
  }

  /** The peer whose clients these are. */
  listenAs(peer: VirtualClient): void {
    this.peer = peer;
  }

  /** Of each client that is made: after a failed start there is another. */
  met(client: Client): void {
    this.current = client;
    for (const device of this.devices) this.listen(client, device);
    client.on("link", ({ state }) => {
      if (state !== "online") for (const known of this.heard.values()) known.isTold = true;
    });
  }

  private listen(client: Client, device: Device): void {
    const token = device.agentToken;
    this.tokens.set(device, token);
    const agent = client.agent(device.id, token, device.agentOptions);
    const tell = (): void => {
      const known = this.heard.get(device);
      if (known !== undefined) known.isTold = true;
    };
    agent.on("gap", tell);
    agent.on("interrupted", tell);
    agent.on("reopened", tell);
    agent.on("event", (_, data) => {
      if (this.current !== client) return;
      const { n, start } = data as { n: number; start: number };
      const before = this.heard.get(device);
      // Under the secret before, it may come late.
      const isTold = this.tokens.get(device) !== token;
      this.heard.set(device, { start, n, atUs: this.world.clock.nowUs, isTold });
      if (before === undefined || before.start !== start) return;
      if (n <= before.n) {
        this.violate(`event ${n} of ${device.id} came after ${before.n}`);
      } else if (n > before.n + 1 && !before.isTold) {
        this.violate(`${n - before.n - 1} events of ${device.id} are missing, and nothing said so`);
      }
    });
  }

  /** Once the world is calm, every device that is online is heard. */
  private look(): void {
    const { clock, liveness } = this.world;
    const { current } = this;
    for (const device of this.devices) {
      if (current === null || this.tokens.get(device) === device.agentToken) continue;
      this.world.stir();
      // Under another secret it begins anew, and knows that.
      const known = this.heard.get(device);
      if (known !== undefined) known.isTold = true;
      this.listen(current, device);
    }
    const sinceUs = clock.nowUs - DEAF_MS * 1000;
    if (sinceUs < 0 || !liveness.wasCalm(sinceUs)) return;
    if (this.peer?.online !== true || this.peer.onlineSinceUs > sinceUs) return;
    for (const device of this.devices) {
      const known = this.heard.get(device);
      const isLong = device.online && device.onlineSinceUs < sinceUs;
      if (isLong && (known?.atUs ?? 0) < sinceUs) {
        this.violate(`it has heard nothing of ${device.id} for a minute, without any fault`);
      }
    }
  }

  private violate(detail: string): void {
    this.world.violate("events", `${this.id}: ${detail}`);
  }
}
