/**
 * Which code may import or load which: between packages, and into pure code, as one table.
 * `check.ts` enforces it. Paths are relative to the root; `**` is any depth, `*` one name.
 * An `import type` is erased before anything runs, so only rules that say "types included" see it.
 */

interface NamedRule {
  name: string;
  reason: string;
}

/**
 * Files from which nothing in `mayNotReach` (files or modules of Node) may be loaded, not even
 * through other files.
 */
export interface ReachRule extends NamedRule {
  kind: "reach";
  files: string[];
  mayNotReach: string[];
  /** Allows it by an `import()`, which loads it only once it is used. */
  late?: true;
}

/**
 * Files that, with everything they load, must stay within `mayReach`; no npm, no Node, no impure
 * globals.
 */
export interface PureRule extends NamedRule {
  kind: "pure";
  files: string[];
  /** Allowed and subject to this same rule, because code that loads `files` loads these too. */
  mayReach: string[];
  /** Allowed, but not followed: what these load in turn is not checked by this rule. */
  notFollowed: string[];
}

/** For each package the packages it may import, types included. */
export interface PackagesRule extends NamedRule {
  kind: "packages";
  mayImport: Record<string, string[]>;
  /** Files that may import another package's files by path; all others use its entry points. */
  byPath: string[];
}

/** Files that load only Node, each other and what `mayLoad` names; tests and types included. */
export interface ConfinedRule extends NamedRule {
  kind: "confined";
  files: string[];
  mayLoad: string[];
}

/**
 * No two files, or no two folders, that import each other, directly or through others; types
 * included.
 */
export interface CyclesRule extends NamedRule {
  kind: "cycles";
  of: "files" | "folders";
  /** Folders whose own files count one by one, not as a folder. */
  openTops?: string[];
}

export type Rule = ReachRule | PureRule | PackagesRule | CyclesRule | ConfinedRule;

/** Tests may use whatever they need, but what a package may import holds for them too. */
export const TEST_FILES = ["**/*.test.ts"];

const SHARED_BASICS = [
  "protocol/src/index.ts",
  "protocol/src/spec.ts",
  "protocol/src/errors.ts",
  "protocol/src/link/jitter.ts",
  "protocol/src/link/defaults.ts",
  "protocol/src/link/failures.ts",
  "protocol/src/link/states.ts",
  "protocol/src/ports.ts",
  "protocol/src/account-token.ts",
  "protocol/src/agent-id.ts",
  "protocol/src/tokens.ts",
];

const ENCODING = "protocol/src/encoding/**";
const WIRE = "protocol/src/wire/**";

const PORTABLE = [
  "protocol/src/crypto/**",
  "protocol/src/session/**",
  "protocol/src/link/**",
  ENCODING,
  WIRE,
  "agent-sdk/src/core/**",
  "agent-sdk/src/ports.ts",
  "client-sdk/src/core/**",
  "client-sdk/src/ports.ts",
  "client-sdk/src/errors.ts",
];

export const RULES: Rule[] = [
  {
    kind: "reach",
    name: "the relay is blind",
    files: ["relay-server/**"],
    mayNotReach: ["protocol/src/crypto/**", "protocol/src/session/**", "protocol/src/suites/**"],
    reason:
      "the relay routes packets unread; a process that holds no code to open them cannot start to",
  },
  {
    kind: "reach",
    name: "browsers have no Node",
    files: [
      "agent-sdk/src/board/**",
      "client-sdk/src/browser/**",
      "relay-server/src/embed.ts",
      "simulator/src/fake-device/**",
      "simulator/src/msw/**",
    ],
    mayNotReach: ["node:*", "node:*/*"],
    reason: "apps bundle it for their pages, and there such an import cannot be resolved",
  },
  {
    kind: "reach",
    name: "both ends of a bridged port have no Node",
    files: ["agent-sdk/src/bridge/**", "client-sdk/src/serial/**"],
    mayNotReach: ["node:*", "node:*/*"],
    reason: "the simulator runs them under a virtual clock and a seed, the command on Node",
  },
  {
    kind: "reach",
    name: "a virtual run starts without a server",
    files: ["simulator/src/virtual/**", "simulator/src/fleet/**", "simulator/src/search/**"],
    mayNotReach: ["relay-server/src/http/**", "relay-server/src/store/**"],
    late: true,
    reason: "REST and SQL are more modules than all others together, and few runs use them",
  },
  {
    kind: "pure",
    name: "portable code is pure",
    files: PORTABLE,
    mayReach: SHARED_BASICS,
    notFollowed: [],
    reason:
      "the same text runs on Node, Espruino and Moddable; time, randomness and I/O come in through ports",
  },
  {
    kind: "pure",
    name: "the relay's core is pure",
    files: ["relay-server/src/core/**"],
    mayReach: [...SHARED_BASICS, ENCODING, WIRE],
    notFollowed: ["protocol/src/schema/**"],
    reason:
      "the simulator runs it under a virtual clock and a seed; events and a time go in, effects come out",
  },
  {
    kind: "confined",
    name: "the proof knows the specification only",
    files: ["test/src/specification/**", "test/src/contract/**"],
    mayLoad: ["vitest", "@blindrelay/relay-server"],
    reason:
      "what tests a wire with its own codec proves that both ends agree, not that they are right",
  },
  {
    kind: "packages",
    name: "imports between packages",
    mayImport: {
      protocol: [],
      "agent-sdk": ["protocol"],
      "client-sdk": ["protocol"],
      "relay-server": ["protocol"],
      console: ["agent-sdk", "client-sdk", "protocol"],
      tools: ["agent-sdk", "client-sdk", "protocol"],
      simulator: ["agent-sdk", "client-sdk", "protocol", "relay-server"],
      test: ["agent-sdk", "client-sdk", "protocol", "relay-server", "simulator", "tools"],
      bench: ["agent-sdk", "client-sdk", "protocol", "relay-server", "simulator", "tools"],
    },
    // Instruments replace single files of other packages; the others start the programs.
    byPath: [
      "test/src/instruments/**",
      "test/src/cli/processes.ts",
      "test/src/recipes/reader.ts",
      "bench/src/serial.ts",
    ],
    reason:
      "each package can be read, tested and published without those that use it, and a device or a client without the relay",
  },
  {
    kind: "cycles",
    name: "no cycles of files",
    of: "files",
    reason:
      "files in a cycle can only be read, tested and moved together; put what they share below both",
  },
  {
    kind: "cycles",
    name: "no cycles of folders",
    of: "folders",
    // What stands on top there is a border that everything below imports (ports, errors, constants,
    // the hub's state), beside what ties the rooms below together.
    openTops: ["protocol/src", "agent-sdk/src", "client-sdk/src", "relay-server/src/core"],
    reason: "of two folders only one may import the other; move what both need below both",
  },
];

/**
 * Globals that read a clock, randomness or the environment, or that wait, and those that give
 * access to them.
 */
export const IMPURE_GLOBALS = new Set([
  ...["Date", "Temporal", "Intl", "performance"],
  ...["crypto", "WeakRef", "FinalizationRegistry"],
  ...["process", "Buffer", "console", "navigator", "document", "localStorage", "sessionStorage"],
  ...["globalThis", "global", "window", "self", "require", "module", "eval", "Function"],
  ...["setTimeout", "setInterval", "setImmediate", "queueMicrotask"],
  ...["clearTimeout", "clearInterval", "clearImmediate"],
  ...["fetch", "WebSocket", "XMLHttpRequest", "EventSource", "Worker"],
]);
