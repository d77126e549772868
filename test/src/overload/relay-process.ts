/**
 * A relay in its own process, whose memory can be read: VmHWM in /proc is its all-time peak, so no
 * peak between two readings is missed. Linux only, like everything that uses it.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { constants, tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import type { Readable } from "node:stream";
import { getCACertificates, setDefaultCACertificates } from "node:tls";
import { pathToFileURL } from "node:url";
import { initStore } from "@blindrelay/relay-server";
import { callRest, makeCertificates, type RestResponse } from "@blindrelay/relay-server/testing";

const MAIN = join(import.meta.dirname, "../../../relay-server/src/main.ts");
export const PASSWORD = "correct horse battery";
const MEMORY_REPORT = join(import.meta.dirname, "memory-report.ts");
/** As set by the systemd unit and the image; and what `leftBytes` needs. */
const MEMORY_SETTINGS = {
  NODE_OPTIONS: `--max-old-space-size=512 --expose-gc --import=${pathToFileURL(MEMORY_REPORT)}`,
  MALLOC_ARENA_MAX: "2",
};
/** The memory limit that docs/limits.md promises to survive with. */
export const MEMORY_LIMIT_BYTES = 384 * 2 ** 20;

export interface LeftBytes {
  /** Objects in V8's heap, and the buffers that they own. */
  readonly live: number;
  /** Memory of the process outside V8's reserved heap. */
  readonly outside: number;
}

export interface RelayProcess {
  readonly url: string;
  readonly metricsUrl: string;
  readonly port: number;
  /** Whether it speaks TLS, with a certificate that this process trusts from now on. */
  readonly tls: boolean;
  readonly child: ChildProcess;
  /** Its data folder. */
  readonly data: string;
  /** The admin's account token. */
  readonly account: string;
  readonly userId: string;
  /** Lines of the relay's log so far. */
  readonly log: readonly string[];
  /** Whether the process runs. */
  isAlive(): boolean;
  rssBytes(): number;
  /** Processor time since its start. */
  cpuMs(): number;
  /** The peak since its start. */
  peakRssBytes(): number;
  /** What is left after a full garbage collection. */
  leftBytes(): Promise<LeftBytes>;
  api(method: string, path: string, body?: object, token?: string): Promise<RestResponse>;
  stop(): Promise<void>;
}

/** The running relays, with their data folders. */
const running = new Map<ChildProcess, string>();

/** Stops the relays that this process started when it ends, even by a signal or an error. */
export const endWithRelays = (): void => {
  process.once("exit", () => {
    for (const [child, data] of running) {
      child.kill("SIGKILL");
      rmSync(data, { recursive: true, force: true });
    }
  });
  for (const name of ["SIGINT", "SIGTERM", "SIGHUP"] as const) {
    process.once(name, () => process.exit(128 + constants.signals[name]));
  }
};

/** Flags for TLS, with certificates in the folder. */
const secureFlags = (folder: string): string[] => {
  const { ca, cert, key } = makeCertificates(folder, "nobody");
  setDefaultCACertificates([...getCACertificates(), readFileSync(ca, "utf8")]);
  return ["--tls-cert", cert, "--tls-key", key];
};

/** Starts a relay with one admin. `flags` as on its command line; `node` runs it. */
export const startRelayProcess = async (
  flags: readonly string[] = [],
  { tls = false, node = process.execPath }: { tls?: boolean; node?: string } = {},
): Promise<RelayProcess> => {
  const data = mkdtempSync(join(tmpdir(), "blindrelay-overload-"));
  await initStore({ data, username: "admin", password: PASSWORD, totp: false });
  const ports = ["--data", data, "--port", "0", "--metrics-port", "0", "--log-level", "warn"];
  const fixed = [...ports, ...(tls ? secureFlags(data) : [])];
  const child = spawn(node, [MAIN, "start", ...fixed, ...flags], {
    stdio: ["ignore", "pipe", "pipe", "ipc"],
    // Without the options that make spawned processes record what they seal: a relay seals nothing.
    env: { ...process.env, ...MEMORY_SETTINGS },
  });
  running.set(child, data);
  child.once("exit", () => running.delete(child));
  const log: string[] = [];
  createInterface(child.stderr as Readable).on("line", (line) => {
    if (log.length < 1000) log.push(line);
  });
  const exit = once(child, "exit");
  const ended = async (what: string): Promise<never> => {
    await exit;
    throw new Error(`${what}: ${log.slice(-20).join("\n")}`);
  };
  const [line] = await Promise.race([
    once(createInterface(child.stdout as Readable), "line"),
    ended("the relay did not start"),
  ]);
  const { url, metrics_url } = JSON.parse(line) as { url: string; metrics_url: string };
  const api = (method: string, path: string, body?: object, token?: string) =>
    callRest(url, method, path, token ?? null, body);
  const login = await api("POST", "/auth/login", { username: "admin", password: PASSWORD });
  const statusOf = (field: string): number => {
    const status = readFileSync(`/proc/${child.pid}/status`, "utf8");
    return Number(new RegExp(`^${field}:\\s+(\\d+) kB`, "m").exec(status)?.[1]) * 1024;
  };
  return {
    url,
    metricsUrl: metrics_url,
    tls,
    port: Number(new URL(url).port),
    child,
    data,
    account: login.body.user.api_token,
    userId: login.body.user.id,
    log,
    isAlive: () => child.exitCode === null && child.signalCode === null,
    cpuMs: () => {
      const stat = readFileSync(`/proc/${child.pid}/stat`, "utf8").split(") ")[1]?.split(" ") ?? [];
      return 10 * (Number(stat[11]) + Number(stat[12])); // user and system, in ticks of 10 ms
    },
    rssBytes: () => statusOf("VmRSS"),
    peakRssBytes: () => statusOf("VmHWM"),
    leftBytes: async () => {
      child.send("collect");
      const [{ heapUsed, external, rss, heapTotal }] = await Promise.race([
        once(child, "message"),
        ended("the relay ended"),
      ]);
      return { live: heapUsed + external, outside: rss - heapTotal };
    },
    api,
    stop: async () => {
      if (child.exitCode === null && child.signalCode === null) {
        child.kill("SIGTERM");
        const deadline = setTimeout(() => child.kill("SIGKILL"), 20_000);
        await once(child, "exit");
        clearTimeout(deadline);
      }
      rmSync(data, { recursive: true });
    },
  };
};
