/**
 * Our own relay in a process of its own, on a new store: created and started by the commands that
 * an operator uses (`blindrelay-server init`, `start`), and used over the same HTTP.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { createRequire } from "node:module";
import { dirname, extname, join } from "node:path";
import { createInterface } from "node:readline";
import { stopChild, watch, whenEnded } from "../base/processes.ts";

// `blindrelay-server`: beside the package's entry point, from source as well as from a build.
const DOOR = createRequire(import.meta.url).resolve("@blindrelay/relay-server");
const PROGRAM = join(dirname(DOOR), `main${extname(DOOR)}`);
const USERNAME = "admin";
/** All agents of a run belong to one account, which would otherwise reach a user's quotas. */
const ONE_ACCOUNT_FOR_ALL = [
  ...["--agents-per-user", "1000000", "--clients-per-user", "100000"],
  ...["--requests-per-minute", "10000000", "--requests-at-once", "32"],
];
const STOP_GRACE_MS = 800;
/**
 * How much of a failing relay's last output to keep: enough for the reason, short enough for a
 * message.
 */
const STDERR_KEPT = 2_000;

export interface RelayChild {
  readonly process: ChildProcess;
  readonly pid: number;
  /** Base URL of the REST API and of `/wss`. */
  readonly url: string;
  readonly metricsUrl: string;
  readonly username: string;
  readonly password: string;
  /** How the process ended, and why, if it reported that; also after a `stop`. */
  readonly ended: Promise<string>;
  stop(): Promise<void>;
}

export interface RelayChildOptions {
  /** Additional flags of `blindrelay-server start`. */
  flags?: string[];
  /**
   * A module to load into the relay's process before it starts; the process then gets an IPC
   * channel to its parent.
   */
  preload?: string;
}

/**
 * Starts a relay with its store in `folder`. Rejects if either command fails, or when `signal`
 * aborts.
 */
export async function startRelay(
  folder: string,
  signal: AbortSignal,
  options: RelayChildOptions = {},
): Promise<RelayChild> {
  const password = randomBytes(24).toString("base64url");
  await initialise(folder, password, signal);
  return startAgain(folder, { password, port: "0" }, signal, options);
}

/** Starts a relay on an existing store. `port`: 0 picks one. */
export async function startAgain(
  folder: string,
  { password, port }: { password: string; port: string },
  signal: AbortSignal,
  options: RelayChildOptions = {},
): Promise<RelayChild> {
  const child = launch(
    [
      "start",
      "--data",
      folder,
      "--port",
      port,
      "--metrics-port",
      "0",
      "--log-level",
      "warn",
      ...ONE_ACCOUNT_FOR_ALL,
      ...(options.flags ?? []),
    ],
    options.preload ?? null,
  );
  const ended = withLastWords(child);
  const stop = (): Promise<void> => stopChild(child, () => child.kill("SIGTERM"), STOP_GRACE_MS);
  try {
    const { url, metrics_url } = await firstLine(child, ended, signal);
    const pid = child.pid as number;
    const known = { process: child, pid, username: USERNAME, password, ended, stop };
    return { ...known, url, metricsUrl: metrics_url };
  } catch (error) {
    await stop();
    throw error;
  }
}

async function initialise(folder: string, password: string, signal: AbortSignal): Promise<void> {
  const child = launch([
    "init",
    "--data",
    folder,
    "--username",
    USERNAME,
    "--password-stdin",
    "--no-totp",
    "--json",
  ]);
  const ended = withLastWords(child);
  const kill = (): void => void child.kill("SIGKILL");
  signal.addEventListener("abort", kill, { once: true });
  child.stdout?.resume();
  child.stdin?.on("error", () => {}); // If the child ends first, its end gives the reason.
  child.stdin?.end(password);
  const how = await ended;
  signal.removeEventListener("abort", kill);
  signal.throwIfAborted();
  if (how !== "exit code 0") throw new Error(`blindrelay-server init failed: ${how}`);
}

function launch(args: string[], preload: string | null = null): ChildProcess {
  // Only the flags count: settings of the user's own relay must not affect this one.
  const env = Object.fromEntries(
    Object.entries(process.env).filter(([name]) => !name.startsWith("BLINDRELAY_")),
  );
  const nodeArgs = preload === null ? [] : ["--import", preload];
  return watch(
    spawn(process.execPath, [...nodeArgs, PROGRAM, ...args], {
      env,
      stdio: ["pipe", "pipe", "pipe", ...(preload === null ? [] : ["ipc" as const])],
    }),
  );
}

async function withLastWords(child: ChildProcess): Promise<string> {
  let words = "";
  child.stderr?.setEncoding("utf8").on("data", (text: string) => {
    words = (words + text).slice(-STDERR_KEPT);
  });
  const how = await whenEnded(child);
  const lines = words.split("\n").filter((line) => line.trim() !== "");
  const reason = lines.find((line) => /^blindrelay-server:|Error:/.test(line)) ?? lines.at(-1);
  return reason === undefined || how === "exit code 0" ? how : `${how}: ${reason.trim()}`;
}

interface Listening {
  url: string;
  metrics_url: string;
}

/** The first line that `start` prints (docs/commands.md). */
async function firstLine(
  child: ChildProcess,
  ended: Promise<string>,
  signal: AbortSignal,
): Promise<Listening> {
  const { promise, resolve, reject } = Promise.withResolvers<Listening>();
  const abort = (): void => reject(signal.reason);
  signal.addEventListener("abort", abort, { once: true });
  if (signal.aborted) abort();
  ended.then((how) => reject(new Error(`blindrelay-server start failed: ${how}`)));
  const lines = createInterface({ input: child.stdout as NonNullable<typeof child.stdout> });
  lines.once("line", (line) => {
    try {
      resolve(JSON.parse(line));
    } catch {
      reject(new Error(`blindrelay-server start said ${line}`));
    }
  });
  try {
    return await promise;
  } finally {
    signal.removeEventListener("abort", abort);
  }
}
