/**
 * Commands that make and end agents, on a relay that forgets, fails or is another one than that of
 * the profile: what is told is so, and no secret of the keyring is lost.
 */
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { makeToken } from "@blindrelay/protocol";
import { HttpResponse, http } from "msw";
import { setupServer } from "msw/node";
import { afterAll, afterEach, beforeAll, beforeEach, expect, it } from "vitest";
import { PROFILE, run } from "../testing/every-command.ts";
import type { Environment } from "./profile.ts";
import { readProfile, writeProfile } from "./profile.ts";
import { Settings } from "./settings.ts";

const OTHER = "https://127.0.0.2:9";
const SECRET = PROFILE.keyring["pump-7"]?.agent_token;
const NO_BOARD = join(tmpdir(), "blindrelay-no-board");
const AT = "2026-11-21T09:41:07.250Z";
const RELAY_TOKEN = makeToken("agent", new Uint8Array(32).fill(3));
const AGENT = {
  ...{ online: false, last_seen: null, runtime: null, firmware_version: null, created_at: AT },
  ...{ labels: {}, metadata: {} },
};

let folder: string;
let path: string;
let home: Environment;
let elsewhere: Environment;
/** Of each relay. */
let agents: Map<string, Set<string>>;
/** What a relay answers to the creation of an agent, which it has done. */
let lostAnswer: (() => Response) | null;

const answer = async ({ request }: { readonly request: Request }): Promise<Response> => {
  const { origin, pathname } = new URL(request.url);
  const known = agents.get(origin) as Set<string>;
  const [, id = "", rest] = /\/agents\/([^/]+)(\/.*)?$/.exec(pathname) ?? [];
  const token = { agent_id: id, api_token: RELAY_TOKEN };
  if (request.method === "DELETE") {
    known.delete(id);
    return new HttpResponse(null, { status: 204 });
  }
  if (rest === "/export")
    return HttpResponse.json({ ...token, relay_url: "wss://relay.example/wss", created_at: AT });
  if (rest === "/rotate-token") return HttpResponse.json({ ...token, rotated_at: AT });
  if (id !== "") return HttpResponse.json({ ...AGENT, agent_id: id, name: id });
  if (request.method === "GET") {
    const items = [...known].map((agent_id) => ({ ...AGENT, agent_id, name: agent_id }));
    return HttpResponse.json({ items, next_cursor: null });
  }
  const { agent_id, name } = (await request.json()) as { agent_id: string; name: string };
  known.add(agent_id);
  return lostAnswer?.() ?? HttpResponse.json({ ...AGENT, ...token, agent_id, name });
};

const server = setupServer(
  ...[PROFILE.url, OTHER].map((url) => http.all(`${url}/api/v1/*`, answer)),
);

beforeAll(() => server.listen({ onUnhandledFrame: "bypass" }));
afterAll(() => server.close());
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "blindrelay-keyring-"));
  path = join(folder, "default.json");
  writeProfile(path, PROFILE);
  home = { BLINDRELAY_CONFIG_DIR: folder };
  const token = PROFILE.account_token;
  elsewhere = { ...home, BLINDRELAY_URL: OTHER, BLINDRELAY_ACCOUNT_TOKEN: token };
  agents = new Map([
    [PROFILE.url, new Set(["pump-7"])],
    [OTHER, new Set(["pump-7"])],
  ]);
  lostAnswer = null;
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const at = (relay: string): string[] => [...(agents.get(relay) ?? [])];
const kept = (id = "pump-7"): string | undefined => readProfile(path)?.keyring[id]?.agent_token;
const list = (...lines: string[]): string => {
  const file = join(folder, "devices.csv");
  writeFileSync(file, `name,id,labels\n${lines.join("\n")}\n`);
  return file;
};

it.each([
  ["add", ["agent", "add", "Pump", "--id", "pump-7"]],
  ["rotate --secret", ["agent", "rotate", "pump-7", "--secret"]],
  ["provision --id", ["provision", "--out", NO_BOARD, "--id", "pump-7"]],
  ["provision --agent", ["provision", "--out", NO_BOARD, "--agent", "pump-7"]],
])("%s does not replace the secret of the profile's own relay", async (_what, words) => {
  agents.set(OTHER, new Set());
  const { code, said } = await run({ words, honest: {} }, elsewhere);
  expect([code, said]).toEqual([2, expect.stringContaining(`pump-7 is for ${PROFILE.url}`)]);
  expect([kept(), at(OTHER)]).toEqual([SECRET, []]);
});

