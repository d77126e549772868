/**
 * Whatever a server answers over REST: a command ends with a documented exit code, never with a bug
 * of ours; it prints nothing that the relay did not say; and no secret of the keyring is lost.
 */
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { makeToken } from "@blindrelay/protocol";
import fc from "fast-check";
import { HttpResponse, http } from "msw";
import { setupServer } from "msw/node";
import { afterAll, afterEach, beforeAll, expect, it, vi } from "vitest";
import { exitCodeOf, makeCli } from "./cli.ts";
import { type Profile, writeProfile } from "./config/profile.ts";

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

/** Commands, and what an honest relay answers. */
const COMMANDS: readonly (readonly [readonly string[], object])[] = [
  [["agent", "list", "--json"], { items: [AGENT], next_cursor: null }],
  [["agent", "show", "pump-7"], AGENT],
  [["agent", "add", "Pump", "--id", "pump-8"], { ...AGENT, agent_id: "pump-8", ...TOKEN }],
  [["agent", "add", "Pump"], { ...AGENT, agent_id: "pump-9", ...TOKEN }],
  [["agent", "rotate", "pump-7"], { agent_id: "pump-7", ...TOKEN }],
  [["agent", "rotate", "pump-7", "--secret"], { agent_id: "pump-7", ...TOKEN }],
  [
    ["agent", "export", "pump-7"],
    {
      agent_id: "pump-7",
      relay_url: "wss://relay.example/wss",
      created_at: AGENT.created_at,
      ...TOKEN,
    },
  ],
  [["agent", "rm", "pump-7", "--yes"], {}],
  [["auth", "status"], USER],
  [["auth", "rotate"], { ...TOKEN, api_token: makeToken("account", bytes(4)) }],
  [["release", "list"], { items: [], next_cursor: null }],
];

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
beforeAll(() => server.listen());
afterEach(() => server.resetHandlers());
afterAll(() => {
  server.close();
  rmSync(folder, { recursive: true, force: true });
});

const read = (): string => readFileSync(path, "utf8");

it.each(COMMANDS)("%j ends well, whatever answers", async (words, honest) => {
  const printed: string[] = [];
  const write = (text: unknown): boolean => {
    printed.push(String(text));
    return true;
  };
  vi.spyOn(process.stdout, "write").mockImplementation(write);
  vi.spyOn(process.stderr, "write").mockImplementation(write);
  try {
    await fc.assert(
      fc.asyncProperty(
        STATUS,
        fc.oneof(damaged(honest), anotherAgent(honest), SHAPELESS),
        async (status, body) => {
          writeProfile(path, PROFILE);
          printed.length = 0;
          server.use(
            http.all("https://relay.example/api/v1/*", () =>
              status === 204
                ? new HttpResponse(null, { status })
                : new HttpResponse(body, {
                    status,
                    headers: { "content-type": "application/json", location: "https://a.example/" },
                  }),
            ),
          );
          const code = await makeCli({ BLINDRELAY_CONFIG_DIR: folder }, words)
            .then((cli) => cli.parseAsync(["node", "blindrelay", ...words]))
            .then(() => 0, exitCodeOf);
          const said = printed.join("");
          expect([0, 2, 4, 5, 6]).toContain(code);
          expect(said).not.toMatch(/undefined|NaN|\[object|a bug in blindrelay/);
          // Whatever the relay claims, the only copy of the device's secret is still there.
          const isMeant = words[1] === "rm" || (words.includes("--secret") && code === 0);
          if (!isMeant) expect(read()).toContain(PROFILE.keyring["pump-7"]?.agent_token);
          if (code !== 0) expect(read()).toContain(PROFILE.account_token);
        },
      ),
      { numRuns: 60 },
    );
  } finally {
    vi.restoreAllMocks();
  }
});
