/**
 * Whatever a server answers over REST: a command ends with a documented exit code, never with a bug
 * of ours; it prints nothing that the relay did not say; and no secret of the keyring is lost.
 */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Readable } from "node:stream";
import { makeToken } from "@blindrelay/protocol";
import type { Command } from "commander";
import fc from "fast-check";
import { HttpResponse, http } from "msw";
import { setupServer } from "msw/node";
import { afterAll, afterEach, beforeAll, expect, it, vi } from "vitest";
import { exitCodeOf, makeCli } from "./cli.ts";
import { type Profile, writeProfile } from "./config/profile.ts";
import { makeKey } from "./release-files.ts";

const folder = mkdtempSync(join(tmpdir(), "blindrelay-hostile-"));
const path = join(folder, "default.json");
const bytes = (n: number): Uint8Array => new Uint8Array(32).fill(n);
const PROFILE: Profile = {
  url: "https://relay.example",
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
const RELEASE = {
  id: "0d9c0c3e-5f5c-4a6b-9a2f-0f6f0a6d3c11",
  runtime: "node",
  channel: "stable",
  version: "1.5.0",
  status: "draft",
  notes: "",
  size: 5,
  sha256: "a".repeat(64),
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

interface Case {
  readonly words: readonly string[];
  /** What an honest relay answers, by the end of the path. */
  readonly honest: Readonly<Record<string, object>>;
  /** Fewer for commands that do more than REST. */
  readonly runs?: number;
  /** It waits for a relay that is away, so the server lies once. */
  readonly waits?: boolean;
  /** The exit code with an honest relay (0); others than those of REST may also come of lies. */
  readonly ends?: number;
}

const each = (words: readonly string[], answer: object, path = ""): Case => ({
  words,
  honest: { [path]: answer },
});

const ELSEWHERE = "uses no REST";
const NAMES = ["--runtime", "node", "--channel", "stable", "--firmware-version", "1.5.0"];

/** Every command: how it talks REST, or that it does not. */
const COMMANDS: Readonly<Record<string, readonly Case[] | typeof ELSEWHERE>> = {
  login: [
    {
      words: ["login", "--url", PROFILE.url, "--username", "ada", "--password-stdin"],
      honest: { "/auth/config": CONFIG, "/auth/login": LOGIN },
    },
  ],
  "auth status": [each(["auth", "status"], USER)],
  "auth token": ELSEWHERE,
  "auth rotate": [
    each(["auth", "rotate"], { ...TOKEN, api_token: makeToken("account", bytes(4)) }),
  ],
  "auth logout": ELSEWHERE,
  "agent add": [
    each(["agent", "add", "Pump", "--id", "pump-8"], { ...AGENT, agent_id: "pump-8", ...TOKEN }),
    each(["agent", "add", "Pump"], { ...AGENT, agent_id: "pump-9", ...TOKEN }),
  ],
  "agent list": [each(["agent", "list", "--json"], { items: [AGENT], next_cursor: null })],
  "agent show": [each(["agent", "show", "pump-7"], AGENT)],
  "agent rm": [each(["agent", "rm", "pump-7", "--yes"], {})],
  "agent rotate": [
    each(["agent", "rotate", "pump-7"], ROTATED),
    each(["agent", "rotate", "pump-7", "--secret"], ROTATED),
  ],
  "agent export": [each(["agent", "export", "pump-7"], EXPORT)],
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
  "board report": ELSEWHERE,
  bridge: [
    {
      ...each(["bridge", "/dev/none", "--mode", "raw", "--agent", "pump-7", "--check"], EXPORT),
      ...{ waits: true, runs: 20 },
    },
  ],
  call: ELSEWHERE,
  events: ELSEWHERE,
  check: ELSEWHERE,
  provision: [
    each(["provision", "--out", join(folder, "board"), "--id", "pump-8"], {
      ...AGENT,
      agent_id: "pump-8",
      ...TOKEN,
    }),
  ],
  flash: ELSEWHERE,
  push: [
    {
      words: ["push", join(folder, "program.js"), "--all"],
      honest: { "/agents": { items: [{ ...AGENT, online: false }], next_cursor: null } },
      ends: 4,
    },
  ],
  monitor: ELSEWHERE,
  devices: ELSEWHERE,
  "release keygen": ELSEWHERE,
  "release publish": [
    each(
      ["release", "publish", join(folder, "image"), ...NAMES, "--key", join(folder, "key.pem")],
      RELEASE,
    ),
  ],
  "release check": [
    each(["release", "check", "--channel", "stable", "--firmware-version", "1.4.0"], {
      update_available: false,
      channel: "stable",
      current: "1.4.0",
      latest: null,
    }),
  ],
  "release verify": ELSEWHERE,
  "release list": [each(["release", "list"], { items: [RELEASE], next_cursor: null })],
  "release set": [each(["release", "set", RELEASE.id, "--publish"], RELEASE)],
  "profile list": ELSEWHERE,
  "profile show": ELSEWHERE,
  "profile set-url": ELSEWHERE,
  "profile restore": ELSEWHERE,
  "profile passphrase": ELSEWHERE,
  shell: ELSEWHERE,
  inspect: ELSEWHERE,
  token: ELSEWHERE,
  doctor: [
    {
      words: ["doctor", "pump-7"],
      honest: { "/auth/config": CONFIG, "/account": USER, "/agents/pump-7": AGENT },
      runs: 12,
      ends: 1, // without a WebSocket
    },
  ],
  completion: ELSEWHERE,
};

const CASES = Object.values(COMMANDS).flatMap((cases) => (cases === ELSEWHERE ? [] : cases));

const SHAPELESS = fc.oneof(
  fc.constantFrom("", "<title>Log in</title>", "null", "[]", "0", '"x"', "{", "\u0000"),
  fc.json({ maxDepth: 3 }),
);

/** An honest answer in which one member is gone or has another value. */
const damaged = (honest: object): fc.Arbitrary<string> =>
  fc
    .tuple(
      fc.constantFrom(...Object.keys(honest), "more"),
      fc.option(fc.jsonValue({ maxDepth: 1 })),
    )
    .map(([name, value]) => {
      const { [name as keyof object]: _, ...others } = honest;
      return JSON.stringify(value === null ? others : { ...others, [name]: value });
    });

/** An honest answer, but about an agent whose secret is in the keyring. */
const anotherAgent = (honest: object): fc.Arbitrary<string> =>
  fc.constant(JSON.stringify({ ...honest, agent_id: "pump-7" }));

const STATUS = fc.constantFrom(
  200,
  200,
  200,
  201,
  204,
  301,
  400,
  401,
  404,
  409,
  422,
  429,
  500,
  503,
);

const server = setupServer();
beforeAll(() => {
  server.listen({ onUnhandledFrame: "bypass" });
  writeFileSync(join(folder, "image"), "image");
  for (const name of ["program.js", "program.mjs"])
    writeFileSync(join(folder, name), "export default () => undefined;\n");
  makeKey(join(folder, "key.pem"));
});
afterEach(() => server.resetHandlers());
afterAll(() => {
  server.close();
  rmSync(folder, { recursive: true, force: true });
});

const read = (): string => readFileSync(path, "utf8");

const namesOf = (command: Command, before: readonly string[] = []): string[] =>
  command.commands.flatMap((each) => {
    const words = [...before, each.name()];
    return each.commands.length === 0 ? [words.join(" ")] : namesOf(each, words);
  });

it("knows every command", async () => {
  expect(Object.keys(COMMANDS).sort()).toEqual(namesOf(await makeCli({})).sort());
});

/** What a server may send in the place of one honest answer. */
interface Lie {
  readonly status: number;
  readonly body: string;
}

const lieAbout = (honest: object): fc.Arbitrary<Lie> =>
  fc.record({
    status: STATUS,
    body: fc.oneof(damaged(honest), anotherAgent(honest), SHAPELESS),
  });

const answerOf = ({ status, body }: Lie): Response => {
  const headers = { "content-type": "application/json", location: "https://a.example/" };
  return new HttpResponse(status === 204 ? null : body, { status, headers });
};

/** Runs the command against a server that lies at `place`; what it said and how it ended. */
const run = async ({ words, honest, waits = false }: Case, place: string, lie: Lie) => {
  const printed: string[] = [];
  const write = (text: unknown): boolean => {
    printed.push(String(text));
    return true;
  };
  const spies = [
    vi.spyOn(process.stdout, "write").mockImplementation(write),
    vi.spyOn(process.stderr, "write").mockImplementation(write),
    vi.spyOn(process, "stdin", "get").mockReturnValue(Readable.from(["a password\n"]) as never),
  ];
  let hasLied = false;
  server.use(
    http.all("https://relay.example/api/v1/*", ({ request }) => {
      const { pathname } = new URL(request.url);
      const end = Object.keys(honest).find((each) => pathname.endsWith(each));
      const isHonest = end !== place || (waits && hasLied);
      if (end !== undefined && isHonest) return HttpResponse.json(honest[end]);
      hasLied = true;
      return answerOf(lie);
    }),
  );
  try {
    const code = await makeCli({ BLINDRELAY_CONFIG_DIR: folder }, words)
      .then((cli) => cli.parseAsync(["node", "blindrelay", ...words]))
      .then(() => 0, exitCodeOf);
    return { code, said: printed.join(""), hasLied };
  } finally {
    for (const spy of spies) spy.mockRestore();
    server.resetHandlers();
    rmSync(join(folder, "board"), { recursive: true, force: true });
  }
};

it.each(CASES)("$words ends well, whatever answers", async (each) => {
  const { words, honest, runs = 30, ends = 0 } = each;
  const places = fc.constantFrom(...Object.keys(honest)).chain((place) =>
    fc.record({
      place: fc.constant(place),
      lie: lieAbout(honest[place] as object),
    }),
  );
  const [truth = ["", {}]] = Object.entries(honest);
  const told = { status: 200, body: JSON.stringify(truth[1]) };
  writeProfile(path, PROFILE);
  expect(
    (await run(each, truth[0], words[1] === "rm" ? { ...told, status: 204 } : told)).code,
  ).toBe(ends);
  let lies = 0;
  await fc.assert(
    fc.asyncProperty(places, async ({ place, lie }) => {
      writeProfile(path, PROFILE);
      const { code, said, hasLied } = await run(each, place, lie);
      if (hasLied) lies++;
      expect([0, 2, 4, 5, 6, ends]).toContain(code);
      expect(said).not.toMatch(/undefined|NaN|\[object|a bug in blindrelay/);
      // Whatever the relay claims, the only copy of the device's secret is still there.
      const isMeant = words[1] === "rm" || (words.includes("--secret") && code === 0);
      if (!isMeant) expect(read()).toContain(PROFILE.keyring["pump-7"]?.agent_token);
      if (code !== 0) expect(read()).toContain(PROFILE.account_token);
    }),
    { numRuns: runs },
  );
  // A command that asks nothing, or no longer what the table says, would pass without a test.
  expect(lies).toBeGreaterThan(runs / 10);
});
