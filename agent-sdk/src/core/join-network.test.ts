import { BACKOFF_MAX_MS } from "@blindrelay/protocol";
import { describe, expect, it } from "vitest";
import { ManualTimer } from "../memory/index.ts";
import type { LinkPort, TimerPort } from "../ports.ts";
import { linkConformance } from "../testing/conformance/index.ts";
import { memoryRelays, untilIn } from "../testing/memory-relays.ts";
import { World } from "../testing/world.ts";
import { CONNECT_TIMEOUT_MS, JOIN_TIMEOUT_MS } from "./defaults.ts";
import { NetworkLinks, type NetworkPort } from "./join-network.ts";

const NAME = 'Wi-Fi "hall 7"';
const PASSWORD = `${NAME} refuses the password`;
const SILENT = `${NAME}: its driver has not answered for 60 s`;
const JOIN_MS = 3000;

/** A simulated radio with its access point. */
class Air implements NetworkPort {
  /** The outcome of an attempt; undefined: the driver never reports one. */
  outcome: string | null | undefined = null;
  tries = 0;
  /** Attempts that have not ended. */
  open = 0;
  private readonly timer: TimerPort;
  private lost: (() => void)[] = [];

  constructor(timer: TimerPort) {
    this.timer = timer;
  }

  join(done: (problem: string | null) => void): void {
    this.tries++;
    const { outcome } = this;
    if (outcome === undefined) return;
    this.open++;
    this.timer.set(JOIN_MS, () => {
      this.open--;
      done(outcome);
    });
  }

  onLost(fn: () => void): void {
    this.lost.push(fn);
  }

  lose(outcome: string | null | undefined): void {
    this.outcome = outcome;
    for (const fn of this.lost) fn();
  }
}

class Hall extends World {
  declare readonly air: Air;
  declare readonly network: NetworkLinks;
  /** How many links were attempted over it. */
  declare readonly attempts: () => number;
}

const hall = (outcome: string | null | undefined): Hall => {
  let air: Air | null = null;
  let network: NetworkLinks | null = null;
  let attempts = 0;
  const over = (links: LinkPort, timer: ManualTimer, log: World["core"]["ports"]["log"]) => {
    air = new Air(timer);
    air.outcome = outcome;
    const counted: LinkPort = {
      connect: (url, events) => {
        attempts++;
        return links.connect(url, events);
      },
    };
    network = new NetworkLinks({ name: NAME, network: air, links: counted, timer, log });
    return network;
  };
  const world = new World({ over });
  return Object.assign(world, { air, network, attempts: () => attempts }) as unknown as Hall;
};

const warnings = (world: World) => world.logs.filter((line) => line.startsWith("warn"));

linkConformance("over a network that is joined first", async () => {
  const timer = new ManualTimer();
  const relays = memoryRelays(timer, 5);
  const network = new Air(timer);
  const port = new NetworkLinks({
    ...{ name: NAME, network, links: relays.port, timer, log: () => undefined },
  });
  return { ...relays, port, until: untilIn(timer), end: async () => {} };
});

it("reports a link once that is closed before the network is joined, but not from inside close", () => {
  const timer = new ManualTimer();
  const network = new Air(timer);
  const { port: links, url } = memoryRelays(timer);
  const closed: number[] = [];
  const over = new NetworkLinks({ name: NAME, network, links, timer, log: () => undefined });
  const events = { opened: () => undefined, received: () => undefined };
  const link = over.connect(url, { ...events, closed: (code) => closed.push(code) });
  link.close(4000, "changed my mind");
  link.close(4000, "and again");
  expect(closed).toEqual([]);
  timer.advance(JOIN_MS);
  expect(closed).toEqual([4000]);
});