it("a relay that has moved to where secrets were noted for has them as its own", async () => {
  const words = ["agent", "add", "New", "--id", "new-1"];
  expect((await run({ words, honest: {} }, elsewhere)).code).toBe(0);
  expect(readProfile(path)?.keyring["new-1"]?.relay).toBe(OTHER);
  expect((await run({ words: ["profile", "set-url", OTHER], honest: {} }, home)).code).toBe(0);
  expect(readProfile(path)).toMatchObject({ url: OTHER, account_token: PROFILE.account_token });
  expect(readProfile(path)?.keyring["new-1"]?.relay).toBeUndefined();
  expect([kept(), kept("new-1")]).toEqual([SECRET, expect.stringMatching(/^e2e_/)]);
});

it("rm of another relay's agent leaves the secret of the one at home", async () => {
  const words = ["agent", "rm", "pump-7", "--yes"];
  const { code, said } = await run({ words, honest: {} }, elsewhere);
  expect([code, kept(), at(OTHER)]).toEqual([0, SECRET, []]);
  expect(said).toContain("its secret stays in the keyring");
  expect((await run({ words, honest: {} }, home)).code).toBe(0);
  expect([kept(), at(PROFILE.url)]).toEqual([undefined, []]);
});

it("a list for another relay is refused where its agents are known, and nothing is made", async () => {
  agents.set(OTHER, new Set());
  const words = ["agent", "add", "--from", list("New,new-1,", "Pump,pump-7,")];
  const { code, said } = await run({ words, honest: {} }, elsewhere);
  expect([code, said]).toEqual([2, expect.stringContaining(`pump-7 is for ${PROFILE.url}`)]);
  expect([kept(), at(OTHER)]).toEqual([SECRET, []]);
});

it("an agent that another relay than the profile's has is used and ended there alone", async () => {
  const add = (...lines: string[]) =>
    run({ words: ["agent", "add", "--from", list(...lines)], honest: {} }, elsewhere);
  const problem = { type: "about:blank", title: "Title", status: 503, code: "UNAVAILABLE" };
  lostAnswer = () => HttpResponse.json(problem, { status: 503 });
  expect((await add("New,new-1,")).code).toBe(4);
  lostAnswer = null;
  expect((await add("New,new-1,")).code).toBe(0);
  expect((await add("New,new-1,", "New,new-2,")).said).toContain("1 made, 1 were there already");
  const made = kept("new-1");
  const rotate = ["agent", "rotate", "new-1", "--secret"];
  const refused = await run({ words: rotate, honest: {} }, home);
  expect([refused.code, refused.said]).toEqual([2, expect.stringContaining(`is for ${OTHER}`)]);
  expect(kept("new-1")).toBe(made);
  expect((await run({ words: rotate, honest: {} }, elsewhere)).code).toBe(0);
  const out = join(folder, "board");
  const board = ["provision", "--out", out, "--agent", "new-1"];
  expect((await run({ words: board, honest: {} }, elsewhere)).code).toBe(0);
  const exporting = ["agent", "export", "new-1", "--format", "keyring"];
  const exported = await run({ words: exporting, honest: {} }, home);
  expect(JSON.parse(exported.said)).toEqual({
    url: OTHER,
    keyring: { "new-1": { agent_token: kept("new-1"), packet_version: expect.any(String) } },
  });
  const remove = ["agent", "rm", "new-1", "--yes"];
  expect((await run({ words: remove, honest: {} }, elsewhere)).code).toBe(0);
  expect([kept("new-1"), kept()]).toEqual([undefined, SECRET]);
});

it("a relay of this machine is one relay under all its names", () => {
  writeProfile(path, { ...PROFILE, url: "http://localhost:8080" });
  const otherHome = (url: string) =>
    new Settings({ ...home, BLINDRELAY_URL: url }, "default").otherHome();
  expect(otherHome("http://127.0.0.1:8080")).toBe(null);
  expect(otherHome("ws://[::1]:8080/wss")).toBe(null);
  for (const other of ["http://127.0.0.1:8081", "http://127.0.0.2:8080", "https://localhost:8080"])
    expect(otherHome(other), other).toBe("http://localhost:8080");
});

