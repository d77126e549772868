/**
 * By hand: bytes through `blindrelay attach` in both directions, with a delay each way and losses
 * of the link in between, and what it costs; or single bytes that a device echoes, and how long
 * each takes.
 *
 *   node test/src/bridge/attach-proof.ts --mb 20 --losses 10 --delay 100 --away 9
 *   node test/src/bridge/attach-proof.ts --bytes 100 --delay 100
 */
import { createHash } from "node:crypto";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import type { Readable, Writable } from "node:stream";
import { setTimeout as sleep } from "node:timers/promises";
import { parseArgs } from "node:util";
import type { Running } from "../cli/processes.ts";
import { SlowWay } from "../instruments/slow-way.ts";
import { BridgeHouse, newsOf } from "./world.ts";

const { values } = parseArgs({
  options: {
    mb: { type: "string", default: "20" },
    losses: { type: "string", default: "10" },
    delay: { type: "string", default: "100" },
    /** Seconds that a loss lasts, at most. */
    away: { type: "string", default: "9" },
    side: { type: "string", default: "pty" },
    /** Bytes a second that the device and the tool send; 0: as much as goes. */
    rate: { type: "string", default: "0" },
    /** Single bytes, one after the other, instead of `mb`. */
    bytes: { type: "string", default: "0" },
  },
});
const total = Number(values.mb) * 1_000_000;
const rate = Number(values.rate);

/** CPU time of a process in milliseconds. */
const cpuMs = ({ child }: Running): number => {
  const fields = readFileSync(`/proc/${child.pid}/stat`, "utf8").split(") ")[1]?.split(" ") ?? [];
  return (Number(fields[11]) + Number(fields[12])) * 10;
};

const BLOCK = 4_096;
const block = (n: number, seed: number): Buffer => {
  const made = Buffer.alloc(BLOCK);
  for (let at = 0; at < BLOCK; at += 32) {
    createHash("sha256").update(`${seed} ${n} ${at}`).digest().copy(made, at);
  }
  return made;
};

/** Counts what is right, and throws at the first byte that is not. */
class Check {
  got = 0;
  private readonly seed: number;
  private current: Uint8Array = new Uint8Array(0);

  constructor(seed: number) {
    this.seed = seed;
  }

  take(bytes: Uint8Array): void {
    for (const byte of bytes) {
      if (this.got % BLOCK === 0) this.current = block(this.got / BLOCK, this.seed);
      if (this.current[this.got % BLOCK] !== byte) throw new Error(`byte ${this.got} is another`);
      this.got++;
    }
  }
}

const send = async (to: NodeJS.WritableStream, seed: number): Promise<void> => {
  const began = performance.now();
  for (let n = 0; n * BLOCK < total; n++) {
    const rest = Math.min(BLOCK, total - n * BLOCK);
    if (!to.write(block(n, seed).subarray(0, rest))) {
      await new Promise((resolve) => to.once("drain", resolve));
    }
    if (rate > 0) {
      const dueMs = (n * BLOCK * 1000) / rate;
      const aheadMs = dueMs - (performance.now() - began);
      if (aheadMs > 1) await sleep(aheadMs);
    }
  }
};

/** Milliseconds of each byte's way to the device and back. */
const echoes = async (to: Writable, from: Readable, count: number): Promise<number[]> => {
  const tookMs: number[] = [];
  for (let n = 0; n < count; n++) {
    // Not in step with any timer of what is measured.
    await sleep(20 + Math.random() * 200);
    const came = once(from, "data") as Promise<[Buffer]>;
    const began = performance.now();
    to.write(Buffer.of(n & 255));
    const [bytes] = await came;
    tookMs.push(performance.now() - began);
    if (bytes.length !== 1 || bytes[0] !== (n & 255)) throw new Error(`byte ${n} is another`);
  }
  return tookMs.sort((a, b) => a - b);
};

