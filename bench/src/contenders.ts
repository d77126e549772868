/**
 * The contenders, each in its own process: the relay as an operator starts it, a minimal forwarder,
 * and brokers if they are installed.
 */
import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdir, writeFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { connect } from "node:net";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { freePort } from "@blindrelay/protocol/testing/free-port";
import { logIn, makeAgents, startRelay, stopChild, watch } from "@blindrelay/simulator/testing";
import type { PairPlan, PeerPlan } from "./generator/messages.ts";
import {
  type Carrier,
  drawSid,
  forwarderPair,
  forwarderPeer,
  type Identity,
  mqttPair,
  mqttPeer,
  natsPair,
  natsPeer,
  relayAgent,
  relayPair,
} from "./protocols.ts";

const FORWARDER = fileURLToPath(new URL("./forwarder.ts", import.meta.url));
const LIVE_HEAP = new URL("./live-heap.ts", import.meta.url).href;
const AEDES = fileURLToPath(new URL("./aedes.ts", import.meta.url));
const STOP_GRACE_MS = 1_000;
const START_MS = 30_000;
const LOOK_MS = 50;
const PORT_TRIES = 3;
/** Limits that would stop a benchmark are raised; they are still counted. */
const UNLIMITED = [
  ...["--rate-per-second", "1000000", "--rate-burst", "1000000"],
  ...["--requests-per-minute", "10000000", "--requests-at-once", "32"],
  ...["--waiting-per-address", "1000000"],
];

export interface Contender {
  readonly name: string;
  /** A description for the report. */
  readonly version: string;
  readonly pid: number;
  /** Plans for pairs of ends that nobody else uses until `release`. */
  pairs(count: number, bytes: number): Promise<PairPlan[]>;
  /** Plans for agents, or the nearest equivalent, that only hold their connection. */
  idle(count: number): Promise<PeerPlan[]>;
  /** To be called once all ends given out are closed. */
  release(): void;
  /** The URL of its metrics; null for contenders other than the relay. */
  readonly metricsUrl: string | null;
  /** Bytes of live JavaScript objects; null for contenders other than the relay. */
  readonly liveHeap: (() => Promise<number>) | null;
  stop(): Promise<void>;
}

/** The minimal forwarder on `ws`, in the relay's language and on its engine. */
export async function bareWs(name: string): Promise<Contender> {
  const { child, port } = await onNode([FORWARDER]);
  return simple(name, wsVersion(), child, {
    pair: (bytes) => forwarderPair(port, bytes),
    idle: () => forwarderPeer(port, drawSid(), "agent"),
  });
}

/** Our relay, with a store in `folder`. */
export async function ourRelay(folder: string, onMade: (made: number) => void): Promise<Contender> {
  const { signal } = new AbortController();
  const relay = await startRelay(folder, signal, { flags: UNLIMITED, preload: LIVE_HEAP });
  const { accessToken, accountToken } = await logIn(relay, signal);
  const port = Number(new URL(relay.url).port);
  const agents: Identity[] = [];
  let taken = 0;
  async function take(count: number): Promise<Identity[]> {
    const missing = taken + count - agents.length;
    if (missing > 0) {
      const first = agents.length + 1;
      agents.push(...(await makeAgents(relay, accessToken, missing, signal, onMade, first)));
    }
    taken += count;
    return agents.slice(taken - count, taken);
  }
  return {
    name: "blindrelay",
    version: "this checkout",
    pid: relay.pid,
    metricsUrl: relay.metricsUrl,
    liveHeap: async () => {
      const answered = once(relay.process, "message");
      relay.process.send("live heap");
      const [bytes] = await answered;
      return bytes as number;
    },
    pairs: async (count, bytes) =>
      (await take(count)).map((agent) => relayPair(port, accountToken, agent, bytes)),
    idle: async (count) => (await take(count)).map((agent) => relayAgent(port, agent)),
    release: () => {
      taken = 0;
    },
    stop: () => relay.stop(),
  };
}

/** The installed brokers, and a message for each that is not installed. */
export async function brokers(
  folder: string,
): Promise<{ contenders: Contender[]; skipped: string[] }> {
  const contenders: Contender[] = [];
  const skipped: string[] = [];
  for (const start of [mosquitto, natsServer, aedes]) {
    try {
      contenders.push(...(await start(folder)));
    } catch (error) {
      skipped.push((error as Error).message);
    }
  }
  return { contenders, skipped };
}

async function mosquitto(folder: string): Promise<Contender[]> {
  const version = installed("mosquitto", ["-h"], /version (\S+)/, "apt-get install mosquitto");
  return both(async (carrier, port, wsPort) => {
    const config = join(folder, `mosquitto-${carrier}.conf`);
    const lines = [
      `listener ${port} 127.0.0.1`,
      // It does not start with WebSockets only.
      ...(carrier === "ws" ? [`listener ${wsPort} 127.0.0.1`, "protocol websockets"] : []),
      "allow_anonymous true",
      "persistence false",
      "log_type none",
      "set_tcp_nodelay true",
      "max_queued_messages 0",
    ];
    await writeFile(config, `${lines.join("\n")}\n`);
    const used = carrier === "ws" ? wsPort : port;
    const child = await listening(run("mosquitto", ["-c", config]), used);
    return simple(named("mosquitto", carrier), version, child, mqttAt(used, carrier));
  });
}

