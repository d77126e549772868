/**
 * What goes into the file for Espruino, and how it is made to fit: each pass says what it saves,
 * and bench/README.md has the measurements.
 */
import { fileURLToPath } from "node:url";
import type { AeadVersion } from "@blindrelay/protocol/crypto";
import { type Bundle, type BundleOptions, bundle } from "./bundle.ts";
import { exactDecimals } from "./decimals.ts";
import { entryOf, type Links } from "./entry.ts";
import { rememberedBundle } from "./remembered.ts";

const at = (path: string): string => fileURLToPath(new URL(path, import.meta.url));

/** Used once at start, when a link ends, or only where a board lacks something. */
const LAZY = [
  "src/core/bootcount.ts",
  "src/espruino/credentials.ts",
  "protocol/src/link/failures.ts",
  "src/core/limits.ts",
  "src/core/log.ts",
  ["src/core/push.ts", "src/core/push-serial.ts", "src/core/record.ts"],
  "protocol/src/link/states.ts",
  "src/espruino/chacha20poly1305.ts",
  "src/espruino/files.ts",
  "src/espruino/handshake.ts",
  "src/espruino/numbers.ts",
  "src/espruino/sha256.ts",
  "src/espruino/strict-json.ts",
  "src/serial/frames.ts",
  "src/serial/wire.ts",
  "src/espruino/utf8-escapes.ts",
  "src/espruino/write-json.ts",
  "protocol/src/crypto/session-keys.ts",
  "protocol/src/crypto/secret-keys.ts",
  "protocol/src/crypto/push-proof.ts",
  "protocol/src/crypto/hkdf.ts",
  "protocol/src/encoding/raw-member.ts",
  [
    "protocol/src/wire/for-agent.ts",
    "protocol/src/wire/auth-response.ts",
    "protocol/src/wire/envelope.ts",
    "protocol/src/wire/error.ts",
    "protocol/src/wire/seconds.ts",
  ],
  "protocol/src/wire/auth.ts",
];

/** Run for each block of bytes, or so often that making them would take too long. */
const RESIDENT: readonly string[] = [];

/** What a device program may use: the agent of core/agent.ts, and the status. */
const KEEP = [
  ...["handle", "emit", "now", "every", "after", "notification", "advice", "waitMs"],
  // Of the network passed to useNetwork.
  ...["join", "onLost", "ssid", "password"],
  // Of the object passed to sleepWhenIdle.
  ...["sleepMs", "idleMs", "awakeMs"],
];

/** Properties that occur in no message, stored file or built-in, and that no program reads. */
const OURS = [
  ...["options", "ports", "timer", "suite", "link", "network", "links", "events", "storage"],
  ...["sessions", "answered", "limits", "received", "farewell", "unstored", "lapsed", "plaintext"],
  ...["first", "second", "kind", "count", "counters", "dispatcher", "calls", "enveloped"],
  ...["fail", "finish", "move", "turn", "arm", "drop", "forget", "receive", "advance"],
  ...["queue", "blocked", "ready", "fragments", "socket", "key", "drained", "handled"],
  ...["course", "outgoing", "incoming", "queued", "window", "life", "lose", "checksum"],
  ...["epochs", "spent", "buckets", "delayed", "resume", "ageMs", "fresh", "lost", "act"],
  ...["place", "took", "into", "blanks", "digits", "put", "written", "hash", "hmac", "told"],
  ...["expire", "timeout", "allow", "accept", "release", "probe", "credit", "add"],
  ...["unhandled", "handling", "owner", "random", "secret", "refuses", "logins", "sealed", "take"],
  ...["form", "live", "word", "secure", "seal", "last"],
];

/** Built-ins that accept invalid input there; natives.ts, their only user, checks it. */
export const GUARDED = ["atob"];

/** Where the modules of an entry are looked for. */
const ENTRY = at("../src/espruino/entry.ts");
const NATIVES = ["natives.ts", "credentials.ts", "boot-seed.ts"].map((name) =>
  at(`../src/espruino/${name}`),
);
const BOARD = {
  natives: NATIVES,
  lazy: LAZY,
  stored: { file: "blindrelay", resident: RESIDENT },
  inline: true,
  global: true,
  keep: KEEP,
  ours: OURS,
};

/**
 * The packet version of a file: one of them, for a board with native SHA-256; or any, with
 * JavaScript for whatever a board lacks, which takes 5 KB more.
 */
export type Variant = AeadVersion | "any";

export const VARIANTS: readonly Variant[] = ["1", "2", "any"];

const boardOf = (variant: Variant, rekey: boolean): BundleOptions => ({
  ...BOARD,
  natives: [
    ...NATIVES,
    ...(variant === "any" ? [] : [at(`../src/espruino/suite-${variant}.ts`)]),
    ...(rekey ? [at("../src/espruino/rekey.ts")] : []),
  ],
});

/**
 * The file that a board keeps in Storage as "blindrelay". `push`: it accepts programs over the
 * relay; `rekey`: a new secret.
 */
export const buildWith =
  (links: Links, make = rememberedBundle) =>
  (variant: Variant, push = false, rekey = false): Bundle =>
    make(ENTRY, boardOf(variant, rekey), entryOf(links, push));

export const buildEspruino = buildWith("socket");

/** The variant for a board whose Wi-Fi the SDK joins. */
export const buildEspruinoWifi = buildWith("wifi");

/** The variant for a board behind a serial bridge: a UART in place of WebSockets. */
export const buildEspruinoSerial = buildWith("uart");

/**
 * Another portable module, built in the same way with a board's natives; tests on the engine use
 * it, with their own names of files.
 */
export const buildForBoard = (path: string): Bundle =>
  bundle(path, { ...BOARD, ours: [], stored: null });

/**
 * A device program (one file with `export default (agent) => { … }`, and the portable modules it
 * imports) as a module for Storage: `require("blindrelay").start(require(name).program)`.
 */
export const buildProgram = (path: string): { readonly code: string } => ({
  code: exactDecimals(bundle(path).code),
});
