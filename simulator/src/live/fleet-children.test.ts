/** Fleets in real processes, against a minimal relay in this one. */
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { makeToken } from "@blindrelay/protocol";
import { FakeRelay } from "@blindrelay/protocol/testing/fake-relay";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { WebSocketServer } from "ws";
import { FleetChildren } from "./fleet-children.ts";
import type { OrderedAgent } from "./fleet-messages.ts";
import { UNSHAPED } from "./shaped-link.ts";

let relay: WebSocketServer;
/** Relay tokens by agent that is online. */
const online = new Map<string, string>();
let fleet: FleetChildren | null = null;
let url = "";

beforeEach(async () => {
  online.clear();
  relay = new WebSocketServer({ port: 0, host: "127.0.0.1" });
  const fake = new FakeRelay();
  relay.on("connection", (socket) => {
    const link = fake.attach(socket);
    socket.on("message", (data) => {
      link.receive(String(data));
      const { agentId, apiToken } = link.credentials ?? {};
      if (agentId !== undefined) online.set(agentId, apiToken ?? "");
    });
    socket.on("close", () => online.delete(link.credentials?.agentId ?? ""));
  });
  await once(relay, "listening");
  url = `ws://127.0.0.1:${(relay.address() as AddressInfo).port}/wss`;
});
afterEach(async () => {
  await fleet?.stop();
  for (const client of relay.clients) client.terminate();
  relay.close();
});

const agents = (count: number): OrderedAgent[] =>
  Array.from({ length: count }, (_, n) => ({
    ...{ id: `agent-${n}`, name: `echo-${n}`, program: 0, restarts: true },
    ...(n === 4 ? { shape: UNSHAPED } : {}),
    relayToken: makeToken("agent", randomBytes(32)),
    agentToken: makeToken("e2e", randomBytes(32)),
  }));

const startFleet = (count: number, processes: number): FleetChildren => {
  const pace = { connectionsPerSecond: 1_000, connectingAtOnce: 10 };
  const order = { url, ...pace, seed: 1, timezone: "UTC", programs: ["kind:echo"] };
  fleet = new FleetChildren({ ...order, agents: agents(count) }, processes, tmpdir());
  return fleet;
};
const until = (isSo: () => boolean) => vi.waitUntil(isSo, 60_000);
const away = (count: number): number[] =>
  Array.from({ length: count }, (_, n) => n).filter((n) => !online.has(`agent-${n}`));

describe("a fleet in several processes", () => {
  test("is whole with all its agents, and reports them together", async () => {
    const many = startFleet(9, 2);
    expect(new Set(many.pids).size).toBe(2);
    await many.started;
    await many.whole;
    expect([many.connected(), many.everConnected(), many.logins()]).toEqual([9, 9, 9]);
    expect(away(9)).toEqual([]);
    expect(await many.report()).toMatchObject({ connected: 9, missing: [] });
    expect((await many.report())?.rssBytesPerAgent).toBeGreaterThanOrEqual(0);
  });

  test("passes each step to the process of each agent, with what is new for it", async () => {
    const many = startFleet(7, 3);
    await many.whole;
    const targets = [1, 2, 5].map((agent) => ({ agent }));
    many.take({ do: "power off", targets });
    await until(() => away(7).length === 3);
    expect(away(7)).toEqual([1, 2, 5]);
    await until(() => many.connected() === 4);
    const tokens = targets.map(
      ({ agent }) => [agent, makeToken("agent", randomBytes(32))] as const,
    );
    many.take({
      do: "power on",
      targets: tokens.map(([agent, relayToken]) => ({ agent, changed: { relayToken } })),
    });
    await until(() => many.connected() === 7);
    expect(tokens.map(([agent]) => online.get(`agent-${agent}`))).toEqual(
      tokens.map(([, token]) => token),
    );
    many.take({
      do: "play",
      targets: [{ agent: 4 }],
      fault: { at: "0s", kind: "net.cut" },
      on: true,
    });
    await until(() => away(7).length > 0);
    expect(away(7)).toEqual([4]);
    expect(many.everConnected()).toBe(7);
    await until(() => many.connected() === 6);
    expect(await many.report()).toMatchObject({ connected: 6, missing: [{ id: "agent-4" }] });
  });

  test("says which process ended, and stops the others", async () => {
    const many = startFleet(6, 2);
    await many.whole;
    const [one, other] = many.pids as [number, number];
    process.kill(one, "SIGKILL");
    expect(await many.ended).toBe(`process ${one} ended (SIGKILL)`);
    expect(many.connected()).toBe(3);
    expect(await many.report()).toBeNull();
    await many.stop();
    expect(() => process.kill(other, 0)).toThrow();
    await until(() => online.size === 0);
  });

  test("is in no more processes than it has agents", async () => {
    const one = startFleet(1, 4);
    await one.whole;
    expect([one.pids.length, one.connected()]).toEqual([1, 1]);
  });
});