describe("an agent over a network", () => {
  it("joins it, then logs in", () => {
    const world = hall(null);
    world.core.start();
    world.timer.advance(JOIN_MS - 1);
    expect([world.core.link.status.state, world.links.length]).toEqual(["connecting", 0]);
    world.timer.advance(1);
    world.accept();
    expect(world.core.link.status.state).toBe("online");
    expect([world.network.state, world.network.advice]).toEqual(["joined", null]);
    expect(world.logs[0]).toBe(`info: ${NAME} is joined`);
  });

  it("joins it again after it was lost, as soon as it is back", () => {
    const world = hall(null);
    world.core.start();
    world.untilConnected();
    world.accept();
    world.timer.advance(100_000);
    const { closedWith } = world.link();
    expect(closedWith).toBe(null);
    world.air.lose("no Wi-Fi in reach");
    world.settle();
    expect([world.core.link.status.state, world.link().closedWith]).toEqual(["waiting", 4000]);
    expect(warnings(world)).toEqual([`warn: ${NAME} was lost`]);

    world.timer.advance(600_000);
    expect(warnings(world)).toHaveLength(2);
    expect(world.network.advice).toBe("no Wi-Fi in reach");
    world.air.outcome = null;
    expect(world.untilConnected()).toBeLessThanOrEqual(BACKOFF_MAX_MS + 2 * JOIN_MS);
    world.accept();
    expect([world.core.link.status.state, world.network.advice]).toEqual(["online", null]);
  });

  it("retries a refused password at growing intervals, and reports it once", () => {
    const world = hall(PASSWORD);
    world.core.start();
    const at: number[] = [];
    for (let tries = 0; world.timer.now() < 3_600_000; world.timer.advance(500)) {
      if (world.air.tries > tries) at.push(world.timer.now());
      tries = world.air.tries;
    }
    const waits = at.slice(1).map((time, i) => time - (at[i] as number) - JOIN_MS);
    expect(Math.max(...waits.slice(0, 2))).toBeLessThan(3000);
    const later = waits.slice(8);
    expect(Math.min(...later)).toBeGreaterThanOrEqual(BACKOFF_MAX_MS / 2 - 1000);
    expect(Math.max(...later)).toBeLessThanOrEqual(BACKOFF_MAX_MS + 1000);
    expect(new Set(later).size).toBeGreaterThan(5);
    expect(warnings(world)).toEqual([`warn: ${PASSWORD}`]);
    expect([world.core.link.status.state, world.network.advice]).not.toContain(null);
  });

  it("retries with a driver that never answers, one attempt at a time", () => {
    const world = hall(undefined);
    world.core.start();
    world.timer.advance(JOIN_TIMEOUT_MS - 1);
    expect(world.air.tries).toBe(1);
    for (let i = 0; i < 2000 && world.air.tries < 2; i++) world.timer.advance(100);
    expect(world.air.tries).toBe(2);
    expect(world.timer.now()).toBeLessThan(JOIN_TIMEOUT_MS + CONNECT_TIMEOUT_MS + BACKOFF_MAX_MS);
    expect(world.network.advice).toBe(SILENT);
    world.timer.advance(600_000);
    expect(warnings(world)).toEqual([`warn: ${SILENT}`]);
    world.air.outcome = null;
    world.untilConnected();
    expect([world.network.state, world.network.advice]).toEqual(["joined", null]);
  });

  it("joins again after five links in a row that did not open, even if no loss is reported", () => {
    const world = hall(null);
    world.core.start();
    world.untilConnected();
    world.accept();
    world.relayIsUp = false;
    world.link().end.close(1006, "gone");
    const fail = (times: number) => {
      const before = world.attempts();
      while (world.attempts() < before + times) world.timer.advance(100);
    };
    fail(5);
    expect([world.air.tries, world.network.state]).toEqual([1, "joined"]);
    while (world.air.tries < 2) world.timer.advance(100);
    expect([world.attempts(), world.network.advice]).toEqual([6, `${NAME} carries nothing`]);

    fail(4);
    world.relayIsUp = true;
    world.untilConnected();
    world.accept();
    world.relayIsUp = false;
    world.link().end.close(1006, "gone");
    fail(4);
    expect([world.air.tries, world.network.advice]).toEqual([2, null]);
  });

  it("waits for a join that takes longer than the link's own timeout", () => {
    const world = hall(undefined);
    let done: (problem: string | null) => void = () => undefined;
    world.air.join = (given) => {
      world.air.tries++;
      done = given;
    };
    world.core.start();
    world.timer.advance(CONNECT_TIMEOUT_MS + 5000);
    expect(world.core.link.status.state).toBe("connecting");
    done(null);
    world.settle();
    expect([world.air.tries, world.links.length]).toEqual([1, 1]);
  });

  it("ignores a late answer of an attempt", () => {
    const world = hall(undefined);
    const dones: ((problem: string | null) => void)[] = [];
    world.air.join = (given) => dones.push(given);
    world.core.start();
    for (let i = 0; i < 200 && dones.length < 2; i++) world.timer.advance(1000);
    dones[0]?.(PASSWORD);
    world.settle();
    expect([world.network.state, world.network.advice]).toEqual(["joining", SILENT]);
    dones[1]?.(null);
    dones[1]?.(PASSWORD);
    world.settle();
    expect([world.network.state, world.network.advice]).toEqual(["joined", null]);
  });

  it("treats a driver that throws as failed, and two reports of a loss as one", () => {
    const world = hall(null);
    const { join } = world.air;
    world.air.join = () => {
      throw new Error("no module");
    };
    world.core.start();
    world.settle();
    expect(world.network.advice).toBe(`${NAME} cannot be joined: Error: no module`);
    world.air.lose(null);
    expect(world.network.advice).toContain("no module");
    world.air.join = join;
    world.untilConnected();
    world.accept();
    world.air.lose(null);
    world.air.lose(null);
    world.untilConnected();
    world.accept();
    expect(world.core.link.counters.logins).toBe(2);
    world.core.stop();
    world.settle();
    expect(world.link().closedWith).toBe(1000);
  });
});
