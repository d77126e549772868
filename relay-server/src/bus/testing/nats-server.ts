/** For tests: a private NATS server that can be stopped and started. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { answers, freePort } from "./free-port.ts";

const folders = `${process.env.PATH}:/usr/sbin:/usr/local/sbin`;

/** Whether `nats-server` is missing. */
export const noNatsServer = !folders
  .split(":")
  .some((folder) => existsSync(join(folder, "nats-server")));

interface NatsServer {
  readonly url: string;
  readonly pid: () => number;
  /** `flags`: replace the original ones. */
  start(flags?: readonly string[]): Promise<void>;
  /** By SIGKILL, without notice. */
  stop(): Promise<void>;
}

/** `args`: additional flags of nats-server. */
export const ownNatsServer = async (args: readonly string[] = []): Promise<NatsServer> => {
  const port = await freePort();
  let child: ChildProcess | null = null;
  const start = async (flags = args) => {
    const all = ["-a", "127.0.0.1", "-p", String(port), ...flags];
    child = spawn("nats-server", all, { stdio: "ignore", env: { ...process.env, PATH: folders } });
    while (!(await answers(port))) {
      if (child.exitCode !== null) throw new Error("nats-server did not start");
      await sleep(20);
    }
  };
  const stop = async () => {
    if (child === null || child.exitCode !== null || child.signalCode !== null) return;
    const ended = once(child, "exit");
    child.kill("SIGKILL");
    await ended;
  };
  await start();
  return { url: `nats://127.0.0.1:${port}`, pid: () => child?.pid as number, start, stop };
};
