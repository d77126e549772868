/**
 * A serial port over the network: `blindrelay attach` and `bridge` through a relay, and ser2net
 * where it is installed, each with a pseudo-terminal of its own. The same tool, a TCP connection,
 * uses them in turns: bytes at 1 Mbaud in both directions, then single bytes that come back.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdir, writeFile } from "node:fs/promises";
import { connect, createServer, type Socket } from "node:net";
import { join } from "node:path";
import { createInterface } from "node:readline";
import type { Readable } from "node:stream";
import { setTimeout as delay } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { freePort } from "@blindrelay/protocol/testing/free-port";
import { logIn, makeAgents, startRelay, stopChild, watch } from "@blindrelay/simulator/testing";
import { installed, listening, PATH, run } from "./contenders.ts";
import { median } from "./interleave.ts";
import { cpuUs } from "./usage.ts";

const CLI = fileURLToPath(new URL("../../tools/src/main.ts", import.meta.url));
const STOP_GRACE_MS = 2_000;
const REST_MS = 100;
const WAIT_MS = 10_000;
/** 1 Mbaud is 100,000 bytes a second with a start and a stop bit. */
const PIECE_BYTES = 1_000;
const PIECE_MS = 10;
const ROUND_TRIPS = 20;

interface SerialEffort {
  readonly cycles: number;
  /** Of one slice at 1 Mbaud. */
  readonly loadMs: number;
}

interface SerialStanding {
  readonly name: string;
  /** Of one core, by what stands between the tool and the port; the relay is not counted. */
  readonly cpuShare: number;
  readonly roundTripMs: number;
}

export interface SerialResult {
  readonly standings: readonly SerialStanding[];
  readonly skipped: readonly string[];
  readonly versions: Readonly<Record<string, string>>;
}

/** The device's end of a pseudo-terminal, by socat. */
interface Cable {
  readonly path: string;
  readonly device: Socket;
}

interface Contender {
  readonly name: string;
  readonly cable: Cable;
  readonly tool: Socket;
  readonly pids: readonly number[];
  readonly shares: number[];
  readonly trips: number[];
}

/** Measures in `folder`. Rejects if a contender fails, or when `signal` aborts. */
export async function measureSerial(
  { cycles, loadMs }: SerialEffort,
  folder: string,
  signal: AbortSignal,
): Promise<SerialResult> {
  await using started = new AsyncDisposableStack();
  const skipped: string[] = [];
  const versions: Record<string, string> = {};
  await mkdir(folder, { recursive: true });
  const keep = (child: ChildProcess): ChildProcess => {
    started.defer(() => stopChild(child, () => child.kill("SIGTERM"), STOP_GRACE_MS));
    return child;
  };
  const relay = await startRelay(join(folder, "relay"), signal, {});
  started.defer(() => relay.stop());
  const contenders = [await attached(relay, folder, keep, signal)];
  try {
    versions.ser2net = installed("ser2net", ["-v"], /ersion (\S+)/, "apt-get install ser2net");
    contenders.push(await ser2net(folder, keep));
  } catch (error) {
    skipped.push((error as Error).message);
  }
  await takeTurns(contenders, 1, loadMs, signal);
  for (const one of contenders) one.shares.length = one.trips.length = 0;
  await takeTurns(contenders, cycles, loadMs, signal);
  const standings = contenders.map(({ name, shares, trips }) => ({
    name,
    cpuShare: median(shares),
    roundTripMs: median(trips),
  }));
  return { standings, skipped, versions };
}

async function takeTurns(
  contenders: readonly Contender[],
  cycles: number,
  loadMs: number,
  signal: AbortSignal,
): Promise<void> {
  for (let cycle = 0; cycle < cycles; cycle++) {
    for (const one of cycle % 2 === 0 ? contenders : contenders.toReversed()) {
      signal.throwIfAborted();
      await delay(REST_MS);
      one.shares.push(await load(one, loadMs));
      for (let n = 0; n < ROUND_TRIPS; n++) one.trips.push(await roundTrip(one));
    }
  }
}

/** The share of a core that 1 Mbaud in both directions takes. */
async function load({ cable, tool, pids }: Contender, loadMs: number): Promise<number> {
  const pieces = Math.ceil(loadMs / PIECE_MS);
  const [down, up] = [counter(cable.device), counter(tool)];
  const used = (): number => pids.reduce((sum, pid) => sum + cpuUs(pid), 0);
  const [beganAt, before] = [performance.now(), used()];
  for (let n = 0; n < pieces; n++) {
    const piece = Buffer.alloc(PIECE_BYTES, n);
    tool.write(piece);
    cable.device.write(piece);
    const aheadMs = beganAt + (n + 1) * PIECE_MS - performance.now();
    if (aheadMs > 0) await delay(aheadMs);
  }
  await Promise.all([down.reach(pieces * PIECE_BYTES), up.reach(pieces * PIECE_BYTES)]);
  return (used() - before) / 1000 / (performance.now() - beganAt);
}

