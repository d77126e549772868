/**
 * `npm test`: everything CI checks, or only the named steps (`npm test -- lint types`). Each step
 * is the npm script of the same name. A failing step does not stop the others, so one run reports
 * all failures; the exit code is 1 if any failed. A proof whose inputs have not changed since it
 * last passed is skipped, and reported as such; never in CI (proofs.ts).
 */
import { type ChildProcess, spawn } from "node:child_process";
import { chmodSync, mkdtempSync, readFileSync, rmSync, statfsSync } from "node:fs";
import { resolve } from "node:path";
import {
  type Digests,
  missingGuests,
  passedProofs,
  proofDigests,
  rememberProofs,
  SKIP_PROOFS,
} from "./proofs.ts";

/**
 * Steps in one row run in parallel; `generated` writes files, and `tests` needs both cores, so
 * beside it runs only the fuzzer, which yields to it: twenty seconds in CI and a few elsewhere.
 */
const ROWS = [["lint", "boundaries", "types"], ["generated"], ["tests", "fuzz"]];
/** Shows its output immediately, whatever else runs. */
const SHOWN = "tests";

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

/**
 * A folder for the tests' temporary files that needs no disk flushes; null if there is none with
 * enough space.
 */
function memoryFolder(): string | null {
  try {
    const { bavail, bsize } = statfsSync(MEMORY_DISK);
    if (bavail * bsize < ROOM_BYTES) return null;
    const folder = mkdtempSync(`${MEMORY_DISK}/blindrelay-test-`);
    chmodSync(folder, 0o711); // a test's own PostgreSQL runs as another user
    return folder;
  } catch {
    return null;
  }
}

const temporary = memoryFolder();
if (temporary !== null) {
  process.on("exit", () => rmSync(temporary, { recursive: true, force: true }));
}

const running = new Set<ChildProcess>();
let stopped = false;
for (const signal of ["SIGINT", "SIGTERM"] as const) {
  process.on(signal, () => {
    stopped = true;
    for (const child of running) child.kill(signal);
  });
}

const env = {
  // Tests start hundreds of our programs; with cached compilation each start costs half as much.
  NODE_COMPILE_CACHE: resolve(root, "node_modules/.cache/compile"),
  // They also create hundreds of databases: on a disk, flushes are a third of the time.
  ...(temporary === null ? {} : { TMPDIR: temporary }),
  ...process.env,
};

/** Determined when the tests begin, because `generated` runs before them and writes files. */
let digests: Digests | null = null;
let skipped: string[] = [];
const lookAtProofs = async (): Promise<void> => {
  digests = await proofDigests(root);
  skipped = process.env.CI ? [] : passedProofs(root, digests);
};

async function runStep(name: string, shown: boolean): Promise<Outcome> {
  if (name === "tests") await lookAtProofs();
  const started = performance.now();
  // Without a shell in between, so that a signal reaches the step itself.
  const child = spawn(`exec ${(scripts[name] ?? "false").replace(/^exec /, "")}`, {
    cwd: root,
    env: { ...env, [SKIP_PROOFS]: skipped.join(",") },
    shell: true,
    stdio: ["ignore", ...(shown ? (["inherit", "inherit"] as const) : (["pipe", "pipe"] as const))],
  });
  running.add(child);
  // For parallel steps, each one's output is kept together and shown only on failure.
  const output: Buffer[] = [];
  child.stdout?.on("data", (chunk) => output.push(chunk));
  child.stderr?.on("data", (chunk) => output.push(chunk));
  return new Promise((done) => {
    child.on("close", (code) => {
      running.delete(child);
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
  if (stopped) break;
  const steps = row.filter((name) => wanted.length === 0 || wanted.includes(name));
  outcomes.push(
    ...(await Promise.all(
      steps.map((name) => runStep(name, steps.length === 1 || name === SHOWN)),
    )),
  );
}
const failed = outcomes.filter(({ ok }) => !ok).map(({ name }) => name);
if (skipped.length > 0) {
  console.log(
    `skipped, because nothing they depend on has changed since they passed: ${skipped.join(", ")} (CI=1 npm test runs them)`,
  );
}
const missing = missingGuests();
if (missing.length > 0 && outcomes.some(({ name }) => name === "tests")) {
  console.log(`not tested, because these are not here (CONTRIBUTING.md): ${missing.join(", ")}`);
}
if (stopped) console.error("stopped");
else if (failed.length > 0) console.error(`failed: ${failed.join(", ")}`);
else console.log("all checks passed");
if (digests !== null && !stopped && !failed.includes("tests")) rememberProofs(root, digests);
process.exitCode = stopped || failed.length > 0 ? 1 : 0;
