/**
 * The proofs: searches, attacks, measurements, and tests through commands, browsers, boards,
 * clusters and documents, which take long and which few changes affect. On a developer's machine
 * `npm test` skips each one whose inputs have not changed since it last passed; in CI (the variable
 * CI is set) all run.
 */
import { execFileSync } from "node:child_process";
import { hash } from "node:crypto";
import { once } from "node:events";
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { connect } from "node:net";
import { dirname, resolve } from "node:path";

/** Names of proofs to skip, separated by commas; read by vitest.config.ts. */
export const SKIP_PROOFS = "BLINDRELAY_SKIP_PROOFS";

const SDKS = ["protocol", "agent-sdk", "client-sdk"];
/** The configuration and the instruments of all tests. */
const ALWAYS = [
  "package.json",
  "pnpm-lock.yaml",
  "pnpm-workspace.yaml",
  "tsconfig.base.json",
  "tsconfig.build.json",
  "tsconfig.json",
  "vitest.config.ts",
  "scripts",
  "test/src/instruments",
];
/** Variables that name what some tests need. */
const GUESTS = [
  "ESPRUINO_BIN",
  "ESPRUINO_BIN_2630",
  "ESPRUINO_BIN_32",
  "ESPRUINO_WATCHDOG",
  "ESPRUINO_ARM",
  "MODDABLE",
  "MODDABLE_HOST",
  "PROVERIF_BIN",
];
/** What decides whether a test runs at all: variables, programs and ports. */
const VARIABLES = ["BLINDRELAY_TEST_NATS", "BLINDRELAY_TEST_POSTGRES", ...GUESTS];
const PROGRAMS = [
  "arm-none-eabi-gcc",
  "cc",
  "chromium",
  "nats-server",
  "openssl",
  "promtool",
  "qemu-system-arm",
  "rumur",
  "ser2net",
  "socat",
];
const PORTS = [4222, 5432];

interface Proof {
  /** Its test files. */
  readonly tests: readonly string[];
  /**
   * Files and folders that it depends on, besides its own and ALWAYS. Default: the whole
   * repository.
   */
  readonly inputs?: readonly string[];
}

export const PROOFS: Readonly<Record<string, Proof>> = {
  adversary: {
    tests: ["test/src/adversary/**"],
    inputs: [
      ...SDKS,
      "relay-server",
      "simulator/src",
      "test/src/hostile-boards",
      "test/src/runtime-parity",
      "test/src/xs",
    ],
  },
  boards: {
    tests: [
      "test/src/espruino/**",
      "test/src/runtime-parity/**",
      "test/src/quickjs/**",
      "test/src/rekey/**",
      "test/src/storage/**",
      "test/src/xs/**",
    ],
  },
  attacks: {
    tests: [
      "test/src/attacks/descriptors.test.ts",
      "test/src/attacks/full-migration.test.ts",
      "test/src/attacks/nodes.test.ts",
      "test/src/attacks/raw-http.test.ts",
      "test/src/attacks/small-heap.test.ts",
      "test/src/attacks/steps.test.ts",
      "test/src/attacks/tls.test.ts",
    ],
    inputs: [...SDKS, "relay-server", "test/src/cluster", "test/src/overload"],
  },
  bench: { tests: ["bench/**"] },
  chip: {
    tests: ["test/src/chip/**"],
    inputs: [
      ...SDKS,
      "relay-server",
      "tools",
      "simulator",
      "test/src/adversary",
      "test/src/bridge",
      "test/src/cli",
      "test/src/flags.ts",
      "test/src/hostile-boards",
      "test/src/overload",
    ],
  },
  bridge: {
    // The latter replaces a module of Node's, which other tests must not share.
    tests: ["test/src/bridge/**", "tools/src/attach/record.test.ts"],
    inputs: [...SDKS, "relay-server", "tools", "test/src/cli"],
  },
  bootcount: { tests: ["agent-sdk/src/core/bootcount.test.ts"], inputs: SDKS },
  cli: {
    tests: ["test/src/cli/**"],
    inputs: [...SDKS, "relay-server", "tools"],
  },
  cluster: {
    tests: ["relay-server/src/bus/{cluster,nats}.test.ts", "test/src/cluster/**"],
    inputs: [...SDKS, "relay-server"],
  },
  console: {
    tests: ["test/src/console/**"],
    inputs: [
      ...SDKS,
      "console",
      "relay-server",
      "test/src/specification",
      "tools/src/repl",
      "tools/src/serial",
    ],
  },
  conformance: { tests: ["test/src/conformance/**"], inputs: ["protocol", "relay-server"] },
  flash: {
    tests: ["test/src/flash/**"],
    inputs: [...SDKS, "relay-server", "tools", "test/src/cli", "test/src/espruino/terminals.ts"],
  },
  hub: {
    tests: [
      "relay-server/src/bus/bystanders.property.test.ts",
      "relay-server/src/core/hub.property.test.ts",
    ],
    inputs: ["protocol", "relay-server"],
  },
  kill: { tests: ["test/src/kill/**"], inputs: ["protocol", "relay-server"] },
  library: {
    tests: ["simulator/src/run/library.test.ts"],
    inputs: [...SDKS, "relay-server", "simulator"],
  },
  live: {
    tests: ["simulator/src/live/run.test.ts", "simulator/src/start/start.test.ts"],
    inputs: [...SDKS, "relay-server", "simulator"],
  },
  "many-agents": { tests: ["test/src/many-agents/**"], inputs: [...SDKS, "relay-server"] },
  orders: {
    tests: ["test/src/orders/**"],
    inputs: [...SDKS, "relay-server", "simulator/src", "test/src/adversary"],
  },
  overload: { tests: ["test/src/overload/**"] },
  pages: {
    tests: ["relay-server/src/http/describe/pages.test.ts"],
    inputs: ["protocol", "relay-server"],
  },
  planted: {
    tests: ["simulator/src/testing/planted/**"],
    inputs: [...SDKS, "relay-server", "simulator"],
  },
  publish: { tests: ["test/src/publish/**"] },
  recipes: { tests: ["test/src/recipes/**"] },
  relay: {
    tests: [
      "relay-server/src/{disk,main,outage}.test.ts",
      "relay-server/src/ops/**",
      "test/src/instruments/clean-up.test.ts",
    ],
    inputs: [
      "protocol",
      "relay-server",
      "docs/commands.md",
      "docs/cluster.md",
      "docs/keys-and-backups.md",
      "docs/limits.md",
      "docs/operations.md",
      "docs/scaling.md",
      "test/src/overload/memory-report.ts",
      "test/src/overload/relay-process.ts",
    ],
  },
  releases: {
    tests: ["test/src/releases/**"],
    inputs: [
      ...SDKS,
      "relay-server",
      "tools",
      "simulator/src/devices",
      "test/src/cli",
      "test/src/hostile-boards",
      "test/src/runtime-parity",
      "test/src/xs",
    ],
  },
  sizes: {
    tests: [
      "agent-sdk/build/**",
      "agent-sdk/src/core/portable.test.ts",
      "agent-sdk/src/testing/**",
    ],
    inputs: SDKS,
  },
  client: {
    tests: ["client-sdk/src/limits.test.ts", "client-sdk/src/trouble.test.ts"],
    inputs: ["protocol", "client-sdk"],
  },
  world: {
    tests: [
      "simulator/src/virtual/nodes.test.ts",
      "simulator/src/virtual/pings.test.ts",
      "simulator/src/virtual/world.test.ts",
    ],
    inputs: [...SDKS, "relay-server", "simulator/src"],
  },
};

