/**
 * Peers that do more than call: subscribers, streams, and raw peers without an SDK that reach the
 * relay's limits. Each checks itself what it does, and reports what it was not told.
 */
import type { Client } from "@blindrelay/client-sdk";
import { DEFAULT_ACCOUNT } from "../scenario/plan.ts";
import type { DriverSpec } from "../scenario/schema.ts";
import { durationMs } from "../scenario/units.ts";
import { USUAL_NETWORK, VirtualClient } from "./client.ts";
import { bindings } from "./driver-bindings.ts";
import { flood } from "./driver-flood.ts";
import { garbage } from "./driver-garbage.ts";
import { RawWorld } from "./driver-raw.ts";
import { serial } from "./driver-serial.ts";
import { slow } from "./driver-slow.ts";
import { streams } from "./driver-streams.ts";
import { Subscriber } from "./driver-subscriber.ts";
import { takeover } from "./driver-takeover.ts";
import type { DriverWorld } from "./driver-world.ts";

/** Raw peers have this account, so that they use up nobody else's share of the relay. */
const RAW_ACCOUNT = "raw";
const DEFAULT_FROM = "15s";
const DEFAULT_EVERY = "60s";

const RAW = { flood, garbage, bindings, slow, takeover } as const;

/** Starts a driver at its time; it continues until the run ends. */
export const startDriver = (
  world: DriverWorld,
  spec: DriverSpec,
  number: number,
  endUs: number,
): void => {
  const id = `${spec.kind}-${number + 1}`;
  const fromUs = Math.round(durationMs(spec.from ?? DEFAULT_FROM) * 1000);
  const everyMs = durationMs(spec.every ?? DEFAULT_EVERY);
  const { clock } = world;
  const devices = world.devices.filter(({ plan }) => plan.group === spec.devices);
  if (spec.kind === "serial") {
    for (const [i, device] of devices.entries()) {
      const begin = (): void => serial(world, id, device, `172.18.${number & 255}.${i & 255}`);
      clock.at(fromUs, begin, null, null);
    }
    return;
  }
  if (spec.kind === "subscriber" || spec.kind === "streams") {
    const address = `172.17.${number >> 8}.${number & 255}`;
    const account = devices[0]?.userId ?? DEFAULT_ACCOUNT;
    const options = { id, address, network: USUAL_NETWORK, presence: true, account };
    if (spec.kind === "subscriber") {
      const subscriber = new Subscriber(world, id, devices);
      const met = (made: Client): void => subscriber.met(made);
      const client = new VirtualClient(world, { ...options, met });
      subscriber.listenAs(client);
      clock.at(fromUs, () => client.start(), null, null);
      return;
    }
    const client = new VirtualClient(world, options);
    clock.at(fromUs, () => client.start(), null, null);
    for (const [i, device] of devices.entries()) {
      clock.at(fromUs + 10_000_000 + i * 500_000, () => repeat(), null, null);
      const repeat = (): void => {
        world.stir();
        void streams(world, client, device).then(() => clock.after(everyMs, repeat));
      };
    }
    return;
  }
  const raw = new RawWorld(world, id, `${RAW_ACCOUNT}-${number + 1}`, `10.255.${number}.`);
  const play = RAW[spec.kind];
  const repeat = (): void => {
    world.stir();
    raw.begin();
    void play(raw).then(() => {
      raw.leave();
      if (clock.nowUs + everyMs * 1000 < endUs) clock.after(everyMs, repeat);
    });
  };
  clock.at(fromUs, repeat, null, null);
};
