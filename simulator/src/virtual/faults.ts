/**
 * Plays one planned fault in a virtual world: its effect when it begins, and what its end restores.
 */

import { Stream } from "../base/random-streams.ts";
import { overlay } from "../base/temporary-changes.ts";
import { RECOVERY_US } from "../oracle/liveness.ts";
import type { RelayOracle } from "../oracle/relay.ts";
import type { PlannedFault } from "../scenario/plan.ts";
import { durationMs, shareOf, sizeOf } from "../scenario/units.ts";
import type { Device } from "./device.ts";
import { hostile } from "./hostile.ts";
import type { Conditions, Peer, Wire } from "./net.ts";
import type { VirtualNodes } from "./nodes.ts";
import type { LoadedProgram } from "./program.ts";
import { textOf } from "./program-slots.ts";
import { pushTo } from "./push.ts";
import { type RekeyWorld, rekey } from "./rekey.ts";
import type { RelayStore } from "./relay-store.ts";

/** What faults can change in a world. */
export interface Faulty extends RekeyWorld {
  /** How many pushes there were, and changes of secrets. */
  pushes: number;
  rekeys: number;
  readonly devices: readonly Device[];
  readonly clients: readonly Peer[];
  readonly relay: VirtualNodes;
  readonly store: RelayStore;
  readonly programs: ReadonlyMap<string, LoadedProgram>;
  readonly relayOracle: RelayOracle;
  /** Called 100 s after a fault's end. */
  checkRecovered(): void;
}

export const playFault = (world: Faulty, fault: PlannedFault): void => {
  const { clock, liveness } = world;
  const { spec } = fault;
  world.trace("fault", spec.kind, "begins");
  liveness.faultBegins(clock.nowUs);
  const end = begin(world, fault);
  clock.at(
    fault.endUs,
    () => {
      end();
      world.trace("fault", spec.kind, "ends");
      liveness.faultEnds(clock.nowUs);
      world.stir();
      // Slightly after the end of the recovery, when everything has settled.
      clock.at(clock.nowUs + RECOVERY_US + 1000, () => world.checkRecovered(), null, null);
    },
    null,
    null,
  );
};

const nothing = (): void => undefined;

/** Begins the fault; the result ends it. */
const begin = (world: Faulty, fault: PlannedFault): (() => void) => {
  const { spec, devices: numbers, clients } = fault;
  const devices = numbers.map((n) => world.devices[n] as Device);
  const peers: Peer[] = [...devices, ...clients.map((n) => world.clients[n] as Peer)];
  const each = (does: (conditions: Conditions) => void): void => {
    for (const { conditions } of peers) {
      for (const wire of conditions.wires) wire.wake();
      does(conditions);
    }
  };
  const eachWire = (does: (wire: Wire) => void): void =>
    each(({ wires }) => {
      for (const wire of [...wires]) does(wire);
    });
  const add = (count: "cut" | "partitioned" | "stalled", by: number): void =>
    each((conditions) => {
      conditions[count] += by;
    });
  switch (spec.kind) {
    case "net.cut":
      add("cut", 1);
      eachWire((wire) => wire.cut("the link was lost"));
      return () => add("cut", -1);
    case "net.partition":
      add("partitioned", 1);
      return () => {
        add("partitioned", -1);
        eachWire((wire) => wire.healed());
      };
    case "net.half_open":
      eachWire((wire) => wire.halfOpen("the link was lost"));
      return nothing;
    case "net.delay": {
      const latencyUs = Math.round(durationMs(spec.latency as string) * 1000);
      const jitterUs = Math.round(durationMs(spec.jitter ?? "0s") * 1000);
      return change(each, { latencyUs, jitterUs });
    }
    case "net.bandwidth":
      return paced(eachWire, change(each, { bytesPerS: sizeOf(spec.bandwidth as string) }));
    case "net.slow_reader":
      add("stalled", 1);
      return () => {
        add("stalled", -1);
        eachWire((wire) => wire.readAgain());
      };
    case "net.corrupt":
      return change(each, { corrupt: part(spec.messages as string) });
    case "device.reboot":
      for (const device of devices) {
        device.unplug();
        if (spec.storage === "lose") device.loseStorage();
      }
      return () => {
        for (const device of devices) device.plugIn();
      };
    case "device.update": {
      const other = spec.program === undefined ? null : world.programs.get(spec.program);
      const pushed = devices.map((device) => ({ device, text: textOf(other ?? device.program) }));
      pushTo(world, world.pushes++, pushed, durationMs(spec.trial ?? "60s") / 1000);
      return nothing;
    }
    case "device.rekey":
      rekey(world, world.rekeys++, devices, (fault.endUs - fault.atUs) / 1000);
      return nothing;
    case "storage.torn":
      return tear(devices, spec.boot === true ? "bootTears" : "tears");
    case "storage.full":
      for (const device of devices) device.fulls += 1;
      return () => {
        for (const device of devices) device.fulls -= 1;
      };
    case "clock.skew":
      for (const device of devices) device.skewMs += skewOf(spec);
      return nothing;
    case "relay.restart":
      world.relay.node(spec.node ?? 1).restart(durationMs(spec.for ?? "1s"));
      return nothing;
    case "relay.crash":
      world.relay.node(spec.node ?? 1).crash(durationMs(spec.for ?? "2s"));
      world.relayOracle.crashed();
      return nothing;
    case "relay.freeze":
      return world.relay.node(spec.node ?? 1).freeze();
    case "relay.skew":
      world.relay.node(spec.node ?? 1).skewMs += skewOf(spec);
      return nothing;
    case "bus.away":
      world.relay.bus?.goAway();
      return () => world.relay.bus?.comeBack();
    case "bus.partition": {
      const link = world.relay.node(spec.node ?? 1).busLink;
      link?.partition();
      return () => link?.heal();
    }
    case "bus.delay":
      return overlay(world.relay.bus, {
        latencyUs: Math.round(durationMs(spec.latency as string) * 1000),
        jitterUs: Math.round(durationMs(spec.jitter ?? "0s") * 1000),
      });
    case "bus.loss":
      return overlay(world.relay.bus, { loss: part(spec.messages as string) });
    case "bus.repeat":
      return overlay(world.relay.bus, { repeats: part(spec.messages as string) });
    case "relay.hostile": {
      const drawsOf = (peerId: string): Stream =>
        new Stream(`${world.seed}/${peerId}/hostile/${fault.atUs}`);
      const share = part(spec.messages as string);
      const meddler = hostile(spec.attack ?? "drop", share, world.relay.records, drawsOf);
      return overlay(world.relay, { meddler });
    }
    case "store.slow":
      return overlay(world.store, { latencyMs: durationMs(spec.latency as string) });
    case "store.away":
      world.store.away += 1;
      return () => {
        world.store.away -= 1;
      };
    case "store.unsure":
      return overlay(world.store, { unsure: part(spec.share as string) });
    case "operator.rotate":
      return rotate(world, devices);
  }
};

