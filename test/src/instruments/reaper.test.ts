/** What tests start ends with them, however they end. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, readFileSync } from "node:fs";
import { createInterface } from "node:readline";
import { expect, test } from "vitest";
import { RUN } from "./child-environment.ts";

const module = (name: string) => JSON.stringify(new URL(name, import.meta.url).href);

/** Stands for vitest: starts the reaper, and processes as a test does; prints their ids. */
const RUNNER = `
  import { spawn } from "node:child_process";
  import { watchChildProcesses } from ${module("child-processes.ts")};
  const tearDown = (await import(${module("reaper.ts")})).default();
  watchChildProcesses();
  const start = (command, args, more) =>
    spawn(command, args, { stdio: "ignore", env: { PATH: process.env.PATH }, ...more }).pid;
  console.log([
    start("sleep", ["1000"]),
    start("sh", ["-c", "sleep 1001; true"], { detached: true }),
    start(process.execPath, ["-e", "process.on('SIGTERM', () => 0); setInterval(() => 0, 1000)"]),
    process.env.${RUN},
  ].join(" "));
  process.stdin.on("end", () => tearDown().then(() => process.exit())).resume();
`;

/** A zombie, whose parent has not yet read its exit status, counts as ended. */
const isThere = (pid: number): boolean => {
  try {
    return !/^[^)]*\) Z/.test(readFileSync(`/proc/${pid}/stat`, "latin1"));
  } catch {
    return false;
  }
};

test.skipIf(process.platform !== "linux").each(["SIGKILL", "SIGTERM", "end"] as const)(
  "%s of a run ends every process it started, and removes its folder",
  async (how) => {
    const runner = spawn(process.execPath, ["--input-type=module", "-e", RUNNER], {
      stdio: ["pipe", "pipe", "inherit"],
    });
    const [line] = await once(createInterface(runner.stdout), "line");
    const [folder = "", ...ids] = (line as string).split(" ").reverse();
    const pids = ids.map(Number);
    expect([existsSync(folder), ...pids.map(isThere)]).toEqual([true, true, true, true]);
    if (how === "end") runner.stdin.end();
    else runner.kill(how);
    await once(runner, "exit");
    while (existsSync(folder) || pids.some(isThere))
      await new Promise((resolve) => setTimeout(resolve, 20));
  },
);
