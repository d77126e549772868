/** Several ports under one agent, over a real relay, bridge and terminals. */
import { HAS_SOCAT } from "@blindrelay/tools/testing/serial/pty";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Running } from "../cli/processes.ts";
import { BridgeHouse, newsOf, until } from "./world.ts";

/** More than the stores, windows and pipes between a device and a program that does not read. */
const MUCH = 1_200_000;
const PIECE = 10_000;

describe.skipIf(!HAS_SOCAT)("an agent with two ports", () => {
  const world = new BridgeHouse();
  let bridge: Running;

  const wired = async () => {
    const cable = world.cable();
    const device = await cable.plug();
    const heard = { text: "" };
    const listen = (): void => {
      cable.received = (bytes) => {
        heard.text += bytes.toString("latin1");
      };
    };
    listen();
    return { cable, device, heard };
  };
  let left: Awaited<ReturnType<typeof wired>>;
  let right: Awaited<ReturnType<typeof wired>>;

  beforeAll(async () => {
    await world.open();
    const added = await world.add("rack");
    left = await wired();
    right = await wired();
    bridge = world.bridge(added, [
      { port: left.cable.path, mode: "raw", name: "left" },
      { port: right.cable.path, mode: "raw", name: "right", baud_rate: 9_600 },
    ]);
    await newsOf(bridge, "agent", "online");
  });
  afterAll(() => world.close());

  const attached = async (port: string) => {
    const path = world.house.path(`tty-${port.length}`);
    const running = world.house.start(["attach", "rack", port, "--pty", path, "--json"]);
    const { where } = await newsOf(running, "attached");
    const tool = world.tool(String(where));
    const seen = { text: "", bytes: 0 };
    tool.stdout.on("data", (bytes: Buffer) => {
      seen.bytes += bytes.length;
      seen.text = (seen.text + bytes.toString("latin1")).slice(-100);
    });
    return { running, tool, seen };
  };

  it("wants to know which, and names them", async () => {
    for (const words of [["rack"], ["rack", "middle"]]) {
      const { code, stderr } = await world.house.cli(["attach", ...words, "--tcp", "0"]);
      expect([code, stderr]).toEqual([7, expect.stringMatching(/left.*right/)]);
    }
    const { code, stderr } = await world.house.cli(["shell", "rack", "--serial"]);
    expect([code, stderr]).toEqual([7, expect.stringMatching(/left.*right/)]);
  });

  it("lists both, with who uses them; each has its own user, settings and bytes", async () => {
    const one = await attached("left");
    const two = await attached(right.cable.path);
    const { stdout } = await world.house.cli(["devices", "--remote", "--json"]);
    const user = { user: expect.stringContaining("@"), since: expect.any(String) };
    expect(JSON.parse(stdout).items).toEqual([
      expect.objectContaining({ agent_id: "rack", port: left.cable.path, name: "left", user }),
      expect.objectContaining({ agent_id: "rack", port: right.cable.path, name: "right", user }),
    ]);
    const settings = await world.house.cli(["call", "rack", "serial.status", '{"port":"right"}']);
    expect(JSON.parse(settings.stdout)).toMatchObject({ baud_rate: 9_600, writer: true });
    const taken = await world.house.cli(["attach", "rack", "right", "--tcp", "0"]);
    expect([taken.code, taken.stderr]).toEqual([7, expect.stringContaining("in use by")]);
    one.tool.stdin.write("to the left");
    two.tool.stdin.write("to the right");
    await until(() => left.heard.text !== "" && right.heard.text !== "");
    expect([left.heard.text, right.heard.text]).toEqual(["to the left", "to the right"]);
    await one.running.stop();
    await two.running.stop();
  });

  it("one that floods a program that does not read holds up nothing of the other", async () => {
    const flooded = await attached("left");
    flooded.tool.stdout.pause();
    const { tool, seen, running } = await attached("right");
    let said = 0;
    const flood = async (): Promise<void> => {
      for (; said < MUCH; said += PIECE) {
        await new Promise((taken) => left.device.write(Buffer.alloc(PIECE, "x"), taken));
      }
    };
    const over = flood();
    await until(() => said > 300_000);
    right.cable.received = (bytes) => right.device.write(bytes);
    for (let n = 0; n < 20; n++) {
      tool.stdin.write(`line ${n}.`);
      await until(() => seen.text.endsWith(`line ${n}.`));
    }
    expect(said).toBeLessThan(MUCH);
    expect(flooded.seen.bytes).toBe(0);
    flooded.tool.stdout.resume();
    await over;
    await until(() => flooded.seen.bytes === MUCH);
    await running.stop();
    await flooded.running.stop();
  });

  it("one that is unplugged leaves the other in use, and its user has it again when it is back", async () => {
    const one = await attached("left");
    const two = await attached("right");
    right.cable.received = (bytes) => right.device.write(bytes);
    await left.cable.pull();
    await newsOf(one.running, "away");
    two.tool.stdin.write("still here");
    await until(() => two.seen.text === "still here");
    const listed = await world.house.cli(["call", "rack", "serial.ports"]);
    expect(JSON.parse(listed.stdout).ports).toMatchObject([{ open: false }, { open: true }]);
    const shell = await world.house.cli(["shell", "rack", "--serial", "--port", "left"]);
    expect([shell.code, shell.stderr]).toEqual([7, expect.stringContaining("is not there")]);
    left.device = await left.cable.plug();
    await newsOf(one.running, "attached");
    left.device.write("welcome back");
    await until(() => one.seen.text.endsWith("welcome back"));
    expect(two.running.child.exitCode).toBeNull();
    two.tool.stdin.write(", all the time");
    await until(() => two.seen.text === "still here, all the time");
  });
});
