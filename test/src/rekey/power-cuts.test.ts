import { linkWire } from "@blindrelay/agent-sdk/engines";
import { CuttableStorage, ManualTimer } from "@blindrelay/agent-sdk/memory";
import { describe } from "vitest";
import { DEAD_NETWORK } from "../hostile-boards/hardware.ts";
import { DEVICE_RUNTIMES, type Device, type DeviceRuntime, type Place } from "./devices.ts";
import { type Hardware, type Medium, powerCutTests } from "./power-cuts.ts";
import { AGENT_ID, RELAY_TOKEN, Stage } from "./stage.ts";

const TURN_MS = 10;
const SEED = Buffer.alloc(32, 7).toString("base64url");

class StorageMedium implements Medium {
  readonly storage: CuttableStorage;

  constructor(storage = new CuttableStorage("erase")) {
    this.storage = storage;
  }

  get steps(): number {
    return this.storage.steps;
  }

  cutAfter(step: number): void {
    this.storage.cutAfter(step);
  }

  copy(): Medium {
    return new StorageMedium(this.storage.copy());
  }

  texts(): string[] {
    return this.storage.contents();
  }
}

const hardwareOf = ({ title, isThere, load }: DeviceRuntime): Hardware => {
  let make: (place: Place) => Device;
  return {
    title,
    isThere,
    versions: ["1", "3"],
    async load() {
      make = await load();
    },
    async provision(agentToken, version) {
      const medium = new StorageMedium();
      const link = DEAD_NETWORK;
      const { storage } = medium;
      const device = make({ timer: new ManualTimer(), link, connect: linkWire(link), storage });
      device.provision(agentToken, version === "3" ? SEED : undefined);
      await device.end();
      return medium;
    },
    async live(medium, agentToken, packetVersion, act) {
      const timer = new ManualTimer();
      const stage = new Stage(timer, () => timer.advance(TURN_MS));
      const link = stage.network;
      const { storage } = medium as StorageMedium;
      const device = make({ timer, link, connect: linkWire(link), storage });
      try {
        device.start({
          ...{ url: "ws://relay.test/wss", agentId: AGENT_ID, relayToken: RELAY_TOKEN },
          ...{ agentToken, packetVersion },
        });
        await stage.online();
        await act(stage);
      } finally {
        await device.end();
      }
    },
  };
};

describe.each(DEVICE_RUNTIMES.map(hardwareOf))("$title", powerCutTests);