/** Milliseconds until one byte that the device sends back is there. */
async function roundTrip({ cable, tool }: Contender): Promise<number> {
  const echo = (bytes: Buffer): void => void cable.device.write(bytes);
  cable.device.once("data", echo);
  const back = counter(tool);
  const beganAt = performance.now();
  tool.write("x");
  await back.reach(1);
  return performance.now() - beganAt;
}

function counter(socket: Socket): { reach(bytes: number): Promise<void> } {
  let [count, wanted] = [0, Number.POSITIVE_INFINITY];
  let reached: () => void = () => undefined;
  const take = (bytes: Buffer): void => {
    count += bytes.length;
    if (count >= wanted) reached();
  };
  socket.on("data", take);
  return {
    reach: async (bytes) => {
      const done = new Promise<void>((resolve) => {
        reached = resolve;
        wanted = bytes;
        if (count >= bytes) resolve();
      });
      const late = AbortSignal.timeout(WAIT_MS);
      await Promise.race([done, once(late, "abort")]);
      socket.off("data", take);
      if (count !== bytes) throw new Error(`${count} bytes came of ${bytes}`);
    },
  };
}

type Keep = (child: ChildProcess) => ChildProcess;

async function attached(
  relay: Awaited<ReturnType<typeof startRelay>>,
  folder: string,
  keep: Keep,
  signal: AbortSignal,
): Promise<Contender> {
  const { accessToken, accountToken } = await logIn(relay, signal);
  const [agent] = await makeAgents(relay, accessToken, 1, signal, () => undefined, 1);
  if (agent === undefined) throw new Error("no agent was made");
  const cable = await plug(folder, "attached", keep);
  const env = {
    PATH,
    BLINDRELAY_URL: relay.url,
    BLINDRELAY_CONFIG_DIR: join(folder, "config"),
    BLINDRELAY_AGENT_ID: agent.id,
    BLINDRELAY_AGENT_TOKEN: agent.agentToken,
  };
  const start = (args: readonly string[], more: object): ChildProcess =>
    keep(
      watch(
        spawn(process.execPath, [CLI, ...args, "--json"], {
          env: { ...env, ...more },
          stdio: ["ignore", "pipe", "inherit"],
        }),
      ),
    );
  const bridge = start(["bridge", cable.path, "--mode", "raw", "--baud", "1000000"], {
    BLINDRELAY_RELAY_TOKEN: agent.relayToken,
    BLINDRELAY_STATE_DIR: join(folder, "state"),
  });
  await newsOf(bridge, (news) => news.event === "agent" && news.state === "online");
  const attach = start(["attach", agent.id, "--tcp", "0"], {
    BLINDRELAY_ACCOUNT_TOKEN: accountToken,
  });
  const { where } = await newsOf(attach, (news) => news.event === "attached");
  const tool = await dial(Number(/:(\d+)$/.exec(String(where))?.[1]));
  const pids = [bridge.pid as number, attach.pid as number];
  return { name: "bridge and attach", cable, tool, pids, shares: [], trips: [] };
}

async function ser2net(folder: string, keep: Keep): Promise<Contender> {
  const cable = await plug(folder, "ser2net", keep);
  const port = await freePort();
  const config = join(folder, "ser2net.yaml");
  const lines = [
    "connection: &it",
    `  accepter: tcp(nodelay=true),127.0.0.1,${port}`,
    `  connector: serialdev,${cable.path},1000000n81,local`,
    "  options:",
    "    kickolduser: true",
  ];
  await writeFile(config, `${lines.join("\n")}\n`);
  const args = ["-n", "-c", config, "-P", join(folder, "ser2net.pid")];
  const child = keep(run("ser2net", args));
  await listening(child, port);
  const tool = await dial(port);
  return { name: "ser2net", cable, tool, pids: [child.pid as number], shares: [], trips: [] };
}

async function plug(folder: string, name: string, keep: Keep): Promise<Cable> {
  const [path, device] = [join(folder, `tty-${name}`), join(folder, `device-${name}`)];
  const server = createServer().listen(device);
  const args = ["-b", "4096", `PTY,link=${path},raw,echo=0`, `UNIX-CONNECT:${device}`];
  keep(run("socat", args));
  const [socket] = (await once(server, "connection")) as [Socket];
  server.close();
  socket.on("error", () => undefined);
  return { path, device: socket };
}

async function dial(port: number): Promise<Socket> {
  const socket = connect({ port, host: "127.0.0.1", noDelay: true });
  await once(socket, "connect");
  socket.on("error", () => undefined);
  // What it opens is open before the first byte.
  await delay(REST_MS);
  return socket;
}

async function newsOf(
  child: ChildProcess,
  isIt: (news: Record<string, unknown>) => boolean,
): Promise<Record<string, unknown>> {
  for await (const line of createInterface(child.stdout as Readable)) {
    const news = JSON.parse(line) as Record<string, unknown>;
    if (!isIt(news)) continue;
    child.stdout?.resume();
    return news;
  }
  throw new Error(`${child.spawnargs.slice(2).join(" ")} has ended`);
}
