import { MemoryRelay } from "@blindrelay/simulator/fake-device";
import { afterEach, beforeEach, expect, test } from "vitest";
import program from "./program.js";

/** Of an app: it is given the SDK's client, and so does not know where that leads. */
const switchOn = async (client, lamp) => {
  try {
    return await client.agent(lamp.id, lamp.secret).call("lamp.set", { on: true });
  } catch (error) {
    return error.code === "AGENT_OFFLINE" ? "The lamp is offline." : "Something is wrong.";
  }
};

let relay;
let lamp;
beforeEach(async () => {
  relay = new MemoryRelay();
  lamp = await relay.addDevice(program);
});
afterEach(() => relay.close());

test("an app shows what became of a switch", async () => {
  const client = await relay.connect();
  expect(await switchOn(client, lamp)).toEqual({ on: true });
  lamp.powerOff();
  expect(await switchOn(client, lamp)).toBe("The lamp is offline.");
});
