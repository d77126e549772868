/**
 * One bridge with 32 ports, 8 of them with agents of their own and 24 under one, half of them
 * plugged in while it runs; each carries its own bytes, both ways.
 */
import { systemTimer } from "@blindrelay/agent-sdk/node";
import { RemotePort } from "@blindrelay/client-sdk/serial";
import { HAS_SOCAT } from "@blindrelay/tools/testing/serial/pty";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Added } from "../cli/processes.ts";
import { BridgeHouse, newsOf, until } from "./world.ts";

const PORTS = 32;
/** Each has its own agent; the others share one. */
const OWN = 8;
const TEXT_BYTES = 20_000;

describe.skipIf(!HAS_SOCAT)("a bridge with 32 ports", () => {
  const world = new BridgeHouse();
  beforeAll(() => world.open());
  afterAll(() => world.close());

  it("carries each one's bytes to its own device and back, also of those plugged in later", async () => {
    const agents: Added[] = [];
    for (let n = 0; n < OWN; n++) agents.push(await world.add(`own-${n}`));
    const rack = await world.add("rack");
    const cables = Array.from({ length: PORTS }, () => world.cable());
    const plug = async (n: number): Promise<void> => {
      const cable = cables[n] as (typeof cables)[number];
      const device = await cable.plug();
      cable.received = (bytes) => device.write(bytes);
    };
    for (let n = 0; n < PORTS; n += 2) await plug(n);
    const agentOf = (n: number): Added => agents[n] ?? rack;
    const bridge = world.bridge(
      rack,
      cables.map(({ path }, n) => {
        const { agent_id: id } = agentOf(n);
        const own = { credentials: `${id}.json`, state_dir: `state-${id}` };
        return { ...own, port: path, mode: "raw", name: `port-${n}` };
      }),
    );
    await newsOf(bridge, "agent", "online");
    for (let n = 1; n < PORTS; n += 2) await plug(n);

    const client = await world.client();
    const timer = systemTimer();
    const got = Array.from({ length: PORTS }, () => "");
    const remotes = cables.map((_, n) => {
      const { agent_id: id, agent_token: token } = agentOf(n);
      const remote: RemotePort = new RemotePort(
        client.agent(id, token),
        {
          port: `port-${n}`,
          claim: `${n}`.padEnd(22, "_"),
          user: `user ${n}`,
          watch: false,
          takeover: false,
          timer,
        },
        {
          data: (bytes) => {
            got[n] += Buffer.from(bytes).toString();
            remote.taken(bytes.length);
          },
          writable: () => undefined,
          up: () => undefined,
          down: () => undefined,
          lost: (loss) => expect.fail(JSON.stringify(loss)),
          changed: () => undefined,
        },
      );
      return remote;
    });
    const texts = remotes.map((_, n) => `${n} `.repeat(TEXT_BYTES).slice(0, TEXT_BYTES));
    try {
      await Promise.all(
        remotes.map(async (remote, n) => {
          // One that was plugged in just now is found a moment later.
          while (!remote.isUp) await remote.start().catch(() => undefined);
          remote.write(Buffer.from(texts[n] as string));
        }),
      );
      await until(() => got.every((text) => text.length >= TEXT_BYTES));
      expect(got).toEqual(texts);
      const { stdout } = await world.house.cli(["devices", "--remote", "--json"]);
      const { items } = JSON.parse(stdout) as { items: { name: string; user: object | null }[] };
      const names = items.map(({ name }) => Number(name.slice(5))).sort((a, b) => a - b);
      expect(names).toEqual(Array.from({ length: PORTS }, (_, n) => n));
      expect(items.filter(({ user }) => user === null)).toEqual([]);
    } finally {
      for (const remote of remotes) remote.stop();
    }
  });
});
