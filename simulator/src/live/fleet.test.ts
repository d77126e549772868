import { randomBytes } from "node:crypto";
import { once } from "node:events";
import type { AddressInfo } from "node:net";
import type { AgentPorts } from "@blindrelay/agent-sdk";
import { systemTimer } from "@blindrelay/agent-sdk/node";
import { makeToken } from "@blindrelay/protocol";
import { nodeSuite } from "@blindrelay/protocol/suites/node";
import { FakeRelay } from "@blindrelay/protocol/testing/fake-relay";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { type WebSocket, WebSocketServer } from "ws";
import { Fleet, type FleetMember } from "./fleet.ts";
import { liveLinkPort } from "./link.ts";

/** A minimal relay for logins: it accepts every agent except those it is told to refuse. */
let relay: WebSocketServer;
const online = new Map<string, WebSocket>();
const refused = new Set<string>();
let url = "";
let changed = Promise.withResolvers<void>();

beforeEach(async () => {
  online.clear();
  refused.clear();
  relay = new WebSocketServer({ port: 0, host: "127.0.0.1" });
  const fake = new FakeRelay({
    auth: (link, { apiToken = "", agentId = "" }) => {
      if (apiToken.startsWith("agt_") && !refused.has(agentId)) {
        link.accept(makeToken("session", randomBytes(32)));
      } else link.refuse("INVALID_TOKEN");
    },
  });
  relay.on("connection", (socket) => {
    const link = fake.attach(socket);
    socket.once("message", (data) => {
      link.receive(String(data));
      const agentId = link.credentials?.agentId ?? "";
      if (!refused.has(agentId)) {
        online.set(agentId, socket);
        socket.on("close", () => online.delete(agentId) && wake());
      }
      wake();
    });
  });
  await once(relay, "listening");
  url = `ws://127.0.0.1:${(relay.address() as AddressInfo).port}/wss`;
});

afterEach(() => {
  for (const client of relay.clients) client.terminate();
  relay.close();
});

function wake(): void {
  changed.resolve();
  changed = Promise.withResolvers();
}

/** Waits until `done`, checking whenever the relay receives something and a moment later. */
async function until(done: () => boolean): Promise<void> {
  while (!done()) {
    const moment = new Promise((resolve) => setTimeout(resolve, 5));
    await Promise.race([changed.promise, moment]);
  }
}

const pace = { connectionsPerSecond: 5000, connectingAtOnce: 256 };

function ports(): AgentPorts {
  return {
    link: liveLinkPort(),
    timer: systemTimer(),
    random: (length) => randomBytes(length),
    suite: nodeSuite(),
    log: () => {},
  };
}

function members(count: number): FleetMember[] {
  return Array.from({ length: count }, (_, i) => ({
    id: `agent-${i}`,
    name: `agent ${i}`,
    relayToken: makeToken("agent", randomBytes(32)),
    agentToken: makeToken("e2e", randomBytes(32)),
    program: (agent) => agent.handle("who", () => agent.name),
  }));
}

describe("a fleet", () => {
  test("connects all its members and reports their number", async () => {
    const fleet = new Fleet({ url, ...pace, ports: ports() }, members(30));
    expect([fleet.size, fleet.connected]).toEqual([30, 0]);
    fleet.start();
    await until(() => fleet.connected === 30);
    expect(online.size).toBe(30);
    expect(fleet.missing()).toEqual([]);
    fleet.stop();
    await until(() => online.size === 0);
    expect([fleet.size, fleet.connected]).toEqual([0, 0]);
  });

  test("names the missing agents and the reasons", async () => {
    refused.add("agent-1");
    const fleet = new Fleet({ url, ...pace, ports: ports() }, members(3));
    fleet.start();
    await until(() => fleet.connected === 2 && fleet.missing()[0]?.code === "INVALID_TOKEN");
    expect(fleet.missing()).toMatchObject([{ id: "agent-1", code: "INVALID_TOKEN" }]);
    fleet.stop();
  });

  test("stops one member by its id without affecting the others", async () => {
    const fleet = new Fleet({ url, ...pace, ports: ports() }, members(3));
    fleet.start();
    await until(() => fleet.connected === 3);
    expect(fleet.powerOff("agent-1")).toBe(true);
    expect(fleet.powerOff("agent-1")).toBe(false);
    await until(() => online.size === 2);
    expect([...online.keys()]).toEqual(["agent-0", "agent-2"]);
    expect(fleet.connected).toBe(2);
    fleet.stop();
  });

  test("counts a member that restarts before it was ever online", async () => {
    refused.add("agent-1");
    const restarting = members(2).map((member) => ({ ...member, restarts: true }));
    const fleet = new Fleet({ url, ...pace, ports: ports() }, restarting);
    fleet.start();
    await until(() => fleet.missing()[0]?.code === "INVALID_TOKEN");
    refused.clear();
    for (const id of ["agent-0", "agent-1"]) {
      fleet.powerOff(id);
      fleet.powerOn(id);
    }
    await until(() => fleet.connected === 2);
    expect([fleet.everConnected, fleet.loggedIn]).toEqual([2, 3]);
    fleet.stop();
  });

  test("counts a member as offline when its link is lost", async () => {
    const fleet = new Fleet({ url, ...pace, ports: ports() }, members(2));
    fleet.start();
    await until(() => fleet.connected === 2);
    online.get("agent-0")?.terminate();
    await until(() => fleet.connected === 1);
    expect(fleet.missing()).toMatchObject([{ id: "agent-0" }]);
    fleet.stop();
  });

  test("opens no more connections than its rate allows", () => {
    let now = 0;
    let connects = 0;
    let wakeUp = (): void => {};
    const timer = {
      now: () => now,
      set: (_: number, fn: () => void) => (wakeUp = fn),
      clear: () => {},
    };
    // Links that never open, so only the fleet's own pace matters.
    const link = {
      connect() {
        connects += 1;
        return { send: () => {}, close: () => {} };
      },
    };
    const fleet = new Fleet(
      { url, ...pace, connectionsPerSecond: 1000, ports: { ...ports(), link, timer } },
      members(400),
    );
    // The last timer is the fleet's, which is set after the agents it starts.
    const fleetTick = (): void => wakeUp();
    fleet.start();
    expect(connects).toBe(10);
    for (now = 10; now <= 100; now += 10) {
      fleetTick();
      expect(connects).toBe(10 + now);
    }
    for (; now <= 1000; now += 10) fleetTick();
    expect(connects).toBe(256); // and never more than these at once, however long it takes
    fleet.stop();
  });
});
