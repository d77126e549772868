/** The edge for embedded engines, over an in-memory host under a virtual clock. */
import { nodeSuite } from "@blindrelay/protocol/suites/node";
import { describe, expect, it } from "vitest";
import { ManualTimer, MemoryStorage, seededRandom } from "../memory/index.ts";
import type { Link, LinkPort } from "../ports.ts";
import {
  linkConformance,
  storageConformance,
  timerConformance,
} from "../testing/conformance/index.ts";
import { memoryRelays, untilIn } from "../testing/memory-relays.ts";
import { embeddedPorts, type Host, type HostEvents, provisionAgent, startAgent } from "./index.ts";

/** A host as it would be in C: handles are numbers, and each call is a separate turn. */
const memoryHost = (timer: ManualTimer, network: LinkPort) => {
  const storage = new MemoryStorage();
  const random = seededRandom(1);
  const timers = new Map<number, unknown>();
  const links = new Map<number, Link>();
  let events: HostEvents;
  const host: Host = {
    now: () => timer.now(),
    setTimer: (id, ms) => {
      if (ms !== (ms | 0)) throw new Error("a host may take 32 bits");
      timers.set(
        id,
        timer.set(ms, () => events.fired(id)),
      );
    },
    clearTimer: (id) => timer.clear(timers.get(id)),
    random: (length) => Buffer.from(random(length)).toString("hex"),
    read: (name) => storage.read(name),
    write: (name, text) => storage.write(name, text),
    connect: (id, url) => {
      const link = network.connect(url, {
        opened: () => events.opened(id),
        received: (text) => events.received(id, text),
        closed: (code, reason) => events.closed(id, code, reason),
      });
      links.set(id, link);
    },
    send: (id, text) => links.get(id)?.send(text),
    close: (id, code, reason) => links.get(id)?.close(code, reason),
    log: () => undefined,
  };
  const ports = embeddedPorts(host);
  events = ports.events;
  return { host, ports, events };
};

const DEAF: LinkPort = { connect: () => ({ send: () => {}, close: () => {} }) };

storageConformance("embedded", nodeSuite(), () => {
  const { storage } = memoryHost(new ManualTimer(), DEAF).ports;
  return { storage, reopen: () => storage };
});

timerConformance("embedded", () => {
  const timer = new ManualTimer();
  return { timer: memoryHost(timer, DEAF).ports.timer, until: untilIn(timer) };
});

linkConformance("embedded", async () => {
  const timer = new ManualTimer();
  const world = memoryRelays(timer);
  const { link: port } = memoryHost(timer, world.port).ports;
  return { ...world, port, until: untilIn(timer), end: async () => {} };
});

describe("the edge for embedded engines", () => {
  it("ignores a host's reports about timers and links that have ended", () => {
    const { events } = memoryHost(new ManualTimer(), DEAF);
    const late = (): void => {
      events.fired(7);
      events.opened(7);
      events.received(7, "{}");
      events.closed(7, 1006, "");
    };
    expect(late).not.toThrow();
  });

  it("reports the end of a link once, even if a host reports it twice", () => {
    const { ports, events } = memoryHost(new ManualTimer(), DEAF);
    const ends: number[] = [];
    ports.link.connect("wss://relay.example/wss", {
      opened: () => undefined,
      received: () => undefined,
      closed: (code) => ends.push(code),
    });
    events.closed(1, 1006, "");
    events.closed(1, 1000, "");
    expect(ends).toEqual([1006]);
  });

  it("splits a wait that exceeds a host's 32 bits", () => {
    const timer = new ManualTimer();
    const { ports } = memoryHost(timer, DEAF);
    let fired = 0;
    ports.timer.set(2 ** 32, () => fired++);
    timer.advance(2 ** 32 - 1);
    expect(fired).toBe(0);
    timer.advance(1);
    expect(fired).toBe(1);
  });

  it.each([
    ["random bytes of another length", "00", "random must return 16 bytes"],
    ["no bytes at all", "xyz", "random must return 16 bytes"],
  ])("refuses %s from a host, and names its function", (_what, hex, message) => {
    const { host } = memoryHost(new ManualTimer(), DEAF);
    const ports = embeddedPorts({ ...host, random: () => hex });
    expect(() => ports.random(16)).toThrow(message);
  });

  it("starts no agent without a boot count, nor for an address that is not a WebSocket's", () => {
    const { ports } = memoryHost(new ManualTimer(), DEAF);
    const options = {
      url: "wss://relay.example/wss",
      agentId: "pump",
      relayToken: `agt_${"A".repeat(43)}`,
      agentToken: `e2e_${"A".repeat(43)}`,
      program: () => undefined,
      runtime: "memory",
    };
    expect(() => startAgent(ports, options)).toThrow("there is no boot count");
    provisionAgent(ports, options.agentToken);
    expect(() => startAgent(ports, { ...options, url: "https://relay.example" })).toThrow("ws://");
  });
});

it("keeps nothing of a timer or link that the host refuses", () => {
  const { host, ports, events } = memoryHost(new ManualTimer(), DEAF);
  const ids: number[] = [];
  const refuse = (id: number): never => {
    ids.push(id);
    throw new Error("no network");
  };
  Object.assign(host, { setTimer: refuse, connect: refuse });
  const happened: string[] = [];
  const listener = {
    opened: () => happened.push("opened"),
    received: () => happened.push("received"),
    closed: () => happened.push("closed"),
  };
  expect(() => ports.timer.set(1, () => happened.push("fired"))).toThrow("no network");
  expect(() => ports.link.connect("ws://relay/wss", listener)).toThrow("no network");
  const [timer, link] = ids as [number, number];
  events.fired(timer);
  events.opened(link);
  events.closed(link, 1006, "");
  expect(happened).toEqual([]);
});
