import { spawn } from "node:child_process";
import { mkdtemp, readdir, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { fileURLToPath } from "node:url";
import { expect, onTestFinished, test } from "vitest";
import { SECTION_IDS } from "./sections.ts";

const ENGINE_BUILD_MS = 600_000;
const MAIN = fileURLToPath(new URL("./main.ts", import.meta.url));

interface Ended {
  code: number | null;
  out: string;
  error: string;
}

function start(args: string[], more: NodeJS.ProcessEnv = {}) {
  const { ESPRUINO_BIN: _, ESPRUINO_BIN_2630: __, ESPRUINO_BIN_32: ___, ...env } = process.env;
  const child = spawn(process.execPath, [MAIN, ...args], {
    env: { ...env, ...more },
    stdio: ["ignore", "pipe", "pipe"],
  });
  const closed = new Promise<number | null>((resolve) => child.once("close", resolve));
  const streams = Promise.all([text(child.stdout), text(child.stderr)]);
  const ended = async (): Promise<Ended> => {
    const [out, error] = await streams;
    return { code: await closed, out, error };
  };
  return { child, ended };
}

const run = (...args: string[]): Promise<Ended> => start(args).ended();

async function ownFolder(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), "bench-test-"));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  return folder;
}

test("a quick run measures every section with every contender, and is reported as void", async () => {
  const folder = await ownFolder();
  const [json, html] = [join(folder, "bench.json"), join(folder, "bench.html")];
  const { ended } = start(["--quick", "--json", json, "--html", html], { TMPDIR: folder });
  const { code, out, error } = await ended();
  const { ok, sections } = JSON.parse(await readFile(json, "utf8").catch(() => error));
  expect({ code, ok }, error).toEqual({ code: 0, ok: true });
  expect(new Set(sections.map(({ id }: { id: string }) => id))).toEqual(new Set(SECTION_IDS));
  for (const section of sections) {
    expect(section.voids[0]).toContain("too short");
    expect(section.bars.length, section.voids.join()).toBeGreaterThan(0);
    // The memory of sixty more connections may fit into pages that are already resident.
    if (section.id === "memory") continue;
    for (const { value } of section.bars) expect(value).toBeGreaterThan(0);
  }
  expect(out).toContain("VOID");
  const page = await readFile(html, "utf8");
  expect(page).toContain("<svg");
  expect(page).not.toMatch(/<script|src=|href=/);
  // Its stores and settings are gone.
  expect(await leftIn(folder)).toEqual(["bench.html", "bench.json"]);
});

test("an interrupted run stops everything that it started", async () => {
  const folder = await ownFolder();
  const { child, ended } = start(["--only", "c1", "--cycles", "100000"], { TMPDIR: folder });
  await new Promise<void>((resolve) => {
    let said = "";
    child.stderr.on("data", (chunk) => {
      said += chunk;
      if (said.includes("c1 ...")) resolve();
    });
  });
  const children = await childrenOf(child.pid as number);
  expect(children.length).toBeGreaterThanOrEqual(4);
  child.kill("SIGINT");
  expect((await ended()).code).toBe(130);
  expect(await leftIn(folder)).toEqual([]);
  const alive = children.filter((pid) => {
    try {
      return process.kill(pid, 0);
    } catch {
      return false;
    }
  });
  expect(alive).toEqual([]);
});

/** Node's own cache of compiled modules is not ours. */
async function leftIn(folder: string): Promise<string[]> {
  return (await readdir(folder)).filter((name) => name !== "node-compile-cache").sort();
}

async function childrenOf(pid: number): Promise<number[]> {
  const list = await readFile(`/proc/${pid}/task/${pid}/children`, "latin1");
  return list.trim().split(" ").map(Number);
}

test(
  "the sizes are measured without any Espruino, and skipped ones are reported",
  async () => {
    const { code, out } = await run("--sizes", "--json", "-");
    const { ok, figures, skipped } = JSON.parse(out);
    // The limits have their own tests, and times depend on the machine.
    expect(code).toBe(ok ? 0 : 1);
    expect(figures.map((figure: { name: string }) => figure.name).join()).toMatch(
      /Espruino file.*over a UART/,
    );
    const fixes = skipped.map(({ fix }: { fix: string }) => fix).join();
    expect(fixes).toMatch(/ESPRUINO_BIN_2630.*ESPRUINO_BIN_32.*ESPRUINO_BIN /);
  },
  ENGINE_BUILD_MS,
);

test("help has examples", async () => {
  const { code, out } = await run("--help");
  expect({ code, out }).toEqual({ code: 0, out: expect.stringContaining("Examples:") });
});

test.each([
  ["--cycles", "none"],
  ["--sizes", "--cycles", "3"],
  ["--only", "c1,c2"],
  ["--size"],
  ["sizes"],
])("wrong flags are refused: %s %s %s", async (...args) => {
  expect(await run(...args.filter((arg) => arg !== undefined))).toMatchObject({ code: 2, out: "" });
});
