/** The sessions that an agent holds: as many as Node's, or as a board's. */
import { expect } from "vitest";
import { fleetTest } from "../vitest/index.ts";

for (const [limits, heard] of [
  ["node", []],
  ["board", ["the agent closed the session to make room"]],
] as const) {
  fleetTest.extend({
    fleet: { devices: [{ group: "g", count: 1, kind: "busy", limits }], clients: 9 },
  })(
    `with limits: ${limits}, nine clients ${limits === "node" ? "have" : "share"} their sessions`,
    async ({ clients, devices: [one], clock }) => {
      const device = one as NonNullable<typeof one>;
      const [listener, ...others] = clients as readonly NonNullable<(typeof clients)[number]>[];
      const agent = (listener as NonNullable<typeof listener>).agent(device);
      const reasons: string[] = [];
      agent.on("event", () => undefined);
      agent.on("interrupted", (reason) => reasons.push(reason));
      await clock.advance("5s");
      for (const other of others) await other.call(device, "busy.count");
      await clock.advance("5s");
      expect(reasons).toEqual(heard);
    },
  );
}
