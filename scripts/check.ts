/**
 * `npm test`: everything CI checks, or the named steps only (`npm test -- lint types`).
 * Each step is the npm script of the same name. A step that fails does not stop the others, so one
 * run reports all failures; the exit code is 1 if any failed. A proof that passed already
 * with all that it depends on as it is now is left out, and named; never in CI (proofs.ts).
 */
import { type ChildProcess, spawn } from "node:child_process";
import { chmodSync, mkdtempSync, readFileSync, rmSync, statfsSync } from "node:fs";
import { resolve } from "node:path";
import { type Digests, passedProofs, proofDigests, rememberProofs, SKIP_PROOFS } from "./proofs.ts";

/**
 * Steps of one row run side by side; `generated` writes, and `tests` wants both cores, so that
 * beside it runs only what yields to it: the fuzzer, a minute in CI and some seconds elsewhere.
 */
const ROWS = [["lint", "boundaries", "types"], ["generated"], ["tests", "fuzz"]];
/** Shows what it does as it does it, whatever else runs. */
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
 * A folder for the tests' temporary files that no disk has to sync; null if there is none with
 * room.
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
  // Tests start hundreds of our programs; kept compiled, each start costs half.
  NODE_COMPILE_CACHE: resolve(root, "node_modules/.cache/compile"),
  // And they make hundreds of databases: on a disk, its syncs are a third of the time.
  ...(temporary === null ? {} : { TMPDIR: temporary }),
  ...process.env,
};

/** Found out when the tests begin, because `generated` before them writes. */
let digests: Digests | null = null;
let skipped: string[] = [];
const lookAtProofs = (): void => {
  digests = proofDigests(root);
  skipped = process.env.CI ? [] : passedProofs(root, digests);
};

function runStep(name: string, shown: boolean): Promise<Outcome> {
  if (name === "tests") lookAtProofs();
  const started = performance.now();
  // Without a shell in between, so that a signal reaches the step itself.
  const child = spawn(`exec ${(scripts[name] ?? "false").replace(/^exec /, "")}`, {
    cwd: root,
    env: { ...env, [SKIP_PROOFS]: skipped.join(",") },
    shell: true,
    stdio: ["ignore", ...(shown ? (["inherit", "inherit"] as const) : (["pipe", "pipe"] as const))],
  });
  running.add(child);
  // Side by side, a step's output is kept together and shown only where it matters.
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
if (stopped) console.error("stopped");
else if (failed.length > 0) console.error(`failed: ${failed.join(", ")}`);
else console.log("all checks passed");
if (digests !== null && !stopped && !failed.includes("tests")) rememberProofs(root, digests);
process.exitCode = stopped || failed.length > 0 ? 1 : 0;
