/**
 * One lock per state folder, so that two processes never use one boot count.
 *
 * A lock is a Unix socket `lock.<random>` in the folder on which its owner listens. To find out
 * whether the owner is alive, we ask the kernel by connecting: a crash, SIGKILL or power cut ends
 * the answer at once, a reused pid or another container's pid namespace cannot fake it, and a
 * process that is merely busy still counts as alive, because the kernel completes the connection.
 *
 * Taking it is "announce, then look": bind and listen under a unique name, then look at all others.
 * Of two that start together at least one sees the other; a process that sees a live lock releases
 * its own and retries a little later, so that one of them remains. Stale ones are removed first.
 * Finally, its own name must still exist: another process may have removed it between bind and
 * listen.
 *
 * Not for folders shared by several machines (NFS): a socket of another kernel looks dead.
 *
 * On Windows the lock is a named pipe, of which the kernel grants one: see `lockName`.
 */
import { randomBytes, randomInt } from "node:crypto";
import { closeSync, existsSync, openSync, readdirSync, rmSync, statSync } from "node:fs";
import { createConnection, createServer, type Server } from "node:net";
import { dirname, join, relative } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { giveToOwner } from "@blindrelay/protocol/file-owner";
import { IS_WINDOWS, pipeOf } from "@blindrelay/protocol/platform";
import { StateError } from "./errors.ts";

const PREFIX = "lock.";
const TRIES = 6;
/** sun_path is 104 bytes on macOS and 108 on Linux, including a final zero. */
const MAX_SOCKET_PATH = 103;

export interface StateLock {
  /** Releases the lock; harmless when repeated. */
  release(): Promise<void>;
}

/**
 * A path of the folder that is short enough for a socket: a relative one, or on Linux one through
 * an open handle.
 */
const withShortPath = async <T>(folder: string, fn: (folder: string) => Promise<T>): Promise<T> => {
  const nameLength = PREFIX.length + 13;
  for (const path of [folder, relative(process.cwd(), folder) || "."]) {
    if (Buffer.byteLength(path) + nameLength <= MAX_SOCKET_PATH) return fn(path);
  }
  const handle = openSync(folder, "r");
  try {
    const path = `/proc/self/fd/${handle}`;
    if (!existsSync(path)) {
      throw new StateError("medium", `the path of the state folder is too long: ${folder}`);
    }
    return await fn(path);
  } finally {
    closeSync(handle);
  }
};

const listen = (path: string): Promise<Server> =>
  new Promise((resolve, reject) => {
    const server = createServer((socket) => socket.destroy());
    server.once("error", reject);
    server.listen(path, () => {
      // The lock must not keep an otherwise idle process running.
      server.unref();
      giveToOwner(path, dirname(path));
      resolve(server);
    });
  });

/** Whether a process listens. Only a definite "no" counts as stale. */
const isAlive = (path: string): Promise<boolean> =>
  new Promise((resolve) => {
    const socket = createConnection(path);
    socket.once("connect", () => {
      socket.destroy();
      resolve(true);
    });
    socket.once("error", (error: NodeJS.ErrnoException) => {
      resolve(error.code !== "ECONNREFUSED" && error.code !== "ENOENT");
    });
  });

const close = (server: Server): Promise<void> =>
  new Promise((resolve) => {
    server.close(() => resolve());
  });

/** One attempt: the lock, or null if another process holds it. */
const tryLock = async (folder: string): Promise<StateLock | null> => {
  const name = PREFIX + randomBytes(6).toString("hex");
  return withShortPath(folder, async (short) => {
    const server = await listen(join(short, name));
    // Node removes a socket's file on close by the path it was bound to, which may no longer be
    // valid.
    const release = async (): Promise<void> => {
      rmSync(join(folder, name), { force: true });
      await close(server);
    };
    let othersLive = false;
    for (const other of readdirSync(folder)) {
      if (!other.startsWith(PREFIX) || other === name) continue;
      if (!statSync(join(folder, other), { throwIfNoEntry: false })?.isSocket()) continue;
      if (await isAlive(join(short, other))) othersLive = true;
      else rmSync(join(folder, other), { force: true });
    }
    if (othersLive || !existsSync(join(folder, name))) {
      await release();
      return null;
    }
    return { release };
  });
};

/** What is listened on already answers so; the second on Windows, for another user's. */
const TAKEN = ["EADDRINUSE", "EACCES"];

/**
 * One attempt where sockets have names outside of folders, which end with their process: the first
 * one that listens has the lock. Null if another process holds it.
 */
export const lockName = async (name: string): Promise<StateLock | null> => {
  try {
    const server = await listen(name);
    return { release: () => close(server) };
  } catch (error) {
    if (TAKEN.includes((error as NodeJS.ErrnoException).code ?? "")) return null;
    throw error;
  }
};

/**
 * Takes the lock of an existing folder until `release` or the end of the process. Throws a
 * StateError: `locked` if another process (or another agent of this one) has it, `medium` if the
 * file system has no sockets.
 */
export const lockState = async (folder: string): Promise<StateLock> => {
  for (let attempt = 0; attempt < TRIES; attempt++) {
    if (attempt > 0) await sleep(randomInt(20, 120));
    let lock: StateLock | null;
    try {
      lock = await (IS_WINDOWS ? lockName(pipeOf(folder)) : tryLock(folder));
    } catch (error) {
      if (error instanceof StateError) throw error;
      throw new StateError("medium", `the state folder cannot be locked: ${folder}`, error);
    }
    if (lock !== null) return lock;
  }
  throw new StateError("locked", `another agent runs on this state folder: ${folder}`);
};
