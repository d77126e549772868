/**
 * Makes the checkout ready to run: installs the dependencies, among them the workspace's own Node,
 * but only if something about them has changed, and makes the sources that are not committed. It is
 * the `pre…` step of the npm scripts, so it has to run on any Node from 20 on with nothing
 * installed, must return at once when there is nothing to do, and never writes to standard output.
 */
import { spawn, spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import {
  existsSync,
  linkSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { constants, hostname } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const PNPM = "pnpm@12.21.0";
const PNPM_ARGS = ["install", "--frozen-lockfile", "--prefer-offline", "--prod=false"];
/** The oldest Node that runs the sources as they are. */
const NODE_MAJOR = 26;
/** The workspace's package that provides it. */
const NODE_PACKAGE = "scripts/node";
/** A lock this old was left by another machine that shares the folder. */
const LOCK_STALE_MS = 15 * 60_000;
const LOCK_POLL_MS = 200;

/** Sources that are made, not committed. Each is made again when something in `from` is newer. */
const MADE = [
  {
    script: "simulator/scripts/make-operations.ts",
    file: "simulator/src/msw/operations.generated.ts",
    from: ["simulator/scripts", "protocol/src/schema", "relay-server/src/http"],
  },
  {
    script: "agent-sdk/build/program-storage.ts",
    file: "agent-sdk/build/program-storage.generated.ts",
    from: ["agent-sdk/build", "agent-sdk/src/core", "agent-sdk/src/espruino"],
  },
];

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const stampFile = join(root, "node_modules", ".setup-stamp");
const lockFile = join(root, ".setup.lock");
const binFolder = join(root, "node_modules", ".bin");
const nodeBinary = join(binFolder, "node");
/**
 * The scripts begin with `exec`, so that npm's signals reach the program and not only its shell.
 * Windows' shell has no such word and finds this batch file: it runs its words.
 */
const EXEC_FOR_WINDOWS = "@%*\r\n";

const say = (/** @type {string} */ text) => process.stderr.write(`setup: ${text}\n`);
/** For a person who waits; a script that said `npm run --silent` hears of trouble only. */
const sayProgress = (/** @type {string} */ text) => {
  if (process.stderr.isTTY || process.env.npm_config_loglevel !== "silent") say(text);
};

/** A digest of what the installed state depends on. */
function fingerprint() {
  const workspace = readFileSync(join(root, "pnpm-workspace.yaml"), "utf8");
  const packages = /^packages:\n((?: +- .*\n)+)/m.exec(workspace)?.[1]?.match(/[^\s-]\S*/g) ?? [];
  const files = [
    "package.json",
    "pnpm-lock.yaml",
    ...packages.map((name) => `${name}/package.json`),
  ];
  const hash = createHash("sha256").update(`${process.platform} ${process.arch}\n${workspace}`);
  for (const file of files) hash.update(`\n${file}\n`).update(readFileSync(join(root, file)));
  // The package that provides Node has nothing to install on platforms without a packaged Node.
  const installed = packages.every(
    (name) => name === NODE_PACKAGE || existsSync(join(root, name, "node_modules")),
  );
  return { stamp: hash.digest("hex"), installed };
}

function isReady() {
  const { stamp, installed } = fingerprint();
  try {
    return installed && readFileSync(stampFile, "utf8") === stamp;
  } catch {
    return false;
  }
}

/** Those that are missing, or older than what they are made from. */
function unmade() {
  return MADE.filter(({ file, from }) => {
    const made = statSync(join(root, file), { throwIfNoEntry: false })?.mtimeMs ?? 0;
    const sources = from.flatMap((folder) =>
      readdirSync(join(root, folder), { recursive: true }).map((name) => join(root, folder, name)),
    );
    return sources.some((path) => statSync(path).mtimeMs > made);
  });
}

function make() {
  for (const { script } of unmade()) {
    const { status, stderr } = spawnSync(workspaceNode(), [join(root, script)], {
      stdio: ["ignore", "ignore", "pipe"],
      encoding: "utf8",
    });
    if (status !== 0) return `${script} failed:\n${stderr}`;
  }
  return undefined;
}

/** Of two processes, the second waits for the first, then finds nothing left to do. */
async function takeLock() {
  const own = `${process.pid} ${hostname()} ${Date.now()}`;
  for (let waiting = false; ; ) {
    try {
      writeFileSync(lockFile, own, { flag: "wx" });
      return;
    } catch (error) {
      if (error.code !== "EEXIST") throw error;
    }
    if (breakStaleLock()) continue;
    if (!waiting) sayProgress("another setup is running; waiting for it");
    waiting = true;
    await new Promise((done) => setTimeout(done, LOCK_POLL_MS));
  }
}

/**
 * Moves a dead process's lock away. If two processes try, one fails, or notices that it moved a
 * live lock and puts it back.
 */
function breakStaleLock() {
  const text = readLock(lockFile);
  if (text === undefined) return true;
  const [pid = "", host] = text.split(" ");
  const isDead = host === hostname() ? !isAlive(Number(pid)) : ageOf(lockFile) > LOCK_STALE_MS;
  // A lock without text is just being written, unless it stays that way.
  if (text === "" ? ageOf(lockFile) < 5_000 : !isDead) return false;
  const aside = `${lockFile}.${process.pid}`;
  try {
    renameSync(lockFile, aside);
    if (readLock(aside) !== text) linkSync(aside, lockFile);
  } catch {
    // Another process was faster.
  }
  rmSync(aside, { force: true });
  return true;
}

function readLock(path) {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return undefined;
  }
}

function isAlive(pid) {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return error.code === "EPERM";
  }
}