const STAMPS = "node_modules/.cache/blindrelay/proofs.json";

/** Files and folders. */
export const inputsOf = (tests: readonly string[], inputs: readonly string[]): string[] => [
  ...ALWAYS,
  ...inputs,
  ...tests.map((glob) => glob.replace(/\/\*\*$/, "")),
];

/** Each file's path and a digest of it, sorted: tracked files and new ones, as they are on disk. */
export const readFiles = (root: string): [string, string][] => {
  const list = ["ls-files", "-co", "--exclude-standard", "--deduplicate"];
  const files = execFileSync("git", list, { cwd: root, encoding: "utf8", maxBuffer: 2 ** 26 });
  const paths = files.split("\n").filter((path) => path !== "");
  return paths.sort().map((path) => [path, hash("sha256", contentOf(resolve(root, path)))]);
};

/** Empty for a file that is listed but missing, for example after an uncommitted `git rm`. */
const contentOf = (path: string): Buffer => {
  try {
    return readFileSync(path);
  } catch {
    return Buffer.alloc(0);
  }
};

const isOnPath = (program: string): boolean =>
  (process.env.PATH ?? "").split(":").some((folder) => existsSync(resolve(folder, program)));

const listens = async (port: number): Promise<boolean> => {
  const socket = connect(port, "127.0.0.1");
  const isOpen = await once(socket, "connect").then(
    () => true,
    () => false,
  );
  socket.destroy();
  return isOpen;
};

/** What this machine offers to tests. */
const readMachine = async (): Promise<string[]> => [
  process.version,
  ...VARIABLES.map((name) => `${name}=${process.env[name] ?? ""}`),
  ...PROGRAMS.map((program) => `${program} ${isOnPath(program)}`),
  ...(await Promise.all(PORTS.map(async (port) => `${port} ${await listens(port)}`))),
];

/** A digest of all that a proof depends on. */
const digestOf = (
  machine: readonly string[],
  files: readonly [string, string][],
  { tests, inputs }: Proof,
): string => {
  const known = inputs === undefined ? null : inputsOf(tests, inputs);
  const isInput = (file: string): boolean =>
    known?.some((path) => file === path || file.startsWith(`${path}/`)) ?? true;
  return hash("sha256", JSON.stringify([machine, files.filter(([file]) => isInput(file))]));
};

export type Digests = Readonly<Record<string, string>>;

/** The digest of each proof's current inputs. */
export const proofDigests = async (root: string): Promise<Digests> => {
  const machine = await readMachine();
  const files = readFiles(root);
  return Object.fromEntries(
    Object.entries(PROOFS).map(([name, proof]) => [name, digestOf(machine, files, proof)]),
  );
};

const readStamps = (root: string): Digests => {
  try {
    return JSON.parse(readFileSync(resolve(root, STAMPS), "utf8"));
  } catch {
    return {};
  }
};

/** The names of the proofs that have passed with inputs of these digests. */
export const passedProofs = (root: string, digests: Digests): string[] => {
  const stamps = readStamps(root);
  return Object.keys(digests).filter((name) => stamps[name] === digests[name]);
};

/** Called after a green run of all tests, with the `digests` from before it. */
export const rememberProofs = (root: string, digests: Digests): void => {
  const path = resolve(root, STAMPS);
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, JSON.stringify(digests));
};

/** Engines and programs that are not here, so that the tests that use them are skipped. */
export const missingGuests = (): string[] => [
  ...GUESTS.filter((name) => !process.env[name]),
  ...PROGRAMS.filter((program) => !isOnPath(program)),
];
