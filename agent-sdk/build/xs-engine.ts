/**
 * The real XS engine, from the C sources in the npm package @agoric/xsnap: built once with the
 * package's own script into node_modules/.cache, and reused afterwards. Where it cannot be built,
 * tests that need it report why.
 *
 * As a program: builds it and prints its path.
 */
import { spawnSync } from "node:child_process";
import { cpSync, existsSync, mkdirSync, readFileSync, renameSync, rmSync, statSync } from "node:fs";
import { createRequire } from "node:module";
import { join, resolve } from "node:path";
import { setTimeout as wait } from "node:timers/promises";
import type { XsEngine } from "../src/engines/built.ts";

/**
 * The script takes 30 s for each of its two targets on a busy machine; a lock this old belongs to a
 * dead process.
 */
const STALE_LOCK_MS = 600_000;
const POLL_MS = 500;
const PLATFORMS: { readonly [platform: string]: string } = { linux: "lin", darwin: "mac" };

const root = resolve(import.meta.dirname, "../..");

const works = (command: string): boolean =>
  spawnSync(command, ["--version"], { stdio: "ignore" }).status === 0;

const isStale = (lock: string): boolean => {
  try {
    return Date.now() - statSync(lock).mtimeMs > STALE_LOCK_MS;
  } catch {
    return false; // The holder has just released it.
  }
};

/** Runs the package's script in a copy, because pnpm's store must not change. */
const build = (source: string, folder: string, binary: string): XsEngine => {
  const work = `${folder}.${process.pid}`;
  rmSync(work, { recursive: true, force: true });
  cpSync(source, work, {
    recursive: true,
    filter: (path) => path !== join(source, "node_modules"),
  });
  const { status, stderr } = spawnSync("npm", ["run", "--silent", "build:from-env"], {
    cwd: work,
    encoding: "utf8",
    stdio: ["ignore", "ignore", "pipe"],
  });
  if (status !== 0 || !existsSync(join(work, binary))) {
    rmSync(work, { recursive: true, force: true });
    return { kind: "missing", reason: `XS does not build here: ${stderr.trim().slice(-500)}` };
  }
  rmSync(folder, { recursive: true, force: true });
  renameSync(work, folder);
  return { kind: "found", path: join(folder, binary) };
};

/** Finds the engine, or builds it, which takes a minute. Waits if another process builds it. */
export const findXsEngine = async (): Promise<XsEngine> => {
  const platform = PLATFORMS[process.platform];
  if (platform === undefined) {
    return { kind: "missing", reason: `@agoric/xsnap does not build on ${process.platform}` };
  }
  const source = resolve(
    createRequire(import.meta.url).resolve("@agoric/xsnap/package.json"),
    "..",
  );
  const { version } = JSON.parse(readFileSync(join(source, "package.json"), "utf8"));
  const cache = join(root, "node_modules/.cache/blindrelay");
  const folder = join(cache, `xsnap-${version}-${process.platform}-${process.arch}`);
  const binary = `xsnap-native/xsnap/build/bin/${platform}/release/xsnap-worker`;
  const found: XsEngine = { kind: "found", path: join(folder, binary) };
  if (existsSync(found.path)) return found;
  for (const command of ["cc", "make"]) {
    if (!works(command))
      return { kind: "missing", reason: `there is no ${command} to build XS with` };
  }
  mkdirSync(cache, { recursive: true });
  const lock = `${folder}.lock`;
  while (!existsSync(found.path)) {
    try {
      mkdirSync(lock);
    } catch {
      if (isStale(lock)) rmSync(lock, { recursive: true, force: true });
      await wait(POLL_MS);
      continue;
    }
    try {
      return existsSync(found.path) ? found : build(source, folder, binary);
    } finally {
      rmSync(lock, { recursive: true, force: true });
    }
  }
  return found;
};

if (import.meta.main) {
  const engine = await findXsEngine();
  if (engine.kind === "found") console.log(engine.path);
  else console.error(engine.reason);
  process.exitCode = engine.kind === "found" ? 0 : 1;
}
