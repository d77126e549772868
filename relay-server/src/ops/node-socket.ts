/**
 * How `rebalance` reaches the node that runs on a data folder: a Unix socket in the folder, on
 * Windows a named pipe, which only its maker may write to. Whoever may connect to it could read the
 * master key beside it. One line of JSON asks; each line of the answer is progress, the result or a
 * refusal.
 */
import { chmodSync, existsSync, rmSync } from "node:fs";
import { open } from "node:fs/promises";
import { createConnection, createServer, type Server, type Socket } from "node:net";
import { join, relative } from "node:path";
import { createInterface } from "node:readline";
import { Failure, messageOf } from "@blindrelay/protocol/command-line";
import { IS_WINDOWS, pipeOf } from "@blindrelay/protocol/platform";
import type { Logger } from "pino";
import { contained, detached } from "../base/contain.ts";

const NAME = "node.sock";
/** sun_path is 104 bytes on macOS and 108 on Linux, including a final zero. */
const MAX_SOCKET_PATH = 103;
const MAX_ASKERS = 4;
const MAX_QUESTION = 256;
/** A node sends a line each second. */
const SILENCE_MS = 10_000;

/** `moved`: links that have ended since. */
export interface Progress {
  readonly asked: number;
  readonly moved: number;
}
/** `links`: how many the node had. */
interface Rebalanced extends Progress {
  readonly links: number;
}
export type Rebalance = (
  percent: number,
  show: (progress: Progress) => void,
) => Promise<Rebalanced>;

type Answer =
  | { readonly progress: Progress }
  | { readonly done: Rebalanced }
  | { readonly refused: string };

const noNode = (data: string): string =>
  `no node of a cluster runs on ${data}: name the folder of one that was started with --bus, on this machine`;

const notAllowed = (data: string): string =>
  `the node on ${data} belongs to another user: run this as that user`;

/**
 * Answers `askNode` from now on. Without a socket, which is logged, the node runs all the same: its
 * folder may be read-only, or another node of this machine may use it too.
 */
export const listenForCommands = async (
  data: string,
  rebalance: Rebalance,
  log: Logger,
): Promise<{ close(): void } | null> => {
  const path = join(data, NAME);
  const serve = (socket: Socket) => answer(socket, rebalance);
  try {
    const server = await withAddress(data, async (address) => {
      if (await isAlive(address)) throw new Error("another node runs on this folder");
      rmSync(path, { force: true }); // left behind by a crash
      return listen(address, serve);
    });
    if (!IS_WINDOWS) chmodSync(path, 0o600);
    const close = () => {
      rmSync(path, { force: true });
      server.close();
    };
    return { close };
  } catch (error) {
    log.warn({ path, reason: messageOf(error) }, "no socket for commands: rebalance cannot ask");
    return null;
  }
};

/**
 * Calls `use` with the socket's path, which must be short: a relative one, or on Linux one through
 * an open handle of the folder.
 */
const withAddress = async <T>(data: string, use: (address: string) => Promise<T>): Promise<T> => {
  if (IS_WINDOWS) return use(pipeOf(data));
  for (const folder of [data, relative(process.cwd(), data) || "."]) {
    const path = join(folder, NAME);
    if (Buffer.byteLength(path) <= MAX_SOCKET_PATH) return use(path);
  }
  await using handle = await open(data).catch((error: unknown) => {
    throw new Failure("unreachable", noNode(data), error);
  });
  const folder = `/proc/self/fd/${handle.fd}`;
  if (existsSync(folder)) return await use(join(folder, NAME));
  throw new Failure("unreachable", `the path of the folder is too long: ${data}`);
};

const listen = (path: string, serve: (socket: Socket) => void): Promise<Server> =>
  new Promise((resolve, reject) => {
    const server = createServer(contained("request", "a command's socket failed", serve));
    server.maxConnections = MAX_ASKERS;
    server.on("error", reject);
    server.listen(path, () => resolve(server));
  });

/** Whether a process listens. */
const isAlive = (path: string): Promise<boolean> =>
  new Promise((resolve) => {
    const socket = createConnection(path);
    const found = (alive: boolean) => {
      socket.destroy();
      resolve(alive);
    };
    const what = "cannot tell whether a node uses the socket";
    for (const event of ["connect", "error"]) {
      socket.on(
        event,
        contained("request", what, () => found(event === "connect")),
      );
    }
  });

const answer = (socket: Socket, rebalance: Rebalance): void => {
  const end = () => socket.destroy();
  const tell = (words: Answer) => {
    if (socket.writable) socket.write(`${JSON.stringify(words)}\n`);
  };
  const act = async (percent: number) => {
    try {
      tell({ done: await rebalance(percent, (progress) => tell({ progress })) });
    } catch (error) {
      if (!(error instanceof Failure)) throw error;
      tell({ refused: error.message });
    }
    socket.end();
  };
  let question = "";
  const read = (chunk: Buffer) => {
    question += chunk.toString("latin1");
    if (!question.endsWith("\n") && question.length <= MAX_QUESTION) return;
    socket.removeAllListeners("data").resume();
    const percent = percentIn(question);
    if (percent === null) end();
    else detached("request", "a command failed", act(percent).catch(failed));
  };
  const failed = (error: unknown) => {
    end();
    throw error;
  };
  socket.setTimeout(SILENCE_MS);
  socket.on("timeout", contained("request", "a command's socket was not closed", end));
  socket.on("error", contained("request", "a command's socket was not closed", end));
  socket.on("data", contained("request", "a command was not read", read, end));
};

/** Null for anything else than a percentage. */
const percentIn = (question: string): number | null => {
  try {
    const { percent } = JSON.parse(question);
    return Number.isInteger(percent) && percent >= 1 && percent <= 100 ? percent : null;
  } catch {
    return null;
  }
};

/**
 * Asks the node that runs on a data folder to rebalance; resolves when that is over. Rejects with a
 * Failure that says what to do. If the asker ends, the node continues.
 */
export const askNode = (
  data: string,
  percent: number,
  show: (progress: Progress) => void,
): Promise<Rebalanced> => {
  const ask = (address: string) =>
    new Promise<Rebalanced>((resolve, reject) => {
      const socket = createConnection(address);
      const fail = (message: string) => {
        socket.destroy();
        reject(new Failure("unreachable", message));
      };
      const hear = (line: string) => {
        const said = parseAnswer(line);
        if (said === null) fail("the node gave an answer that this version does not understand");
        else if ("progress" in said) show(said.progress);
        else if ("done" in said) resolve(said.done);
        else reject(new Failure("refused", said.refused));
      };
      const broken = (error: NodeJS.ErrnoException) =>
        fail(error.code === "EACCES" ? notAllowed(data) : noNode(data));
      const silent = () => fail(`the node on ${data} does not answer: see its log`);
      const gone = () => fail(`the node on ${data} ended before it was done: see its log`);
      socket.setTimeout(SILENCE_MS);
      socket.on("timeout", contained("request", "a node's silence was not noticed", silent));
      socket.on("error", contained("request", "a node's socket failed", broken));
      socket.on("close", contained("request", "a node's end was not noticed", gone));
      const lines = createInterface(socket);
      lines.on("line", contained("request", "a node's answer was not read", hear));
      lines.on("error", contained("request", "a node's answer was not read", broken));
      socket.write(`${JSON.stringify({ percent })}\n`);
    });
  return withAddress(data, ask);
};

const parseAnswer = (line: string): Answer | null => {
  try {
    const said = JSON.parse(line);
    return "progress" in said || "done" in said || "refused" in said ? said : null;
  } catch {
    return null;
  }
};
