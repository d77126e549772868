/**
 * The real XS engine, from the C sources in the npm package @agoric/xsnap: built once with the
 * package's own script into node_modules/.cache, and reused afterwards. Where it cannot be built,
 * tests that need it report why.
 *
 * As a program: builds it and prints its path.
 */
import { spawnSync } from "node:child_process";
import { cpSync, existsSync, readFileSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join, resolve } from "node:path";
import type { XsEngine } from "../src/engines/built.ts";
import { builtOnce } from "./built-once.ts";

const PLATFORMS: { readonly [platform: string]: string } = { linux: "lin", darwin: "mac" };

const works = (command: string): boolean =>
  spawnSync(command, ["--version"], { stdio: "ignore" }).status === 0;

/** Of the two programs that the package builds, nothing runs the one for debugging. */
const BOTH = "buildGoals: ['release', 'debug']";
const RELEASE = "buildGoals: ['release']";

/** Runs the package's script in a copy, because pnpm's store must not change. */
const build = (source: string, work: string, binary: string): string | null => {
  cpSync(source, work, {
    recursive: true,
    filter: (path) => path !== join(source, "node_modules"),
  });
  const script = join(work, "src/build.js");
  writeFileSync(script, readFileSync(script, "utf8").replace(BOTH, RELEASE));
  const { status, stderr } = spawnSync("npm", ["run", "--silent", "build:from-env"], {
    cwd: work,
    encoding: "utf8",
    stdio: ["ignore", "ignore", "pipe"],
  });
  return status === 0 && existsSync(join(work, binary))
    ? null
    : `XS does not build here: ${stderr.trim().slice(-500)}`;
};

/** Finds the engine, or builds it, which takes a minute. Waits if another process builds it. */
export const findXsEngine = async (): Promise<XsEngine> => {
  const platform = PLATFORMS[process.platform];
  if (platform === undefined) {
    return { kind: "missing", reason: `@agoric/xsnap does not build on ${process.platform}` };
  }
  for (const command of ["cc", "make"]) {
    if (!works(command))
      return { kind: "missing", reason: `there is no ${command} to build XS with` };
  }
  const source = resolve(
    createRequire(import.meta.url).resolve("@agoric/xsnap/package.json"),
    "..",
  );
  const { version } = JSON.parse(readFileSync(join(source, "package.json"), "utf8"));
  const binary = `xsnap-native/xsnap/build/bin/${platform}/release/xsnap-worker`;
  const name = `xsnap-${version}-${process.platform}-${process.arch}`;
  return builtOnce(name, binary, (work) => build(source, work, binary));
};

if (import.meta.main) {
  const engine = await findXsEngine();
  if (engine.kind === "found") console.log(engine.path);
  else console.error(engine.reason);
  process.exitCode = engine.kind === "found" ? 0 : 1;
}