it("a list makes again what the relay has lost, under the secret that its device has", async () => {
  agents.set(PROFILE.url, new Set());
  const words = ["agent", "add", "--from", list("Pump,pump-7,")];
  const { code, said } = await run({ words, honest: {} }, home);
  expect([code, said]).toEqual([0, expect.stringContaining("1 made, 0 were there already")]);
  expect([kept(), at(PROFILE.url)]).toEqual([SECRET, ["pump-7"]]);
});

it.each([
  ["CONFLICT", 409],
  ["FORBIDDEN", 403],
])(
  "a list leaves alone what a relay hides from the token and refuses with %s",
  async (code, status) => {
    agents.set(PROFILE.url, new Set());
    const problem = { type: "about:blank", title: "Title", status, code };
    lostAnswer = () => HttpResponse.json(problem, { status });
    const words = ["agent", "add", "--from", list("Pump,pump-7,")];
    const known = await run({ words, honest: {} }, home);
    expect([known.code, known.said]).toEqual([0, expect.stringContaining("0 made, 1 were there")]);
    expect(kept()).toBe(SECRET);
    agents.set(PROFILE.url, new Set());
    const unknown = ["agent", "add", "--from", list("New,new-1,")];
    expect((await run({ words: unknown, honest: {} }, home)).code).toBe(5);
  },
);

it("an agent that was made before its answer was lost gets its secret at the next run", async () => {
  const problem = { type: "about:blank", title: "Title", status: 503, code: "UNAVAILABLE" };
  lostAnswer = () => HttpResponse.json(problem, { status: 503 });
  const words = ["agent", "add", "--from", list("New,new-1,")];
  expect((await run({ words, honest: {} }, home)).code).toBe(4);
  lostAnswer = null;
  const { code, said } = await run({ words, honest: {} }, home);
  expect([code, said]).toEqual([0, expect.stringContaining("1 made")]);
  expect(kept("new-1")).toMatch(/^e2e_/);
});

it.skipIf(!existsSync("/dev/full"))("a device's file is whole if it is there", async () => {
  const out = join(folder, "files");
  const words = ["agent", "add", "--from", list("Pump,pump-7,"), "--out", out];
  writeFileSync(out, "no folder");
  const refused = await run({ words, honest: {} }, home);
  expect([refused.code, refused.said]).toEqual([2, expect.stringContaining("cannot write")]);
  rmSync(out);
  mkdirSync(out);
  symlinkSync("/dev/full", join(out, `pump-7.env.${process.pid}.new`));
  const { code, said } = await run({ words, honest: {} }, home);
  expect([code, said]).toEqual([2, expect.stringMatching(/run the same command .*ENOSPC/s)]);
  expect((await run({ words, honest: {} }, home)).code).toBe(0);
  expect(readFileSync(join(out, "pump-7.env"), "utf8")).toContain(SECRET);
});

it.each(["none", "loop"])(
  "a report of calls that cannot be written is told before any call: %s",
  async (at) => {
    symlinkSync("loop", join(folder, "loop"));
    const junit = join(folder, at, "calls.xml");
    const words = ["call", "--where", "id=pump-7", "valve.open", "--junit", junit];
    const { code, said } = await run({ words, honest: {} }, home);
    expect([code, said]).toEqual([2, expect.stringContaining(`cannot write ${junit}`)]);
  },
);

it("calls that cannot be made leave the file of their report as it was", async () => {
  const junit = join(folder, "calls.xml");
  // Nothing listens at the profile's relay.
  const words = ["call", "--where", "id=pump-7", "valve.open", "--junit", junit];
  expect((await run({ words, honest: {} }, home)).code).toBe(4);
  expect(existsSync(junit)).toBe(false);
  writeFileSync(junit, "earlier");
  expect((await run({ words, honest: {} }, home)).code).toBe(4);
  expect(readFileSync(junit, "utf8")).toBe("earlier");
});

it("provision removes the agent again if the keyring cannot take its secret", async () => {
  const out = join(folder, "board");
  // Another process is in the place of the lock.
  mkdirSync(`${path}.lock`);
  const words = ["provision", "--out", out, "--id", "new-1"];
  const { code, said } = await run({ words, honest: {} }, home);
  expect([code, said]).toEqual([2, expect.stringContaining("cannot write")]);
  expect(at(PROFILE.url)).toEqual(["pump-7"]);
});
