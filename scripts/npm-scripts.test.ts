/**
 * The npm scripts use only what Windows' shell has too: programs, words, double quotes, `&&`, and
 * the batch file that setup.mjs makes for `exec`. That shell is imitated here; on Windows nobody
 * has tried them.
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { globSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { text } from "node:stream/consumers";
import { afterAll, beforeAll, describe, expect, it } from "vitest";

const ROOT = resolve(import.meta.dirname, "..");
/** Node, npm, and what dependencies put on the PATH, as batch files too. */
const PROGRAMS = ["node", "npm", "tsc", "biome", "vitest"];

const manifests = globSync(["package.json", "*/package.json"], { cwd: ROOT });

const scripts = manifests.flatMap((path) => {
  const { scripts = {} } = JSON.parse(readFileSync(join(ROOT, path), "utf8"));
  return Object.entries<string>(scripts).map(([name, line]) => [`${path} ${name}`, line] as const);
});

it.each(scripts)("%s is words of programs", (_name, line) => {
  const bare = line.replaceAll(/"[^"]*"/g, "quoted");
  expect(bare).not.toMatch(/['$;|`\\<>*~]/);
  for (const command of bare.split(" && ")) {
    const [program] = command.replace(/^exec (?=node )/, "").split(" ");
    expect(PROGRAMS).toContain(program);
  }
});

/**
 * As npm calls a shell, `SHELL -c LINE`. It has no words of its own, and runs programs and batch
 * files that run their words.
 */
const SHELL = `#!/usr/bin/env node
const { spawnSync } = require("node:child_process");
const { existsSync, readFileSync } = require("node:fs");
const batchOf = (word) =>
  process.env.PATH.split(":").map((folder) => folder + "/" + word + ".cmd").find(existsSync);
const run = ([program, ...words]) => {
  const batch = batchOf(program);
  if (batch && readFileSync(batch, "utf8") === "@%*\\r\\n") return run(words);
  const { status, error } = spawnSync(program, words, { stdio: "inherit" });
  if (error) process.stderr.write("'" + program + "' is not recognized as a command\\n");
  return status ?? 9009;
};
for (const command of process.argv[3].split(" && ")) {
  const code = run(command.match(/"[^"]*"|\\S+/g).map((word) => word.replaceAll('"', "")));
  if (code !== 0) process.exit(code);
}
`;

describe("in a shell without words of its own", () => {
  const folder = mkdtempSync(join(tmpdir(), "blindrelay-shell-"));
  const shell = join(folder, "shell.cjs");
  beforeAll(() => writeFileSync(shell, SHELL, { mode: 0o755 }));
  afterAll(() => rmSync(folder, { recursive: true, force: true }));

  const npmRun = async (name: string, ...args: string[]) => {
    const env = { ...process.env, npm_config_script_shell: shell };
    const child = spawn("npm", ["run", "--silent", name, "--", ...args], { cwd: ROOT, env });
    const ended = once(child, "close");
    const [stdout, stderr] = await Promise.all([text(child.stdout), text(child.stderr)]);
    const [code] = await ended;
    return { code, stdout, stderr };
  };

  it("npm run cli, relay and sim, and npm start work", async () => {
    const names = ["cli", "relay", "sim"];
    const [help, ...versions] = await Promise.all([
      npmRun("start", "--help"),
      ...names.map((name) => npmRun(name, "--version")),
    ]);
    const stdout = expect.stringMatching(/^\d+\.\d+\.\d+\n$/);
    expect(versions).toEqual(names.map(() => ({ code: 0, stdout, stderr: "" })));
    expect(help).toMatchObject({ code: 0, stdout: expect.stringContaining("npm start") });
  });
});
