/**
 * What people reported of serial ports elsewhere, on the real bridge. Reports whose kind is tested
 * beside the code, by name, are in:
 *
 *   tools/src/bridge/lines.test.ts        line ends, echoes, cut lines, zeros, commands run late
 *   tools/src/bridge/encodings.test.ts    characters that change, numbers with exponents
 *   tools/src/bridge/config.test.ts       flow control that takes bytes away
 *   tools/src/serial/serial.test.ts       DTR and HUPCL, one serial number twice, telnet's text
 *                                         mode, bytes sent back to back
 *   tools/src/serial/lost-server.test.ts  a network serial server that vanishes
 *   tools/src/commands/monitor.test.ts    output that was cut
 */
import { HAS_SOCAT } from "@blindrelay/tools/testing/serial/pty";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { BridgeHouse, newsOf } from "../bridge/world.ts";

describe.skipIf(!HAS_SOCAT)("a device behind the bridge", () => {
  const world = new BridgeHouse();
  beforeAll(() => world.open());
  afterAll(() => world.close());

  // neundorf/CuteCom#33, serialport/node-serialport#2518, bristlemouth/bm_protocol#337
  it("may end lines with CR, echo commands, and send zeros; and what it says instead is told", async () => {
    const client = await world.client();
    const added = await world.add("scale");
    const cable = world.cable();
    const device = await cable.plug();
    const mapping = {
      end: "\r",
      echo: true,
      encoding: "latin1",
      commands: {
        "weight.read": { send: "W", answer: "^(?<weight>.+)$", timeout_ms: 2_000 },
        "name.read": { send: "N", answer: "^NAME (?<name>.+)$", timeout_ms: 300 },
      },
    };
    world.house.write("scale-lines.json", JSON.stringify(mapping));
    let held = "";
    cable.received = (bytes) => {
      held += bytes.toString("latin1");
      for (const line of held.split("\r").slice(0, -1)) {
        const answer = line === "W" ? "12,5 kg \xb1 1" : "WHO?";
        device.write(Buffer.from(`\0${line}\r${answer}\r\0`, "latin1"));
      }
      held = held.slice(held.lastIndexOf("\r") + 1);
    };
    const port = { port: cable.path, mode: "lines", mapping: "scale-lines.json" };
    await newsOf(world.bridge(added, port), "agent", "online");
    const agent = client.agent("scale", added.agent_token);
    expect(await agent.call("weight.read")).toEqual({ weight: "12,5 kg ± 1" });
    await expect(agent.call("name.read")).rejects.toThrow(
      'no answer from the device within 300 ms; it may have run; 1 other line came, the last: "WHO?"',
    );
  });
});
