/** Every process that a test starts is watched, however it is started. */
import { exec, execFile, execFileSync, execSync, fork, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { makeToken } from "@blindrelay/protocol";
import { afterAll, expect, test } from "vitest";
import { childEnvironment, RECORDS } from "./child-environment.ts";
import { takeLeaks } from "./secrets/judge.ts";

const node = process.execPath;
const records = process.env[RECORDS] as string;
const folder = mkdtempSync(join(tmpdir(), "blindrelay-children-"));
afterAll(() => rmSync(folder, { recursive: true }));

/** A program that prints a secret to standard error. */
const secret = makeToken("agent", crypto.getRandomValues(new Uint8Array(32)));
const program = join(folder, "leak.mjs");
writeFileSync(program, `process.stderr.write("PLANTED ${secret}");`);
const line = `"${node}" "${program}"`;

const options = (env: NodeJS.ProcessEnv) => ({ env, stdio: "ignore" as const });
const ended = (child: ReturnType<typeof spawn>) => once(child, "exit");

const WAYS: [string, (env: NodeJS.ProcessEnv) => unknown][] = [
  ["spawn", (env) => ended(spawn(node, [program], options(env)))],
  ["spawn through a shell", (env) => ended(spawn(line, { ...options(env), shell: true }))],
  ["spawnSync", (env) => spawnSync(node, [program], options(env))],
  ["exec", (env) => ended(exec(line, { env }))],
  ["execSync", (env) => execSync(line, options(env))],
  ["execFile", (env) => ended(execFile(node, [program], { env }, () => undefined))],
  ["execFileSync", (env) => execFileSync(node, [program], options(env))],
  ["fork", (env) => ended(fork(program, { env, silent: true }))],
  [
    "a process that spawns another",
    (env) => {
      const code = `import { spawnSync } from "node:child_process";
        spawnSync(process.execPath, [${JSON.stringify(program)}], { env: {} });`;
      return ended(spawn(node, ["--input-type=module", "-e", code], options(env)));
    },
  ],
];

test.each(WAYS)("%s: a leak is found, whatever the environment", async (_way, start) => {
  await start({ PATH: process.env.PATH, NODE_OPTIONS: "--no-warnings" });
  expect(takeLeaks(records)).toEqual([expect.stringContaining("in: PLANTED <the secret>")]);
  for (const name of readdirSync(records)) rmSync(join(records, name)); // it was planted
});

test("a given environment is kept, and its own settings win", () => {
  const own = { NODE_COMPILE_CACHE: "/cache", [RECORDS]: "/records", SECRET: "not handed on" };
  const made = childEnvironment({ PATH: "/bin", NODE_OPTIONS: "--no-warnings" }, own);
  const { NODE_OPTIONS, ...others } = made;
  expect(others).toEqual({ PATH: "/bin", NODE_COMPILE_CACHE: "/cache", [RECORDS]: "/records" });
  expect(NODE_OPTIONS).toMatch(/^--no-warnings --import=file:.*register\.mjs$/);
  expect(childEnvironment(made, own)).toEqual(made);
  const elsewhere = { NODE_COMPILE_CACHE: "/other", [RECORDS]: "/elsewhere" };
  expect(childEnvironment(elsewhere, own)).toMatchObject(elsewhere);
});
