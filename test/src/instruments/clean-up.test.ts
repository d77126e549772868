/** Programs that are run by hand leave nothing behind, however they end. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { expect, test } from "vitest";
import { RUN } from "./child-environment.ts";

const module = (name: string) => JSON.stringify(new URL(name, import.meta.url).href);

const run = async (script: string) => {
  const runner = spawn(process.execPath, ["--input-type=module", "-e", script], {
    stdio: ["ignore", "pipe", "ignore"],
  });
  const [line] = await once(createInterface(runner.stdout), "line");
  const ended = once(runner, "exit");
  return { runner, pid: Number(line), ended };
};

const isThere = (pid: number): boolean => {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
};
const gone = async (pid: number): Promise<void> => {
  while (isThere(pid)) await new Promise((resolve) => setTimeout(resolve, 20));
};

test
  .skipIf(process.platform !== "linux")
  .each(["SIGINT", "SIGTERM", "a fault", "SIGKILL"] as const)(
  "%s of a program with a database stops that too, and removes its folder if it can",
  async (how) => {
    const folder = mkdtempSync(join(tmpdir(), "blindrelay-clean-up-"));
    // Like PostgreSQL: not in this process's group, and not stopped with it; and an undo that
    // fails.
    const { runner, pid, ended } = await run(`
      import { spawn } from "node:child_process";
      import { cleanUp } from ${module("clean-up.ts")};
      const { undo } = cleanUp(${JSON.stringify(folder)});
      undo.push(() => { throw new Error("it is stopped already"); });
      const database = spawn("sleep", ["1000"], { detached: true, stdio: "ignore", env: {} });
      console.log(database.pid);
      if (${how === "a fault"}) throw new Error("on purpose");
    `);
    if (how !== "a fault") runner.kill(how);
    const codes = { SIGINT: 130, SIGTERM: 143, "a fault": 1, SIGKILL: null };
    expect((await ended)[0]).toBe(codes[how]);
    await gone(pid);
    expect(existsSync(folder)).toBe(how === "SIGKILL");
    rmSync(folder, { recursive: true, force: true });
  },
);

test.skipIf(process.platform !== "linux").each(["SIGINT", "a fault", "SIGKILL"] as const)(
  "%s of a program with a relay stops that too",
  async (how) => {
    const { runner, pid, ended } = await run(`
      import { endWithRelays, startRelayProcess } from ${module("../overload/relay-process.ts")};
      endWithRelays();
      delete process.env.${RUN}; // the tests' own end would hide what is left
      const relay = await startRelayProcess();
      console.log(relay.child.pid);
      if (${how === "a fault"}) throw new Error("on purpose");
    `);
    if (how !== "a fault") runner.kill(how);
    await ended;
    await gone(pid);
  },
);
