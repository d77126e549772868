import { availableParallelism } from "node:os";
import { defineConfig, type TestProjectInlineConfiguration } from "vitest/config";
import { PROOFS, SKIP_PROOFS } from "./scripts/proofs.ts";
import { SlowestFirst } from "./test/src/instruments/slowest-first.ts";
import { loadStandIns } from "./test/src/instruments/vitest-plugin.ts";

/**
 * Four projects, from the quickest answer to the slowest. A test file that is in none of these
 * lists is a unit test, and fails where it opens a socket or starts a process.
 */
const FILES = {
  /** Sockets, databases, terminals, in the test's own process. */
  edge: [
    "agent-sdk/src/{espruino,moddable,node}/**",
    "client-sdk/src/{node,rest}/**",
    "relay-server/src/{control,http,store,ws}/**",
    "relay-server/src/bus/{cluster,nats}.test.ts",
    "relay-server/src/{metrics,server,base/duration-histogram}.test.ts",
    "simulator/src/{live,msw}/**",
    "test/src/{contract,restore,specification}/**",
    "tools/src/{attach,bridge,config,flash,fleet,repl,serial}/**",
    "tools/src/{hostile-relay,base/rest}.test.ts",
  ],
  /** Programs as people start them; many of these are proofs, too, and skipped as such. */
  process: [
    "agent-sdk/build/**",
    "agent-sdk/src/node/{start,state}.test.ts",
    "protocol/src/file-lock.test.ts",
    "relay-server/src/{settings/default-data-dir,disk,log,main,outage}.test.ts",
    "relay-server/src/ops/**",
    "scripts/**",
    "simulator/src/{cli,base/processes,search/jobs}.test.ts",
    "simulator/src/testing/planted/seek.test.ts",
    "simulator/src/virtual/watchdog.test.ts",
    "test/src/{agent-life,bridge,cli,engines,examples,field,fleet,instruments,releases}/**",
    "test/src/forward/memory.test.ts",
    "tools/src/commands/small.test.ts",
  ],
  /** Searches, attacks, measurements, whole commands: long, and touched by few changes. */
  proof: Object.values(PROOFS).flatMap(({ tests }) => tests),
};

const skipped = (process.env[SKIP_PROOFS] ?? "")
  .split(",")
  .flatMap((name) => PROOFS[name]?.tests ?? []);

const ALL = "**/*.test.ts";
const NEVER = ["**/node_modules/**", "**/dist/**"];

const testsIn = (globs: readonly string[]): string[] =>
  globs.map((glob) => (glob.endsWith(".ts") ? glob : glob.replace(/\*\*$/, ALL)));

const project = (
  name: string,
  globs: readonly string[],
  without: readonly string[],
  more: TestProjectInlineConfiguration["test"] = {},
): TestProjectInlineConfiguration => ({
  extends: true,
  test: {
    name,
    include: testsIn(globs),
    exclude: [...NEVER, ...testsIn(without)],
    ...more,
  },
});

const { edge, process: processes, proof } = FILES;

const importing = (instrument: string): string =>
  `--import=${new URL(`test/src/instruments/${instrument}`, import.meta.url)}`;

/**
 * Node loads the sources itself, as it does everywhere but in tests: that is quicker, and the code
 * that it loads is, too.
 */
const loadedByNode = {
  experimental: { viteModuleRunner: false },
  execArgv: [importing("install-stand-ins.mjs")],
};

export default defineConfig({
  plugins: [loadStandIns()],
  test: {
    // Over every test: no key and nonce may seal two different plaintexts, and no secret that a
    // test made may stand in what programs log.
    setupFiles: ["./test/src/instruments/setup.ts"],
    // What the tests start ends with them.
    globalSetup: ["./test/src/instruments/reaper.ts", "./test/src/instruments/packages.ts"],
    execArgv: [importing("register.mjs")],
    // Processes, because tests send signals, change directories and start servers.
    pool: "forks",
    // Most tests wait for their own processes and for real timers; three times as many files as
    // there are cores keep those busy. Unit tests wait for nothing.
    maxWorkers: (process.argv.includes("unit") ? 1 : 3) * availableParallelism(),
    // Many times what any test needs alone: two cores may be shared with much other work.
    testTimeout: 300_000,
    hookTimeout: 300_000,
    expect: { poll: { timeout: 60_000 } },
    sequence: { sequencer: SlowestFirst },
    passWithNoTests: false,
    // A test that forgot to assert, or that was left `.only`, must not look green in CI.
    allowOnly: !process.env.CI,
    restoreMocks: true,
    unstubEnvs: true,
    projects: [
      project("unit", [ALL], [...edge, ...processes, ...proof], {
        // They touch nothing outside of themselves, so files need no process of their own.
        pool: "threads",
        isolate: false,
        setupFiles: ["./test/src/instruments/setup.ts", "./test/src/instruments/unit-setup.ts"],
      }),
      // Half of what a file costs is the loading of what it tests: files share it, and leave
      // nothing behind that the next one could see.
      project("edge", edge, [...processes, ...proof], { isolate: false, ...loadedByNode }),
      project("process", processes, skipped, { isolate: false, ...loadedByNode }),
      project("proof", proof, [...processes, ...skipped], loadedByNode),
    ],
  },
});
