/**
 * A disk that is full, broken or slow, under a running relay: it reports that in time and with the
 * correct cause, accepts no new work meanwhile, and keeps what it acknowledged.
 */
import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { randomUUID } from "node:crypto";
import { once } from "node:events";
import {
  closeSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { initStore, openData } from "./control/data-dir.ts";

const MAIN = join(import.meta.dirname, "main.ts");
const PASSWORD = "correct horse";

let folder: string;
let data: string;
let child: ChildProcess | null;
let log: string;
let url: string;
let token: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "blindrelay-disk-"));
  data = join(folder, "relay");
  mkdirSync(data);
  child = null;
  log = "";
});
afterEach(() => {
  child?.kill("SIGKILL");
  if (isMounted) execFileSync("umount", ["--lazy", data]);
  isMounted = false;
  rmSync(folder, { recursive: true });
});

const api = (method: string, path: string, body?: object) =>
  fetch(`${url}/api/v1${path}`, {
    method,
    headers: {
      authorization: `Bearer ${token}`,
      ...(body === undefined ? {} : { "content-type": "application/json" }),
    },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
const isReady = async () => (await fetch(`${url}/health/ready`)).ok;

const start = async (environment: Record<string, string> = {}) => {
  await initStore({ data, username: "ada", password: PASSWORD, totp: false });
  const args = ["start", "--data", data, "--port", "0", "--metrics-port", "0"];
  const env = { PATH: process.env.PATH ?? "", ...environment };
  child = spawn(process.execPath, [MAIN, ...args], { env, stdio: ["ignore", "pipe", "pipe"] });
  child.stderr?.on("data", (bytes) => {
    log += bytes;
  });
  const [line] = await once(createInterface(child.stdout as never), "line");
  url = JSON.parse(line).url;
  const login = await api("POST", "/auth/login", { username: "ada", password: PASSWORD });
  token = (await login.json()).user.api_token;
};

/** The acknowledged identifiers among `count` concurrent attempts; every refusal is a 503. */
const addAgents = async (count: number): Promise<string[]> => {
  const add = async () => {
    const agent_id = randomUUID();
    const metadata = { padding: "x".repeat(4000) };
    const answer = await api("POST", "/agents", { name: "x", agent_id, metadata });
    await answer.arrayBuffer();
    if (answer.status === 201) return [agent_id];
    expect([answer.status, answer.headers.get("retry-after")]).toEqual([503, "2"]);
    return [];
  };
  return (await Promise.all(Array.from({ length: count }, add))).flat();
};

/** After a kill, so that nothing is written on shutdown. */
const expectKept = async (acknowledged: readonly string[]) => {
  child?.kill("SIGKILL");
  await once(child as ChildProcess, "exit");
  const { store } = await openData({ data });
  const rows = await store.db.selectFrom("agents").select("agent_id").execute();
  await store.close();
  expect(rows.map(({ agent_id }) => agent_id)).toEqual(expect.arrayContaining([...acknowledged]));
};

let isMounted = false;
/** Requires root, as in CI. */
const mount = (): boolean => {
  try {
    execFileSync("mount", ["-t", "tmpfs", "-o", "size=8m", "none", data], { stdio: "ignore" });
    isMounted = true;
  } catch {
    isMounted = false;
  }
  return isMounted;
};

test("a full disk is reported, makes the relay not ready, and nothing acknowledged is lost", async (context) => {
  if (!mount()) context.skip("a small disk cannot be mounted here");
  await start();
  const acknowledged = await addAgents(20);
  expect(acknowledged).toHaveLength(20);
  try {
    writeFileSync(join(data, "ballast"), Buffer.alloc(8 * 2 ** 20));
  } catch (error) {
    expect(error).toMatchObject({ code: "ENOSPC" });
  }
  await vi.waitUntil(async () => {
    acknowledged.push(...(await addAgents(10)));
    return !(await isReady());
  }, 120_000);
  // The relay does not wait for its log.
  await vi.waitUntil(() => log.includes("SQLITE_FULL"), 120_000);
  expect(log).not.toContain("cannot rollback");
  expect(await isReady()).toBe(false);
  expect((await fetch(`${url}/health/live`)).ok).toBe(true);
  expect((await api("GET", "/agents?limit=1")).status).toBe(200);
  rmSync(join(data, "ballast"));
  await vi.waitUntil(isReady, 120_000);
  acknowledged.push(...(await addAgents(5)));
  await expectKept(acknowledged);
});

/** Logs for as long as it lives. */
const LOGGING = `
const { createLog } = await import(process.argv[1]);
const log = createLog("info");
setInterval(() => log.info("x".repeat(500)), 5);
`;

// log4js-node/log4js-node#1424, stellar/stellar-core#2288
test("a log whose disk was full goes on when there is room again", async (context) => {
  if (!mount()) context.skip("a small disk cannot be mounted here");
  const path = join(data, "log");
  const file = openSync(path, "a");
  const args = ["--input-type=module", "--eval", LOGGING, join(import.meta.dirname, "log.ts")];
  child = spawn(process.execPath, args, { stdio: ["ignore", "ignore", file] });
  closeSync(file);
  await vi.waitUntil(() => statSync(path).size > 0, 120_000);
  try {
    writeFileSync(join(data, "ballast"), Buffer.alloc(8 * 2 ** 20));
  } catch (error) {
    expect(error).toMatchObject({ code: "ENOSPC" });
  }
  let size = 0;
  const isStill = () => {
    const before = size;
    size = statSync(path).size;
    return size === before;
  };
  await vi.waitUntil(isStill, { interval: 1000, timeout: 120_000 });
  rmSync(join(data, "ballast"));
  await vi.waitUntil(() => statSync(path).size > size + 10_000, 30_000);
});

/** Below the store: fails, delays or holds the syncs and writes of its files, as `fault` says. */
const SHIM = `
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The first letter of the file; 'd' is for the database without its log only. */
static char fault(int fd) {
  char link[64], path[4096], mode = 0;
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  ssize_t length = readlink(link, path, sizeof path - 1);
  if (length < 0) return 0;
  path[length] = 0;
  if (strstr(path, "relay.sqlite") == NULL) return 0;
  int file = open(getenv("TEST_FAULT"), O_RDONLY);
  if (file < 0) return 0;
  if (read(file, &mode, 1) != 1) mode = 0;
  close(file);
  if (mode == 'd') return strcmp(path + length - strlen("relay.sqlite"), "relay.sqlite") ? 0 : 'h';
  return mode;
}
static int sync_as(const char *name, int fd) {
  int (*real)(int) = dlsym(RTLD_NEXT, name);
  char mode = fault(fd);
  if (mode == 'e') { errno = EIO; return -1; }
  if (mode == 's') usleep(100000);
  if (mode == 'h') {
    char held[4096];
    snprintf(held, sizeof held, "%s.held", getenv("TEST_FAULT"));
    close(open(held, O_CREAT | O_WRONLY, 0600));
    while (fault(fd) == 'h') usleep(1000);
  }
  return real(fd);
}
int fsync(int fd) { return sync_as("fsync", fd); }
int fdatasync(int fd) { return sync_as("fdatasync", fd); }
ssize_t pwrite64(int fd, const void *bytes, size_t count, off64_t at) {
  ssize_t (*real)(int, const void *, size_t, off64_t) = dlsym(RTLD_NEXT, "pwrite64");
  if (fault(fd) == 'w') { errno = EIO; return -1; }
  return real(fd, bytes, count, at);
}
`;

type Disk = (
  mode: "well" | "eio on sync" | "write error" | "slow" | "held" | "database held",
) => void;

/** A relay whose disk can be changed, or null where the shim cannot be built. */
const startOnShim = async (): Promise<Disk | null> => {
  const library = join(folder, "fault.so");
  writeFileSync(join(folder, "fault.c"), SHIM);
  try {
    const args = ["-shared", "-fPIC", "-o", library, join(folder, "fault.c"), "-ldl"];
    execFileSync("cc", args, { stdio: "ignore" });
  } catch {
    return null;
  }
  const fault = join(folder, "fault");
  const disk: Disk = (mode) => writeFileSync(fault, mode === "well" ? "" : mode);
  disk("well");
  await start({ LD_PRELOAD: library, TEST_FAULT: fault });
  return disk;
};

test.for([
  ["a change is flushed", "held", 1],
  ["256 changes are moved from the log to the database", "database held", 256],
] as const)("while %s only changes wait", async ([, mode, count], context) => {
  const disk = await startOnShim();
  if (disk === null) return context.skip("there is no C compiler here");
  disk(mode);
  let areAcknowledged = false;
  const adding = (async () => {
    for (let i = 0; i < count; i++) expect(await addAgents(1)).toHaveLength(1);
    areAcknowledged = true;
  })();
  await vi.waitUntil(() => existsSync(join(folder, "fault.held")), 120_000);
  for (let i = 0; i < 5; i++) {
    expect(await isReady()).toBe(true);
    expect((await api("GET", "/agents?limit=1")).status).toBe(200);
  }
  expect(areAcknowledged).toBe(false);
  disk("well");
  await adding;
});

test("a disk that fails or is slow is named, waited for, and loses nothing acknowledged", async (context) => {
  const disk = await startOnShim();
  if (disk === null) return context.skip("there is no C compiler here");
  const acknowledged = await addAgents(5);
  for (const broken of ["eio on sync", "write error"] as const) {
    disk(broken);
    expect(await addAgents(5)).toEqual([]);
    expect(await isReady()).toBe(false);
    expect((await fetch(`${url}/health/live`)).ok).toBe(true);
    disk("well");
    await vi.waitUntil(isReady, 120_000);
    acknowledged.push(...(await addAgents(5)));
  }
  expect(log).toContain("EIO: i/o error, fdatasync");
  expect(log).not.toContain("cannot rollback");
  disk("slow");
  const slow = await addAgents(20);
  expect(slow).toHaveLength(20);
  expect(await isReady()).toBe(true);
  await expectKept([...acknowledged, ...slow]);
  expect(acknowledged).toHaveLength(15);
});
