/** `blindrelay attach` over a real relay, a real bridge and a real terminal as its device. */
import { createHash } from "node:crypto";
import { lstatSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { DEFAULT_SETTINGS, rfc2217Opener } from "@blindrelay/tools/testing/serial/client";
import { esp32, SYNC_ANSWER, SYNC_REQUEST } from "@blindrelay/tools/testing/serial/esp32";
import { HAS_SOCAT } from "@blindrelay/tools/testing/serial/pty";
import { describe, expect, it } from "vitest";
import type { Running } from "../cli/processes.ts";
import { attachWorld } from "./attach-world.ts";
import { newsOf, until } from "./world.ts";

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

/** Longer than a real one, so that a busy machine is quick enough. */
const RISE_MS = 40;
const RESET = [
  [{ dtr: false }, 0],
  [{ rts: true }, 100],
  [{ dtr: true }, 0],
  [{ rts: false }, 50],
  [{ dtr: false }, 0],
] as const;

const digest = (bytes: Uint8Array): string => createHash("sha256").update(bytes).digest("hex");

describe.skipIf(!HAS_SOCAT)("blindrelay attach", () => {
  const { world, way, bridged } = attachWorld();

  const attached = async (words: readonly string[]): Promise<Running> => {
    const running = world.house.start(["attach", ...words, "--json"]);
    await newsOf(running, "attached");
    return running;
  };

  it("carries 100 KB both ways at once through three losses of the link, unchanged", async () => {
    const { device, cable } = await bridged("modem");
    const path = world.house.path("ttyModem");
    const running = await attached(["modem", "--pty", path]);
    const [down, up] = [content(100_000, 1), content(100_000, 2)];
    const got: Buffer[] = [];
    cable.received = (bytes) => got.push(bytes);
    const local = world.tool(path);
    const seen: Buffer[] = [];
    local.stdout.on("data", (bytes: Buffer) => seen.push(bytes));
    local.stdin.write(down);
    device.write(up);
    const size = (chunks: Buffer[]) => chunks.reduce((sum, { length }) => sum + length, 0);
    for (const at of [20_000, 50_000, 80_000]) {
      await until(() => Math.min(size(got), size(seen)) > at);
      way().cut();
      await newsOf(running, "away");
      way().mend();
      // What was sent before may have passed the next mark already: let the link come back.
      await newsOf(running, "attached");
    }
    await until(() => size(got) >= down.length && size(seen) >= up.length);
    expect(digest(Buffer.concat(got))).toBe(digest(down));
    expect(digest(Buffer.concat(seen))).toBe(digest(up));
    const { code, stderr } = await running.stop();
    expect([code, stderr]).toEqual([0, ""]);
  });

  it("takes the path of one that was killed, refuses what is not its own, and lists who uses a port", async () => {
    const { device, cable } = await bridged("console");
    const path = world.house.path("ttyConsole");
    const record = world.house.path("console.jsonl");
    const first = await attached(["console", "--pty", path, "--record", record]);
    const listed = await world.house.cli(["devices", "--remote", "--json"]);
    expect(JSON.parse(listed.stdout).items).toEqual(
      expect.arrayContaining([
        expect.objectContaining({
          agent_id: "console",
          port: cable.path,
          access: "first",
          open: true,
          user: { user: expect.stringContaining("@"), since: expect.any(String) },
        }),
      ]),
    );
    const second = await world.house.cli(["attach", "console", "--pty", path]);
    expect([second.code, second.stderr]).toEqual([7, expect.stringContaining("another attach")]);
    await first.stop("SIGKILL");
    expect(lstatSync(path).isSymbolicLink()).toBe(true);
    const third = await attached(["console", "--pty", path]);
    let got = "";
    cable.received = (bytes) => {
      got += bytes.toString();
    };
    const tool = world.tool(path);
    let seen = "";
    tool.stdout.on("data", (bytes: Buffer) => {
      seen += bytes.toString();
    });
    tool.stdin.write("hello");
    await until(() => got === "hello");
    device.write("welcome");
    await until(() => seen === "welcome");
    const { code } = await third.stop();
    expect([code, lstatSync(path, { throwIfNoEntry: false })]).toEqual([0, undefined]);
    world.house.write("mine", "not a link");
    const foreign = await world.house.cli(["attach", "console", "--pty", world.house.path("mine")]);
    expect([foreign.code, foreign.stderr]).toEqual([2, expect.stringContaining("exists")]);
    const shown = await world.house.cli(["inspect", record]);
    expect([shown.code, shown.stdout]).toEqual([0, expect.stringContaining("record of console")]);
  });

  it("sets a line over RFC 2217, and resets a chip into its boot loader", async () => {
    const { server, port, chip } = await esp32(RISE_MS);
    try {
      const added = await world.add("esp");
      const at = `rfc2217://127.0.0.1:${port}`;
      await newsOf(world.bridge(added, { port: at, mode: "raw" }), "agent", "online");
      const running = world.house.start(["attach", "esp", "--rfc2217", "0", "--json"]);
      const { where } = await newsOf(running, "attached");
      let got = Buffer.alloc(0);
      const events = {
        data: (bytes: Uint8Array) => {
          got = Buffer.concat([got, bytes]);
        },
        closed: () => undefined,
      };
      const [, local] = /:(\d+)$/.exec(String(where)) ?? [];
      const line = await rfc2217Opener("127.0.0.1", Number(local))(
        { ...DEFAULT_SETTINGS, parity: "even", stopBits: 2 },
        events,
      );
      const client = await world.client();
      const agent = client.agent("esp", added.agent_token);
      expect(await agent.call("serial.status")).toMatchObject({ parity: "even", stop_bits: 2 });
      // esptool's classic reset, and its sync; again, as esptool does, where a busy machine has
      // stretched a gap beyond what still counts as one sequence.
      for (let tries = 0; tries < 5 && !chip.isLoader; tries++) {
        for (const [lines, waitMs] of RESET) {
          await line.control(lines);
          await sleep(waitMs);
        }
        await line.write(SYNC_REQUEST);
        const waited = performance.now();
        await until(() => got.includes(SYNC_ANSWER) || performance.now() - waited > 5_000);
      }
      expect(got.includes(SYNC_ANSWER)).toBe(true);
      expect(chip.isLoader).toBe(true);
      await line.close();
      await running.stop();
    } finally {
      server.close();
    }
  });
});