async function natsServer(folder: string): Promise<Contender[]> {
  const version = installed(
    "nats-server",
    ["--version"],
    /\bv(\S+)/,
    "apt-get install nats-server",
  );
  return both(async (carrier, port, wsPort) => {
    const config = join(folder, `nats-${carrier}.conf`);
    // Its pings would be bytes that belong to no message.
    const common = `listen: "127.0.0.1:${port}"\nping_interval: "2h"\nmax_connections: 100000\n`;
    const websocket = `websocket { listen: "127.0.0.1:${wsPort}", no_tls: true }\n`;
    await writeFile(config, common + (carrier === "ws" ? websocket : ""));
    const used = carrier === "ws" ? wsPort : port;
    const child = await listening(run("nats-server", ["-c", config]), used);
    return simple(named("nats", carrier), version, child, {
      pair: (bytes) => natsPair(used, carrier, bytes),
      idle: () => natsPeer(used, carrier, `a.${drawSid()}`),
    });
  });
}

type Start = (carrier: Carrier, port: number, wsPort: number) => Promise<Contender>;

/** A server for each transport; if one does not start, the other is stopped. */
async function both(start: Start): Promise<Contender[]> {
  const first = await onFreePorts("tcp", start);
  try {
    return [first, await onFreePorts("ws", start)];
  } catch (error) {
    await first.stop();
    throw error;
  }
}

/** A free port may be taken a moment later. */
async function onFreePorts(carrier: Carrier, start: Start): Promise<Contender> {
  for (let tries = 1; ; tries++) {
    try {
      return await start(carrier, await freePort(), await freePort());
    } catch (error) {
      if (tries === PORT_TRIES) throw error;
    }
  }
}

function named(name: string, carrier: Carrier): string {
  return carrier === "ws" ? `${name} ws` : name;
}

/** The folder in which `npm install aedes` was run: this one, or AEDES_FOLDER. */
async function aedes(folder: string): Promise<Contender[]> {
  await mkdir(folder, { recursive: true });
  const from = process.env.AEDES_FOLDER ?? process.cwd();
  const { resolve } = createRequire(join(from, "package.json"));
  let path: string;
  let version: string;
  try {
    path = resolve("aedes");
    version = versionBeside(path);
  } catch {
    throw new Error("aedes: `npm install aedes` in a folder, and name it with AEDES_FOLDER");
  }
  const { child, port } = await onNode([AEDES, path]);
  return [simple("aedes", version, child, mqttAt(port, "tcp"))];
}

interface Plans {
  pair(bytes: number): PairPlan;
  idle(): PeerPlan;
}

function mqttAt(port: number, carrier: Carrier): Plans {
  return {
    pair: (bytes) => mqttPair(port, carrier, bytes),
    idle: () => mqttPeer(port, carrier, `a/${drawSid()}`),
  };
}

/** A server without accounts, so every end is a new one. */
function simple(name: string, version: string, child: ChildProcess, plans: Plans): Contender {
  const times = <T>(count: number, make: () => T): T[] => Array.from({ length: count }, make);
  return {
    name,
    version,
    pid: child.pid as number,
    metricsUrl: null,
    liveHeap: null,
    pairs: async (count, bytes) => times(count, () => plans.pair(bytes)),
    idle: async (count) => times(count, plans.idle),
    release: () => {},
    stop: () => stopChild(child, () => child.kill("SIGTERM"), STOP_GRACE_MS),
  };
}

/** Debian installs servers outside most users' PATH. */
export const PATH = `${process.env.PATH ?? ""}:/usr/sbin:/usr/local/sbin`;

export function run(program: string, args: string[]): ChildProcess {
  return watch(spawn(program, args, { stdio: "ignore", env: { ...process.env, PATH } }));
}

/** The version of an installed program; throws an Error with the fix if it is not installed. */
export function installed(program: string, args: string[], version: RegExp, fix: string): string {
  try {
    const out = execFileSync(program, args, {
      encoding: "utf8",
      env: { ...process.env, PATH },
      stdio: ["ignore", "pipe", "pipe"],
    });
    return version.exec(out)?.[1] ?? "unknown";
  } catch (error) {
    // mosquitto prints its help with exit code 3.
    const found = version.exec(String((error as { stdout?: string }).stdout ?? ""));
    if (found?.[1] !== undefined) return found[1];
    throw new Error(`${program}: ${fix}`);
  }
}

/** Runs a server that prints its port. */
async function onNode(args: string[]): Promise<{ child: ChildProcess; port: number }> {
  const child = watch(spawn(process.execPath, args, { stdio: ["ignore", "pipe", "inherit"] }));
  const ended = once(child, "exit").then(() => {
    throw new Error("a contender ended before it listened");
  });
  const [line] = await Promise.race([
    once(child.stdout as NonNullable<typeof child.stdout>, "data"),
    ended,
  ]);
  return { child, port: Number(String(line).trim()) };
}

/** Resolves with the child once it listens on the port; stops it if that takes too long. */
export async function listening(child: ChildProcess, port: number): Promise<ChildProcess> {
  const deadline = performance.now() + START_MS;
  while (performance.now() < deadline && child.exitCode === null) {
    const socket = connect(port, "127.0.0.1");
    const there = await once(socket, "connect").then(
      () => true,
      () => false,
    );
    socket.destroy();
    await delay(LOOK_MS); // By then, a child that could not have the port has ended.
    if (there && child.exitCode === null) return child;
  }
  child.kill("SIGKILL");
  throw new Error(`${child.spawnfile} does not listen on its port`);
}

function wsVersion(): string {
  return versionBeside(createRequire(import.meta.url).resolve("ws"));
}

/** The version in the package.json that a file belongs to. */
function versionBeside(file: string): string {
  const { version } = createRequire(file)(
    `${/^.*\/node_modules\/(?:@[^/]+\/)?[^/]+/.exec(file)?.[0]}/package.json`,
  ) as { version: string };
  return version;
}
