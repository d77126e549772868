/**
 * Mode `lines` over a real terminal and a real relay: calls, events, garbage, an unplugged cable.
 */
import type { Socket } from "node:net";
import type { Agent, CallError, Client } from "@blindrelay/client-sdk/node";
import { LineReader, nmeaChecksum } from "@blindrelay/tools/testing/line-reader";
import { type Cable, HAS_SOCAT } from "@blindrelay/tools/testing/serial/pty";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Running } from "../cli/processes.ts";
import { BridgeHouse, newsOf } from "./world.ts";

const MAPPING = {
  encoding: "latin1",
  checksum: "nmea",
  quiet_ms: 10,
  commands: {
    double: {
      send: "{#},DBL,{n}",
      params: { n: { type: "integer" } },
      answer: { regex: "^{#},(?<result>-?\\d+)$", numbers: ["result"] },
      timeout_ms: 150,
      retries: 2,
    },
    wait: { send: "{#},WAIT", answer: "^{#},done$", timeout_ms: 30_000 },
  },
  events: [
    { line: { regex: "^T,(?<celsius>[0-9.]+)$", numbers: ["celsius"] }, event: "temperature" },
  ],
};

/** One in twenty lines is damaged, followed by noise, or lost; the same ones in every run. */
class Spoiler {
  spoiled = 0;
  private lines = 0;

  private readonly phase: number;

  constructor(phase: number) {
    this.phase = phase;
  }

  pass(line: string): string {
    this.lines++;
    if ((this.lines + this.phase) % 20 !== 0) return line;
    this.spoiled++;
    const middle = Math.floor(line.length / 2);
    switch (this.spoiled % 4) {
      case 0:
        return "";
      case 1:
        return `\xff\x00\x13${line}`;
      case 2:
        return `${line.slice(0, middle)}\x1b\xfe${line.slice(middle + 1)}`;
      default:
        return line.slice(0, middle) + line.slice(middle + 1);
    }
  }
}

describe.skipIf(!HAS_SOCAT)("blindrelay bridge --mode lines", () => {
  const world = new BridgeHouse();
  const toDevice = new Spoiler(3);
  const toBridge = new Spoiler(11);
  let client: Client;
  let agent: Agent;
  let cable: Cable;
  let running: Running;
  let socket: Socket;

  const say = (text: string): void => {
    socket.write(Buffer.from(toBridge.pass(`${text}*${nmeaChecksum(text, "utf8")}\r\n`), "latin1"));
  };

  beforeAll(async () => {
    await world.open();
    client = await world.client();
    const added = await world.add("counter");
    cable = world.cable();
    socket = await cable.plug();
    const device = new LineReader(
      { maxLine: 200, encoding: "latin1", checksum: "nmea" },
      (line) => {
        const [tag, verb, n] = line.split(",");
        if (verb === "DBL") say(`${tag},${Number(n) * 2}`);
      },
    );
    const noisy = new LineReader({ maxLine: 200, encoding: "latin1", checksum: "none" }, (line) =>
      device.receive(Buffer.from(toDevice.pass(`${line}\n`), "latin1")),
    );
    cable.received = (bytes) => noisy.receive(bytes);
    world.house.write("counter-lines.json", JSON.stringify(MAPPING));
    running = world.bridge(added, {
      port: cable.path,
      mode: "lines",
      mapping: "counter-lines.json",
    });
    await newsOf(running, "agent", "online");
    agent = client.agent("counter", added.agent_token);
  });
  afterAll(() => world.close());

  it("200 calls with 5 % garbage both ways give 200 correct answers or clear errors", async () => {
    let right = 0;
    for (let n = 0; n < 200; n += 8) {
      const calls = Array.from({ length: 8 }, (_, i) =>
        agent.call("double", { n: n + i }).then(
          (result) => {
            expect(result).toEqual({ result: 2 * (n + i) });
            right++;
          },
          (error: CallError) => {
            expect(error.remote?.message).toContain("no answer from the device");
          },
        ),
      );
      await Promise.all(calls);
    }
    expect(right).toBeGreaterThanOrEqual(198);
    expect(toDevice.spoiled).toBeGreaterThanOrEqual(10);
    expect(toBridge.spoiled).toBeGreaterThanOrEqual(10);
    const status = await agent.call<{ sent: number; retried: number }>("serial.status");
    expect(status.sent).toBe(200 + status.retried);
    expect(status.retried).toBeGreaterThan(5);
  });

  it("unsolicited lines are events", async () => {
    const heard: unknown[] = [];
    const off = agent.on("event", (event, data) => heard.push([event, data]));
    await agent.call("double", { n: 1 });
    while (heard.length === 0) {
      say("T,21.5");
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
    expect(heard[0]).toEqual(["temperature", { celsius: 21.5 }]);
    off();
  });

  it("a call in flight when the cable is pulled fails at once, reports that it was sent, and may be repeated", async () => {
    const failed = (idempotent: boolean) =>
      agent
        .call("wait", {}, { idempotent })
        .then(() => Promise.reject(new Error("it was answered")))
        .catch((error: CallError) => error);
    const before = await agent.call<{ sent: number }>("serial.status");
    const calls = [failed(false), failed(true)];
    let sent = before.sent;
    while (sent === before.sent) ({ sent } = await agent.call<{ sent: number }>("serial.status"));
    const pulledAt = Date.now();
    await cable.pull();
    const [first, second] = await Promise.all(calls);
    expect(Date.now() - pulledAt).toBeLessThan(60_000);
    expect(first?.remote).toMatchObject({ code: -32_002, data: { retryable: true, sent: true } });
    expect(first?.retryable).toBe(false);
    expect(second?.remote).toMatchObject({ code: -32_002, data: { retryable: true, sent: false } });
    expect(second?.retryable).toBe(true);
    socket = await cable.plug();
    await newsOf(running, "agent", "online");
    const again = agent.call("double", { n: 4 }, { idempotent: true });
    expect(await again).toEqual({ result: 8 });
  });

  it("never lets a caller write to the device what the mapping does not contain", async () => {
    await expect(agent.call("double", { n: "1\nWIPE" })).rejects.toThrow("must be an integer");
    await expect(agent.call("serial.write", { stream: 1 })).rejects.toThrow("unknown method");
  });

  it("reports a file's problem and its position before it opens anything", async () => {
    const wrong = world.house.write("wrong.json", '{"commands":{"a":{"send":"x {y}"}}}');
    const port = { port: "/dev/null", mode: "lines", credentials: "counter.json", state_dir: "s" };
    const config = world.house.write(
      "c.json",
      JSON.stringify({ ports: [{ ...port, mapping: wrong }] }),
    );
    const check = (args: string[]) => world.house.cli(["bridge", ...args, "--check"]);
    expect(await check(["--config", config])).toMatchObject({
      code: 2,
      stderr: expect.stringContaining("/commands/a: {y} is not declared in params"),
    });
    const schema = await world.house.cli(["bridge", "--schema", "mapping"]);
    expect(JSON.parse(schema.stdout)).toMatchObject({ type: "object", required: ["commands"] });
    expect((await world.house.cli(["bridge"])).code).toBe(2);
  });
});
