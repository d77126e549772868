/**
 * Every command with words to run it by and what an honest relay answers, for relays and homes that
 * are hostile; and the command line in this process.
 */
import { createHash } from "node:crypto";
import { rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { Readable } from "node:stream";
import { makeToken } from "@blindrelay/protocol";
import { makeKey } from "../base/release-files.ts";
import { exitCodeOf, makeCli } from "../cli.ts";
import type { Environment, Profile } from "../config/profile.ts";

const bytes = (n: number): Uint8Array => new Uint8Array(32).fill(n);
export const PROFILE: Profile = {
  url: "https://127.0.0.1:9", // where nothing listens: WebSockets are not played
  username: "ada",
  account_token: makeToken("account", bytes(1)),
  keyring: { "pump-7": { agent_token: makeToken("e2e", bytes(2)), packet_version: "1" } },
};

const AGENT = {
  agent_id: "pump-7",
  name: "Pump",
  online: true,
  last_seen: "2026-11-21T09:41:07.250Z",
  runtime: null,
  firmware_version: "1.4.0",
  created_at: "2026-11-21T09:41:07.250Z",
  labels: {},
  metadata: {},
};
const TOKEN = { api_token: makeToken("agent", bytes(3)), rotated_at: AGENT.created_at };
const USER = {
  id: "1",
  username: "ada",
  role: "admin",
  totp_enabled: false,
  created_at: AGENT.created_at,
};

const ROTATED = { agent_id: "pump-7", ...TOKEN };
const EXPORT = {
  agent_id: "pump-7",
  relay_url: "wss://relay.example/wss",
  created_at: AGENT.created_at,
  ...TOKEN,
};
const IMAGE = "image";
const RELEASE = {
  id: "0d9c0c3e-5f5c-4a6b-9a2f-0f6f0a6d3c11",
  runtime: "node",
  channel: "stable",
  version: "1.5.0",
  status: "draft",
  notes: "",
  size: 5,
  sha256: createHash("sha256").update(IMAGE).digest("hex"),
  signature: null,
  key_id: null,
  rollout: { percent: 100, paused: false, offered: 0, confirmed: 0, running: 0, left: 0 },
  created_at: AGENT.created_at,
  published_at: null,
};
const LOGIN = {
  access_token: makeToken("account", bytes(5)),
  token_type: "Bearer",
  expires_in: 3600,
  user: { ...USER, api_token: PROFILE.account_token },
};
const CONFIG = {
  totp: "optional",
  registration: false,
  session: { ttl: 86_400, max_requests: 10_000 },
  lockout: { failures: 5, window: 300, duration: 600 },
  packet_versions: ["1"],
  version: "0.1.0",
};

export interface Case {
  readonly words: readonly string[];
  /** What an honest relay answers, by the end of the path; nothing if it is not asked. */
  readonly honest: Readonly<Record<string, object>>;
  /** Fewer for commands that do more than REST. */
  readonly runs?: number;
  /** It waits for a relay that is away, so the server lies once. */
  readonly waits?: boolean;
  /** On standard input. */
  readonly input?: string;
  /** The exit code with an honest relay (0); others than those of REST may also come of lies. */
  readonly ends?: number;
}

const each = (words: readonly string[], answer: object, path = ""): Case => ({
  words,
  honest: { [path]: answer },
});

/** A command that asks nothing over REST. */
const alone = (words: readonly string[], more: Partial<Case> = {}): Case => ({
  words,
  honest: {},
  ...more,
});

const NAMES = ["--runtime", "node", "--channel", "stable", "--firmware-version", "1.5.0"];

const KEY = {
  id: "0b8e4c1f-7a3d-4d0e-9a55-6c2f1b7d9e10",
  name: "ci",
  scopes: ["call"],
  where: null,
  expires_at: null,
  created_at: "2026-01-01T00:00:00.000Z",
  last_used_at: null,
};

/** Every command. `folder`: what `prepare` has made. */
export const everyCommand = (folder: string): Readonly<Record<string, readonly Case[]>> => ({
  login: [
    {
      words: ["login", "--url", PROFILE.url, "--username", "ada", "--password-stdin"],
      honest: { "/auth/config": CONFIG, "/auth/login": LOGIN },
      input: "a password\n",
    },
  ],
  "auth status": [each(["auth", "status"], USER)],
  "auth token": [alone(["auth", "token"])],
  "auth rotate": [
    each(["auth", "rotate"], { ...TOKEN, api_token: makeToken("account", bytes(4)) }),
  ],
  "auth key add": [
    each(["auth", "key", "add", "ci", "--scope", "call"], {
      ...KEY,
      api_token: makeToken("key", bytes(5)),
    }),
  ],
  "auth key list": [each(["auth", "key", "list"], { items: [KEY], next_cursor: null })],
  "auth key rm": [
    {
      words: ["auth", "key", "rm", "ci"],
      honest: { "/keys": { items: [KEY], next_cursor: null }, [`/keys/${KEY.id}`]: {} },
    },
  ],
  "auth logout": [alone(["auth", "logout"])],
  "agent add": [
    each(["agent", "add", "Pump", "--id", "pump-8"], { ...AGENT, agent_id: "pump-8", ...TOKEN }),
    each(["agent", "add", "Pump"], { ...AGENT, agent_id: "pump-9", ...TOKEN }),
  ],
  "agent list": [each(["agent", "list", "--json"], { items: [AGENT], next_cursor: null })],
  "agent show": [each(["agent", "show", "pump-7"], AGENT)],
  "agent set": [each(["agent", "set", "pump-7", "--label", "site=hall-7"], AGENT)],
  "agent rm": [each(["agent", "rm", "pump-7", "--yes"], {})],
  "agent rotate": [
    each(["agent", "rotate", "pump-7"], ROTATED),
    each(["agent", "rotate", "pump-7", "--secret"], ROTATED),
  ],
  "agent rekey": [alone(["agent", "rekey", "pump-7"], { ends: 4 })],
  "agent export": [
    each(["agent", "export", "pump-7"], EXPORT),
    alone(["agent", "export", "pump-7", "--format", "keyring"]),
  ],
  "agent import": [alone(["agent", "import"], { input: JSON.stringify(PROFILE) })],
  // Ends at the state folder, which is looked at when the relay token is there.
  "agent run": [
    {
      ...each(
        ["agent", "run", join(folder, "program.mjs"), "--agent", "pump-7", "--state-dir", folder],
        EXPORT,
      ),
      ends: 7,
      waits: true,
      runs: 20,
    },
  ],
  "board report": [alone(["board", "report", "/dev/none"], { ends: 7 })],
  attach: [alone(["attach", "pump-7", "--stdio"], { ends: 4 })],
  bridge: [
    {
      ...each(["bridge", "/dev/none", "--mode", "raw", "--agent", "pump-7", "--check"], EXPORT),
      ...{ waits: true, runs: 20 },
    },
  ],
  call: [alone(["call", "pump-7", "system.info"], { ends: 4 })],
  events: [alone(["events", "pump-7"], { ends: 4 })],
  logs: [alone(["logs", "pump-7"], { ends: 4 })],
  check: [alone(["check", join(folder, "program.js")])],
  provision: [
    each(["provision", "--out", join(folder, "board"), "--id", "pump-8"], {
      ...AGENT,
      agent_id: "pump-8",
      ...TOKEN,
    }),
    each(["provision", "--target", "moddable", "--out", join(folder, "board"), "--id", "pump-8"], {
      ...AGENT,
      agent_id: "pump-8",
      ...TOKEN,
    }),
  ],
  flash: [alone(["flash", "/dev/none", "--program", join(folder, "program.js")], { ends: 7 })],
  push: [
    {
      words: ["push", join(folder, "program.js"), "--all"],
      honest: { "/agents": { items: [{ ...AGENT, online: false }], next_cursor: null } },
      ends: 4,
    },
  ],
  monitor: [alone(["monitor", "/dev/none"], { ends: 7 })],
  devices: [alone(["devices", "--no-probe"])],
  "release keygen": [alone(["release", "keygen", join(folder, "made.pem")])],
  "release publish": [
    each(
      ["release", "publish", join(folder, "image"), ...NAMES, "--key", join(folder, "key.pem")],
      RELEASE,
    ),
  ],
  "release sign": [
    {
      words: [
        ...["release", "sign", join(folder, "image"), ...NAMES, "--key", join(folder, "key.pem")],
        ...["--list", "7", "--not-after", "1d"],
      ],
      honest: {
        "/releases": { items: [RELEASE], next_cursor: null },
        [`/releases/${RELEASE.id}`]: RELEASE,
      },
    },
  ],
  "release check": [
    each(["release", "check", "--channel", "stable", "--firmware-version", "1.4.0"], {
      update_available: false,
      channel: "stable",
      current: "1.4.0",
      latest: null,
    }),
  ],
  "release verify": [alone(["release", "verify", join(folder, "image")], { ends: 2 })],
  "release list": [each(["release", "list"], { items: [RELEASE], next_cursor: null })],
  "release set": [each(["release", "set", RELEASE.id, "--publish"], RELEASE)],
  "profile list": [alone(["profile", "list"])],
  "profile show": [alone(["profile", "show"])],
  "profile set-url": [alone(["profile", "set-url", "https://relay.example"])],
  "profile restore": [alone(["profile", "restore", "--list"])],
  "profile passphrase": [
    alone(["profile", "passphrase", "--stdin"], { input: "a new passphrase" }),
  ],
  shell: [alone(["shell", "pump-7"], { input: "system.info\n", ends: 4 })],
  inspect: [alone(["inspect"], { input: "no packet\n", ends: 1 })],
  token: [alone(["token"], { input: `${PROFILE.account_token}\n` })],
  doctor: [
    {
      words: ["doctor", "pump-7"],
      honest: { "/auth/config": CONFIG, "/account": USER, "/agents/pump-7": AGENT },
      runs: 12,
      ends: 1, // without a WebSocket
    },
  ],
  completion: [alone(["completion", "bash"])],
});

/** Makes the files that the commands read. */
export const prepare = (folder: string): void => {
  writeFileSync(join(folder, "image"), IMAGE);
  for (const name of ["program.js", "program.mjs"])
    writeFileSync(join(folder, name), "export default () => undefined;\n");
  makeKey(join(folder, "key.pem"));
};

/** Removes what a command has made there, so that it can be run again. */
export const tidy = (folder: string): void => {
  for (const made of ["board", "made.pem"])
    rmSync(join(folder, made), { recursive: true, force: true });
};

/** Runs a command; its exit code, and all that it printed. */
export const run = async (
  { words, input = "" }: Case,
  env: Environment,
): Promise<{ readonly code: number; readonly said: string }> => {
  const { stdout, stderr } = process;
  const before = { stdout: stdout.write, stderr: stderr.write };
  const stdin = Object.getOwnPropertyDescriptor(process, "stdin") as PropertyDescriptor;
  const printed: string[] = [];
  const write = (text: unknown): boolean => {
    printed.push(String(text));
    return true;
  };
  Object.assign(stdout, { write });
  Object.assign(stderr, { write });
  Object.defineProperty(process, "stdin", { configurable: true, value: Readable.from([input]) });
  try {
    const code = await makeCli(env, words)
      .then((cli) => cli.parseAsync(["node", "blindrelay", ...words]))
      .then(() => 0, exitCodeOf);
    return { code, said: printed.join("") };
  } finally {
    stdout.write = before.stdout;
    stderr.write = before.stderr;
    Object.defineProperty(process, "stdin", stdin);
  }
};
