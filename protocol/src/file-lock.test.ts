/** Processes that change one file concurrently, and one that dies while doing so. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, it } from "vitest";
import { withLock } from "./file-lock.ts";

const folder = mkdtempSync(join(tmpdir(), "blindrelay-lock-"));
const running: ChildProcess[] = [];
afterAll(() => {
  for (const child of running) child.kill("SIGKILL");
  rmSync(folder, { recursive: true, force: true });
});

/** Runs lines of code that have `withLock` and the file's path, in its own process. */
const start = (path: string, code: string): ChildProcess => {
  const head = `
    import { readFileSync, writeFileSync } from "node:fs";
    import { withLock } from ${JSON.stringify(new URL("./file-lock.ts", import.meta.url).href)};
    const path = ${JSON.stringify(path)};
    const pause = (ms) => Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms);`;
  const child = spawn(process.execPath, ["--input-type=module", "-e", head + code], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  running.push(child);
  return child;
};

const PROCESSES = 6;
const INCREMENTS = 20;

it("loses no change of several processes, even if one is killed during its change", async () => {
  const path = join(folder, "count");
  writeFileSync(path, "0");
  const holder = start(path, `withLock(path, () => { console.log("held"); pause(60_000); });`);
  await once(holder.stdout as NodeJS.ReadableStream, "data");
  const increment = `
    console.log("waiting");
    for (let i = 0; i < ${INCREMENTS}; i++)
      withLock(path, () => {
        const count = Number(readFileSync(path, "utf8"));
        pause(1);
        writeFileSync(path, String(count + 1));
      }, 60_000);`;
  const changers = Array.from({ length: PROCESSES }, () => start(path, increment));
  const ended = Promise.all(changers.map((child) => once(child, "exit")));
  await Promise.all(changers.map((child) => once(child.stdout as NodeJS.ReadableStream, "data")));
  expect(readFileSync(path, "utf8")).toBe("0");
  holder.kill("SIGKILL");
  expect((await ended).map(([code]) => code)).toEqual(changers.map(() => 0));
  expect(readFileSync(path, "utf8")).toBe(String(PROCESSES * INCREMENTS));
});

it("gives up with a reason if another process does not finish", async () => {
  const path = join(folder, "stuck");
  const holder = start(path, `withLock(path, () => { console.log("held"); pause(60_000); });`);
  await once(holder.stdout as NodeJS.ReadableStream, "data");
  expect(() => withLock(path, () => expect.unreachable(), 1)).toThrow(/end that one/);
  holder.kill("SIGKILL");
});
