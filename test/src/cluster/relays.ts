/** Relay processes of one cluster, over a real PostgreSQL and a real NATS, behind a balancer. */
import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { cpSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { type Balancer, startBalancer } from "./balancer.ts";

export const MAIN = join(import.meta.dirname, "../../../relay-server/src/main.ts");
const PASSWORD = "correct horse";

export interface RelayNode {
  readonly child: ChildProcess;
  /** Its data folder. */
  readonly data: string;
  readonly url: string;
  readonly metricsUrl: string;
}

export interface Relays {
  readonly balancer: Balancer;
  readonly accountToken: string;
  readonly nodes: (RelayNode | null)[];
  /** Starts the node in this place again, as a new process. */
  start(place: number): Promise<void>;
  /** Sends SIGTERM or SIGKILL and waits for the end; returns the exit code. */
  end(place: number, signal: "SIGTERM" | "SIGKILL"): Promise<number | null>;
  close(): Promise<void>;
}

/** `store`, `bus`: addresses; the database is empty. */
export const startRelays = async (count: number, store: string, bus: string): Promise<Relays> => {
  const folder = mkdtempSync(join(tmpdir(), "blindrelay-nodes-"));
  const first = join(folder, "first");
  const init = ["init", "--data", first, "--store", store, "--username", "admin", "--no-totp"];
  execFileSync(process.execPath, [MAIN, ...init, "--password-stdin"], { input: PASSWORD });
  const prefix = `test_${randomBytes(6).toString("hex")}`;
  const balancer = await startBalancer();
  const nodes: (RelayNode | null)[] = [];
  process.once("exit", () => {
    for (const node of nodes) node?.child.kill("SIGKILL");
  });
  const point = () => {
    balancer.targets = nodes.flatMap((node) => (node === null ? [] : [node.url]));
  };
  const start = async (place: number): Promise<void> => {
    const data = join(folder, `node${place}`);
    cpSync(join(first, "key"), join(data, "key"), { recursive: true });
    const flags = ["--data", data, "--store", store, "--bus", bus, "--bus-prefix", prefix];
    const more = [
      ...["--port", "0", "--metrics-port", "0", "--drain-delay", "1", "--log-level", "error"],
      // One account owns the whole fleet.
      ...["--requests-per-minute", "1000000", "--waiting-per-address", "10000"],
    ];
    const child = spawn(process.execPath, [MAIN, "start", ...flags, ...more], {
      stdio: ["ignore", "pipe", "inherit"],
    });
    const [line] = await once(createInterface(child.stdout as NodeJS.ReadableStream), "line");
    const { url, metrics_url: metricsUrl } = JSON.parse(String(line));
    nodes[place] = { child, data, url, metricsUrl };
    point();
  };
  const end = async (place: number, signal: "SIGTERM" | "SIGKILL"): Promise<number | null> => {
    const node = nodes[place];
    if (node === null || node === undefined) return null;
    const ended = once(node.child, "exit");
    node.child.kill(signal);
    const [code] = await ended;
    nodes[place] = null;
    point();
    return code as number | null;
  };
  await Promise.all(Array.from({ length: count }, (_, place) => start(place)));
  const answer = await fetch(`${nodes[0]?.url}/api/v1/auth/login`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ username: "admin", password: PASSWORD }),
  });
  const { user } = (await answer.json()) as { user: { api_token: string } };
  return {
    balancer,
    accountToken: user.api_token,
    nodes,
    start,
    end,
    close: async () => {
      await Promise.all(nodes.map((_, place) => end(place, "SIGKILL")));
      balancer.close();
      rmSync(folder, { recursive: true, force: true });
    },
  };
};
