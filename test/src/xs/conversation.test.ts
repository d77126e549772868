/**
 * The Moddable build in the real XS engine, with empty flash; all other tests are in
 * test/src/runtime-parity.
 */
import { MemoryPreference, XsDevice } from "@blindrelay/agent-sdk/engines";
import { systemTimer } from "@blindrelay/agent-sdk/node";
import { wsWire } from "@blindrelay/agent-sdk/testing/ws-wire";
import { makeToken } from "@blindrelay/protocol";
import { describe, expect, it } from "vitest";
import { engine, makeScript, whySkipped, withoutEngine } from "./engine.ts";

describe.skipIf(withoutEngine)(`an agent in XS${whySkipped}`, () => {
  it("refuses to start on an empty flash, and to be provisioned twice for one secret", async () => {
    const credentials = {
      url: "ws://127.0.0.1:1/wss",
      agentId: "board",
      relayToken: makeToken("agent", new Uint8Array(32)),
      agentToken: makeToken("e2e", new Uint8Array(32)),
    };
    const device = new XsDevice({
      engine,
      script: await makeScript(),
      timer: systemTimer(),
      connect: wsWire,
      preference: new MemoryPreference(),
      maxCompute: 2e8,
    });
    expect(() => device.start(credentials, "counter")).toThrow("there is no boot count");
    device.provision(credentials.agentToken);
    expect(() => device.provision(credentials.agentToken)).toThrow("never used here");
    await device.end();
  }, 600_000);
});
