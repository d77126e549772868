import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, matchesGlob, resolve } from "node:path";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { readWorkspace } from "./boundaries/check.ts";
import { buildGraph } from "./boundaries/graph.ts";
import {
  inputsOf,
  missingGuests,
  PROOFS,
  passedProofs,
  proofDigests,
  rememberProofs,
} from "./proofs.ts";

const ROOT = resolve(import.meta.dirname, "..");

test("what a proof loads is among its inputs", () => {
  const folders = "protocol agent-sdk client-sdk relay-server simulator tools test bench scripts";
  const { modules } = buildGraph(readWorkspace(ROOT, folders.split(" ")));
  for (const [name, { tests, inputs }] of Object.entries(PROOFS)) {
    const start = [...modules.keys()].filter(
      (path) => path.endsWith(".test.ts") && tests.some((glob) => matchesGlob(path, glob)),
    );
    expect(start, `${name} has no tests`).not.toEqual([]);
    if (inputs === undefined) continue;
    const loaded = new Set(start);
    for (const path of loaded) {
      for (const { target } of modules.get(path)?.edges ?? []) {
        if (target.kind === "file") loaded.add(target.path);
      }
    }
    const known = inputsOf(tests, inputs);
    const missing = [...loaded].filter(
      (path) => !known.some((input) => path === input || path.startsWith(`${input}/`)),
    );
    expect(missing, `${name} loads these: name them among its inputs in scripts/proofs.ts`).toEqual(
      [],
    );
  }
});

let root: string;
const write = (path: string, text: string): void => {
  mkdirSync(dirname(join(root, path)), { recursive: true });
  writeFileSync(join(root, path), text);
};
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), "blindrelay-proofs-"));
  execFileSync("git", ["init", "-q", root]);
  write(".gitignore", "node_modules\n");
  write("protocol/src/a.ts", "1");
  write("tools/src/b.ts", "1");
});
afterEach(() => rmSync(root, { recursive: true }));

test("a proof that has not passed yet runs", async () => {
  expect(passedProofs(root, await proofDigests(root))).toEqual([]);
});

test("all are skipped after a green run, even if ignored files have changed", async () => {
  rememberProofs(root, await proofDigests(root));
  expect(passedProofs(root, await proofDigests(root))).toEqual(Object.keys(PROOFS));
});

test.each([
  ["a changed file", () => write("tools/src/b.ts", "2")],
  ["a new file", () => write("tools/src/c.ts", "")],
  ["a removed file", () => rmSync(join(root, "tools/src/b.ts"))],
])("%s runs the proofs that depend on it, and no others", async (_what, change) => {
  rememberProofs(root, await proofDigests(root));
  change();
  const passed = passedProofs(root, await proofDigests(root));
  expect(passed).toContain("adversary");
  expect(passed).not.toContain("publish");
  write("protocol/src/a.ts", "2");
  expect(passedProofs(root, await proofDigests(root))).toEqual([]);
});

test("the test configuration and instruments are inputs of every proof", async () => {
  rememberProofs(root, await proofDigests(root));
  write("test/src/instruments/new.ts", "");
  expect(passedProofs(root, await proofDigests(root))).toEqual([]);
});

test("an engine that no variable names, and a program that is not installed, are missing", () => {
  vi.stubEnv("ESPRUINO_BIN_32", "");
  vi.stubEnv("ESPRUINO_BIN", "/somewhere/espruino");
  vi.stubEnv("PATH", "/nowhere");
  const missing = missingGuests();
  vi.unstubAllEnvs();
  expect(missing).toEqual(expect.arrayContaining(["ESPRUINO_BIN_32", "socat"]));
  expect(missing).not.toContain("ESPRUINO_BIN");
});
