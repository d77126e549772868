/** Bridged terminals behind a relay whose link can be cut, for one file of tests of `attach`. */
import { afterAll, beforeAll } from "vitest";
import { SlowWay } from "../instruments/slow-way.ts";
import { BridgeHouse, newsOf } from "./world.ts";

/** Opened before the file's tests and closed after them. */
export const attachWorld = () => {
  const world = new BridgeHouse();
  let way: SlowWay;

  beforeAll(async () => {
    await world.open();
    way = new SlowWay(world.house.url);
    await world.house.cli(["profile", "set-url", await way.open()]);
  });
  afterAll(async () => {
    await way.close();
    await world.close();
  });

  return {
    world,
    way: (): SlowWay => way,
    /** A bridged terminal, its device's end, and what the device receives. */
    bridged: async (id: string, port: object = {}) => {
      const added = await world.add(id);
      const cable = world.cable();
      const device = await cable.plug();
      const heard = { text: "" };
      cable.received = (bytes) => {
        heard.text += bytes.toString("latin1");
      };
      const bridge = world.bridge(added, { port: cable.path, mode: "raw", ...port });
      await newsOf(bridge, "agent", "online");
      return { added, cable, device, heard };
    },
  };
};
