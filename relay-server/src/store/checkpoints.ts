/**
 * Moves what SQLite's write-ahead log has into the database's file, in a thread of its own: it
 * flushes the disk three times, and would stop all messages meanwhile. Class and thread are one
 * file, because a thread is started by a path, and the build changes the paths of imports only.
 */
import { DatabaseSync } from "node:sqlite";
import { isMainThread, parentPort, Worker, workerData } from "node:worker_threads";
import { contained } from "../base/contain.ts";

interface WorkerData {
  readonly checkpointsOf: string;
}

export class Checkpoints {
  readonly #path: string;
  #worker: Worker | null = null;
  #done: () => void = () => undefined;

  /** `path`: of the database. */
  constructor(path: string) {
    this.#path = path;
  }

  /**
   * One checkpoint. The log begins anew only if nothing is committed meanwhile. If it fails it
   * resolves all the same: the next commit or flush fails too, and has somebody to tell.
   */
  async run(): Promise<void> {
    this.#worker ??= this.#start();
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#done = resolve;
    this.#worker.ref();
    this.#worker.postMessage(null);
    await promise;
    this.#worker?.unref();
  }

  /** Before the database is closed: whoever closes it last removes the log. */
  async close(): Promise<void> {
    await this.#worker?.terminate();
  }

  #start(): Worker {
    const data: WorkerData = { checkpointsOf: this.#path };
    const worker = new Worker(import.meta.filename, { workerData: data, execArgv: [] });
    worker.on(
      "message",
      contained("store", "cannot end a checkpoint", () => this.#done()),
    );
    worker.on("error", () => undefined); // "exit" follows
    const onExit = () => {
      this.#worker = null;
      this.#done();
    };
    worker.on("exit", contained("store", "cannot end a checkpoint", onExit));
    return worker;
  }
}

const serve = (path: string): void => {
  const database = new DatabaseSync(path, { timeout: 1000 });
  parentPort?.on("message", () => {
    try {
      database.exec("pragma wal_checkpoint(passive)");
      // The first commit of a log that begins anew flushes its header: this one always writes.
      database.exec("pragma user_version = 0");
    } finally {
      parentPort?.postMessage(null);
    }
  });
};

const data: WorkerData | null = isMainThread ? null : workerData;
if (data?.checkpointsOf !== undefined) serve(data.checkpointsOf);
