/**
 * `npm test`: everything CI checks, or the named steps only (`npm test -- lint types`).
 * Each step is the npm script of the same name. A step that fails does not stop the others, so one run
 * tells all there is to mend; the exit code is 1 if any failed.
 */
import { spawn } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, statfsSync } from "node:fs";
import { resolve } from "node:path";

/**
 * Steps of one row run side by side; `generated` writes, and `unit` wants both cores, so that beside it
 * runs only what yields to it: the fuzzer, a minute in CI and some seconds elsewhere.
 */
const ROWS = [["lint", "boundaries", "types"], ["generated"], ["unit", "fuzz"]];
/** Shows what it does as it does it, whatever runs beside it. */
const SHOWN = "unit";

const root = resolve(import.meta.dirname, "..");
const { scripts } = JSON.parse(readFileSync(resolve(root, "package.json"), "utf8")) as {
  scripts: Record<string, string>;
};

interface Outcome {
  name: string;
  ok: boolean;
  seconds: number;
}

const MEMORY_DISK = "/dev/shm";
const ROOM_BYTES = 2 ** 30;

/** A folder for the tests' temporary files that no disk has to sync; null where there is none with room. */
function memoryFolder(): string | null {
  try {
    const { bavail, bsize } = statfsSync(MEMORY_DISK);
    return bavail * bsize < ROOM_BYTES ? null : mkdtempSync(`${MEMORY_DISK}/blindrelay-test-`);
  } catch {
    return null;
  }
}

const temporary = memoryFolder();
if (temporary !== null) {
  process.on("exit", () => rmSync(temporary, { recursive: true, force: true }));
  for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, () => process.exit(1));
}

const env = {
  // Tests start hundreds of our programs; kept compiled, each start costs half.
  NODE_COMPILE_CACHE: resolve(root, "node_modules/.cache/compile"),
  // And they make hundreds of databases: on a disk, its syncs are a third of the time.
  ...(temporary === null ? {} : { TMPDIR: temporary }),
  ...process.env,
};

function runStep(name: string, shown: boolean): Promise<Outcome> {
  const started = performance.now();
  const child = spawn(scripts[name] ?? "false", {
    cwd: root,
    env,
    shell: true,
    stdio: ["ignore", ...(shown ? (["inherit", "inherit"] as const) : (["pipe", "pipe"] as const))],
  });
  // Side by side, a step's output is kept together and shown only where it matters.
  const output: Buffer[] = [];
  child.stdout?.on("data", (chunk) => output.push(chunk));
  child.stderr?.on("data", (chunk) => output.push(chunk));
  return new Promise((done) => {
    child.on("close", (code) => {
      const ok = code === 0;
      const seconds = (performance.now() - started) / 1000;
      if (!ok) process.stderr.write(Buffer.concat(output));
      console.log(`${ok ? "ok    " : "FAILED"} ${name.padEnd(10)} ${seconds.toFixed(1)} s`);
      done({ name, ok, seconds });
    });
  });
}

const known = ROWS.flat();
const wanted = process.argv.slice(2);
const unknown = wanted.filter((name) => !known.includes(name));
if (unknown.length > 0) {
  console.error(`there is no step ${unknown.join(", ")}; there are: ${known.join(", ")}`);
  process.exit(2);
}

const outcomes: Outcome[] = [];
for (const row of ROWS) {
  const steps = row.filter((name) => wanted.length === 0 || wanted.includes(name));
  outcomes.push(
    ...(await Promise.all(
      steps.map((name) => runStep(name, steps.length === 1 || name === SHOWN)),
    )),
  );
}
const failed = outcomes.filter(({ ok }) => !ok).map(({ name }) => name);
if (failed.length > 0) console.error(`failed: ${failed.join(", ")}`);
else console.log("all checks passed");
process.exitCode = failed.length > 0 ? 1 : 0;