function ageOf(path) {
  try {
    return Date.now() - statSync(path).mtimeMs;
  } catch {
    return 0;
  }
}

async function install() {
  const isTerminal = Boolean(process.stderr.isTTY);
  sayProgress("installing dependencies (the first time, and whenever they change)");
  // `npm run --silent` would silence npx's own error messages too; NODE_ENV=production would omit
  // the test tools.
  const env = { ...process.env, npm_config_loglevel: "error", NODE_ENV: "development" };
  // npm's own timeout for an unreachable network is several minutes.
  env.npm_config_fetch_retries ??= "1";
  env.npm_config_fetch_retry_mintimeout ??= "1000";
  env.npm_config_fetch_retry_maxtimeout ??= "5000";
  env.pnpm_config_fetch_retries ??= "2";
  env.pnpm_config_fetch_retry_mintimeout ??= "1000";
  env.pnpm_config_fetch_retry_maxtimeout ??= "5000";

  const child = spawn("npx", ["-y", "--prefer-offline", PNPM, ...PNPM_ARGS], {
    cwd: root,
    env,
    // Standard output belongs to the program that runs after this.
    stdio: ["ignore", "pipe", "pipe"],
    // npx is a batch file on Windows, which only a shell starts.
    shell: process.platform === "win32",
  });
  let output = "";
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding("utf8");
    stream.on("data", (text) => {
      output += text;
      if (isTerminal) process.stderr.write(text);
    });
  }
  let stopped;
  const stop = (signal) => {
    stopped = signal;
    child.kill(signal);
  };
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) process.on(signal, stop);
  const [code, signal] = await new Promise((done) => {
    child.on("error", (error) => {
      output += `${error.message}\n`;
      done([1, null]);
    });
    child.on("close", (...ended) => done(ended));
  });
  for (const name of ["SIGINT", "SIGTERM", "SIGHUP"]) process.off(name, stop);
  if (stopped ?? signal) return { stopped: stopped ?? signal };
  if (code !== 0) {
    if (!isTerminal) process.stderr.write(output);
    return { problem: explain(output) };
  }
  return {};
}

/** The cause and the fix of common failures. */
function explain(output) {
  if (
    /ENOTFOUND|EAI_AGAIN|ECONNREFUSED|ECONNRESET|ETIMEDOUT|ENETUNREACH|EHOSTUNREACH|ERR_SOCKET_TIMEOUT|error sending request|dns error|connect error/i.test(
      output,
    )
  ) {
    return (
      "the npm registry cannot be reached. Check the network, HTTPS_PROXY and\n" +
      "  `npm config get registry`, then run the same command again; what was downloaded is kept."
    );
  }
  if (/OUTDATED_LOCKFILE|FROZEN_LOCKFILE|lockfile.*not up.to.date/i.test(output)) {
    return `pnpm-lock.yaml does not fit the package.json files. Run \`npx -y ${PNPM} install\` and commit the lockfile.`;
  }
  if (/ENOSPC/.test(output)) return "the disk is full.";
  if (/EACCES|EPERM|EROFS/.test(output))
    return `${root} or npm's cache cannot be written to by this user.`;
  if (/spawn npx ENOENT/.test(output)) return "npx is not on PATH; install npm, which brings it.";
  return `the installation failed; its output is above. By hand: npx -y ${PNPM} ${PNPM_ARGS.join(" ")}`;
}

/** The workspace's own Node, or the current one if no package has a Node for the platform. */
function workspaceNode() {
  return existsSync(nodeBinary) ? nodeBinary : process.execPath;
}

/** What is wrong with it. */
function nodeProblem() {
  const { stdout, error } = spawnSync(workspaceNode(), ["--version"], { encoding: "utf8" });
  const version = stdout?.trim() || error?.message || "one that does not start";
  if (Number(/^v(\d+)/.exec(version)?.[1]) >= NODE_MAJOR) return undefined;
  return (
    `there is no packaged Node ${NODE_MAJOR} that runs on ${process.platform}-${process.arch} (found: ${version}).\n` +
    `  Install Node ${NODE_MAJOR} or newer and put it first on PATH.`
  );
}

async function main() {
  if (Number(process.versions.node.split(".")[0]) < 20) {
    say(`Node 20 or newer is needed; this is ${process.version}.`);
    return 70;
  }
  if (isReady() && unmade().length === 0) return 0;
  await takeLock();
  try {
    if (!isReady()) {
      // Computed before, so that a file that changes during the installation makes the next run
      // install again.
      const { stamp } = fingerprint();
      const { problem, stopped } = await install();
      if (stopped) return 128 + constants.signals[stopped];
      const trouble = problem ?? nodeProblem();
      if (trouble) {
        say(trouble);
        return 70;
      }
      mkdirSync(binFolder, { recursive: true });
      writeFileSync(join(binFolder, "exec.cmd"), EXEC_FOR_WINDOWS);
      writeFileSync(stampFile, stamp);
      sayProgress("done");
    }
    const trouble = make();
    if (trouble) say(trouble);
    return trouble ? 70 : 0;
  } finally {
    rmSync(lockFile, { force: true });
  }
}

process.exitCode = await main();