const world = new BridgeHouse();
await world.open();
const delayMs = Number(values.delay);
const ways = [new SlowWay(world.house.url, delayMs), new SlowWay(world.house.url, delayMs)];
const [clientUrl = "", bridgeUrl = ""] = await Promise.all(ways.map((way) => way.open()));
const run = async (): Promise<void> => {
  await world.house.cli(["profile", "set-url", clientUrl]);
  const added = await world.add("modem");
  const cable = world.cable();
  const device = await cable.plug();
  const bridge = world.bridge(added, { port: cable.path, mode: "raw" }, bridgeUrl);
  await newsOf(bridge, "agent", "online");
  const side = values.side === "pty" ? world.house.path("tty") : "0";
  const running = world.house.start(["attach", "modem", `--${values.side}`, side, "--json"]);
  const { where } = await newsOf(running, "attached");
  // Two programs: one that does not read while it cannot write, with a device that does the same,
  // stops for good when all stores are full. A TCP port has one program.
  const isPty = values.side === "pty";
  const tool = world.tool(String(where), ...(isPty ? ["-u"] : []));
  const reader = isPty ? world.tool(String(where), "-U") : tool;
  const count = Number(values.bytes);
  if (count > 0) {
    cable.received = (bytes) => device.write(bytes);
    await sleep(500);
    const tookMs = await echoes(tool.stdin, reader.stdout, count);
    const at = (share: number): number =>
      Math.round((tookMs[Math.floor(share * (count - 1))] ?? 0) * 10) / 10;
    // A network round trip: to the relay and back, from either side.
    console.log(
      JSON.stringify({
        bytes: count,
        network_round_trip_ms: 2 * delayMs,
        ms: { least: at(0), median: at(0.5), p99: at(0.99), most: at(1) },
      }),
    );
    await running.stop();
    await bridge.stop();
    return;
  }
  const [down, up] = [new Check(1), new Check(2)];
  cable.received = (bytes) => down.take(bytes);
  reader.stdout.on("data", (bytes: Buffer) => up.take(bytes));
  const said: unknown[] = [];
  // A byte that is another is right only where this says so.
  process.once("uncaughtExceptionMonitor", () => console.error(JSON.stringify(said)));
  void (async () => {
    for (;;) said.push(await running.json());
  })().catch(() => undefined);
  await sleep(500);
  const cpuBefore = cpuMs(bridge) + cpuMs(running);
  const began = performance.now();
  const sending = Promise.all([send(device, 2), send(tool.stdin, 1)]);
  const losses = Number(values.losses);
  for (let n = 1; n <= losses; n++) {
    const at = (n * total) / (losses + 1);
    while (Math.min(down.got, up.got) < at) await sleep(20);
    const way = ways[n % 2];
    way?.cut();
    await sleep(1000 * (0.2 + Math.random() * (Number(values.away) - 0.2)));
    way?.mend();
    console.error(
      `loss ${n} at ${down.got} and ${up.got} bytes, ${Math.round(performance.now() - began)} ms`,
    );
  }
  const ticker = setInterval(
    () => console.error(Math.round(performance.now() - began), down.got, up.got),
    2_000,
  );
  await sending;
  while (down.got < total || up.got < total) await sleep(20);
  clearInterval(ticker);
  const tookMs = performance.now() - began;
  const cpu = cpuMs(bridge) + cpuMs(running) - cpuBefore;
  console.log(
    JSON.stringify({
      bytes_each_way: total,
      seconds: Math.round(tookMs / 100) / 10,
      kbytes_per_second_each_way: Math.round(total / tookMs),
      cpu_share_of_one_core: Math.round((1000 * cpu) / tookMs) / 1000,
      cpu_s_per_mb: Math.round(cpu / ((2 * total) / 1e6)) / 1000,
      losses,
      said: said.filter((news) => (news as { event: string }).event === "lost"),
    }),
  );
  await running.stop();
  await bridge.stop();
};
try {
  await run();
} finally {
  await world.close();
  await Promise.all(ways.map((way) => way.close()));
}
process.exit();
