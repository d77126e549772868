/** `blindrelay attach` over a real relay, a real bridge and a real terminal as its device. */
import { createHash } from "node:crypto";
import { lstatSync, readlinkSync } from "node:fs";
import { connect, type Socket } from "node:net";
import { HAS_SOCAT } from "@blindrelay/tools/testing/serial/pty";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Running } from "../cli/processes.ts";
import { SlowWay } from "../instruments/slow-way.ts";
import { BridgeHouse, newsOf, until } from "./world.ts";

/** Bytes that differ at each place, with all 256 values. */
const content = (bytes: number, seed: number): Buffer => {
  const made = Buffer.alloc(bytes);
  let state = seed;
  for (let i = 0; i < bytes; i++) {
    state = (Math.imul(state, 1_103_515_245) + 12_345) >>> 0;
    made[i] = state >>> 24;
  }
  return made;
};

const digest = (bytes: Uint8Array): string => createHash("sha256").update(bytes).digest("hex");

describe.skipIf(!HAS_SOCAT)("blindrelay attach", () => {
  const world = new BridgeHouse();
  let way: SlowWay;

  beforeAll(async () => {
    await world.open();
    way = new SlowWay(world.house.url);
    const url = await way.open();
    await world.house.cli(["profile", "set-url", url]);
  });
  afterAll(async () => {
    await way.close();
    await world.close();
  });

  /** A bridged terminal, its device's end, and what the device receives. */
  const bridged = async (id: string, port: object = {}) => {
    const added = await world.add(id);
    const cable = world.cable();
    const device = await cable.plug();
    const bridge = world.bridge(added, { port: cable.path, mode: "raw", ...port });
    await newsOf(bridge, "agent", "online");
    return { added, cable, device, bridge };
  };

  const attached = async (words: readonly string[]): Promise<Running> => {
    const running = world.house.start(["attach", ...words, "--json"]);
    await newsOf(running, "attached");
    return running;
  };

  it("carries 300 KB both ways at once through three losses of the link, unchanged", async () => {
    const { device, cable } = await bridged("modem");
    const path = world.house.path("ttyModem");
    const running = await attached(["modem", "--pty", path]);
    const [down, up] = [content(300_000, 1), content(300_000, 2)];
    const got: Buffer[] = [];
    cable.received = (bytes) => got.push(bytes);
    const local = world.tool(path);
    const seen: Buffer[] = [];
    local.on("data", (bytes: Buffer) => seen.push(bytes));
    local.write(down);
    device.write(up);
    const size = (chunks: Buffer[]) => chunks.reduce((sum, { length }) => sum + length, 0);
    for (const at of [50_000, 120_000, 200_000]) {
      await until(() => Math.min(size(got), size(seen)) > at);
      way.cut();
      await newsOf(running, "away");
      way.mend();
    }
    await until(() => size(got) >= down.length && size(seen) >= up.length);
    expect(digest(Buffer.concat(got))).toBe(digest(down));
    expect(digest(Buffer.concat(seen))).toBe(digest(up));
    const { code, stderr } = await running.stop();
    expect([code, stderr]).toEqual([0, ""]);
  });
});