const tear = (devices: readonly Device[], where: "tears" | "bootTears"): (() => void) => {
  for (const device of devices) {
    device[where] += 1;
    // One that is off is torn at its next start.
    if (where === "bootTears" && device.core !== null) {
      device.powerOff();
      device.boot();
    }
  }
  return () => {
    for (const device of devices) device[where] = Math.max(0, device[where] - 1);
  };
};

const skewOf = ({ by, back }: PlannedFault["spec"]): number =>
  durationMs(by as string) * (back === true ? -1 : 1);

const part = (share: string): number => shareOf(share) * 2 ** 32;

/** Changes the conditions of everything that `each` visits, until undone. */
const change = (
  each: (does: (conditions: Conditions) => void) => void,
  to: Partial<Conditions>,
): (() => void) => {
  const ends = new Map<Conditions, () => void>();
  each((conditions) => ends.set(conditions, overlay(conditions, to)));
  return () => each((conditions) => ends.get(conditions)?.());
};

/** The change of bandwidth, and its end, are felt by what already waits. */
const paced = (eachWire: (does: (wire: Wire) => void) => void, end: () => void): (() => void) => {
  const felt = (): void => eachWire((wire) => wire.paceChanged());
  felt();
  return () => {
    end();
    felt();
  };
};

/**
 * The operator is answered at once; the devices get their new tokens at the fault's end, or those
 * of another rotation that has begun since.
 */
const rotate = (world: Faulty, devices: readonly Device[]): (() => void) => {
  for (const device of devices) {
    const old = device.issuedToken;
    device.issuedToken = world.store.issueAgent(device.id);
    world.relay.revokeAgent(device.id);
    const wires = [...device.conditions.wires];
    if (world.relay.bus !== null) revokedSoon(world, old, wires);
    // At once, but a real store works outside of virtual time.
    else world.clock.after(0, () => world.relayOracle.revokedNow(old, wires));
  }
  return () => {
    for (const device of devices) {
      device.powerOff();
      device.relayToken = device.issuedToken;
      device.boot();
    }
  };
};

/** Links on the other nodes end within this time, or later by the store's delay if that is slow. */
const REVOKED_MS = 1500;

const revokedSoon = (world: Faulty, token: string, wires: readonly Wire[]): void => {
  const { clock, relay, store } = world;
  const judge = (isDue: boolean): void => {
    // A frozen process cannot end anything; it has the same time afterwards.
    const isHindered = relay.nodes.some(({ isFrozen }) => isFrozen) || store.away > 0;
    if (isHindered || !isDue) clock.after(REVOKED_MS, () => judge(!isHindered));
    else world.relayOracle.revokedNow(token, wires);
  };
  clock.after(REVOKED_MS + store.latencyMs, () => judge(true));
};
