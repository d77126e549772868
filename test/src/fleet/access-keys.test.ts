/**
 * Access keys on a relay with real sockets: the command that makes them, and a search for anything
 * that a key with a selector reaches beyond its agents. `KEY_FUZZ=100000` makes it a long one.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { House, PASSWORD } from "../cli/processes.ts";
import { RawLink } from "../overload/raw-link.ts";

const COUNT = Number(process.env.KEY_FUZZ ?? "1500");
const SEED = Number(process.env.KEY_FUZZ_SEED ?? "1");
/** Messages a second of one link, below the relay's limit. */
const RATE = 80;
const LINKS = 12;
const LABELS: { readonly [agentId: string]: string } = {
  "hall-1": "hall",
  "hall-2": "hall",
  "cellar-1": "cellar",
  "cellar-2": "cellar",
  "cellar-off": "cellar",
};
const isSeen = (agentId: string): boolean => LABELS[agentId] === "hall";

const house = new House();
const key = { ci: "", call: "" };
let account = "";
const relayTokens = new Map<string, string>();

const rest = (method: string, path: string, token: string, body?: unknown) =>
  fetch(`${house.url}/api/v1${path}`, {
    method,
    headers: {
      authorization: `Bearer ${token}`,
      ...(body === undefined ? {} : { "content-type": "application/json" }),
    },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });

beforeAll(async () => {
  await house.open({ requestsPerMinute: 1_000_000 });
  const login = ["login", "--url", house.url, "--username", "ada", "--password-stdin"];
  await house.cli(login, {}, `${PASSWORD}\n`);
  account = (await house.cli(["auth", "token"])).stdout.trim();
  for (const [agent_id, site] of Object.entries(LABELS)) {
    const body = { name: agent_id, agent_id, labels: { site } };
    const made = await (await rest("POST", "/agents", account, body)).json();
    relayTokens.set(agent_id, made.api_token);
  }
  const add = (name: string, ...more: string[]) =>
    house.cli(["auth", "key", "add", name, "--where", "label.site=hall", ...more]);
  key.ci = (await add("ci", "--scope", "read", "--scope", "call")).stdout.trim();
  key.call = (await add("call", "--scope", "call", "--expires", "30d")).stdout.trim();
});
afterAll(() => house.close());

const port = (): number => Number(new URL(house.url).port);
const clientLink = (token: string, got: (message: unknown) => void, closed?: () => void) =>
  RawLink.open({
    port: port(),
    auth: { client_type: "client", api_token: token, presence: true },
    onMessage: got,
    ...(closed === undefined ? {} : { onClose: closed }),
  });
const agentLink = (agentId: string, got: (message: unknown) => void) =>
  RawLink.open({
    port: port(),
    auth: {
      client_type: "agent",
      agent_id: agentId,
      api_token: relayTokens.get(agentId),
      runtime: "test",
    },
    onMessage: got,
  });

describe("blindrelay auth key", () => {
  it("makes keys that commands take in place of the account token, and lists and removes them", async () => {
    const environment = { BLINDRELAY_URL: house.url, BLINDRELAY_ACCOUNT_TOKEN: key.ci };
    const listed = await house.cli(["agent", "list", "--json"], environment);
    const ids = JSON.parse(listed.stdout).items.map(
      ({ agent_id }: { agent_id: string }) => agent_id,
    );
    expect(ids).toEqual(["hall-1", "hall-2"]);
    const refused = await house.cli(["agent", "add", "more"], environment);
    expect([refused.code, refused.stderr]).toEqual([5, expect.stringContaining("scope agents")]);
    const keys = await house.cli(["auth", "key", "list"]);
    expect(keys.stdout).toMatch(/ci +read,call +label\.site=hall +never +20/);
    expect(keys.stdout).not.toContain("key_");

    const made = await house.cli(["auth", "key", "add", "short", "--scope", "call"]);
    let isClosed = false;
    await clientLink(
      made.stdout.trim(),
      () => undefined,
      () => {
        isClosed = true;
      },
    );
    const removed = await house.cli(["auth", "key", "rm", "short"]);
    expect([removed.code, removed.stdout]).toEqual([0, "removed short\n"]);
    await expect.poll(() => isClosed).toBe(true);
    expect((await house.cli(["auth", "key", "rm", "short"])).code).toBe(5);
    expect((await house.cli(["auth", "key", "add", "x"])).code).toBe(2);
    const wrong = ["auth", "key", "add", "x", "--scope", "call", "--where", "firmware<2.0.0"];
    expect((await house.cli(wrong)).code).toBe(2);
  });
});

describe("a key with a selector", () => {
  it("reaches nothing else, by any request or message at random", async () => {
    let state = SEED;
    const draw = (below: number): number => {
      state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
      return Math.floor((state / 2 ** 32) * below);
    };
    const pick = <Value>(from: readonly Value[]): Value => from[draw(from.length)] as Value;
    const found: string[] = [];
    const agents = new Map<string, RawLink>();
    let reached = 0;
    let heard = 0;
    for (const agentId of relayTokens.keys()) {
      if (agentId === "cellar-off") continue;
      const got = (message: unknown) => {
        if (isSeen(agentId)) reached += 1;
        else if ((message as { type?: string }).type !== "error") {
          found.push(`${agentId} got ${JSON.stringify(message)}`);
        }
      };
      agents.set(agentId, await agentLink(agentId, got));
    }
    const ids = [...Object.keys(LABELS), "nobody"];
    const sids = Array.from({ length: 40 }, (_, n) => `sid${String(n).padStart(19, "0")}`);
    const hears = (message: unknown) => {
      const text = JSON.stringify(message);
      if (text.includes("cellar")) found.push(`the key's client got ${text}`);
      if ((message as { type?: string }).type !== "error") heard += 1;
    };
    const links = await Promise.all(
      Array.from({ length: LINKS }, (_, n) => clientLink(n % 2 === 0 ? key.ci : key.call, hears)),
    );
    const packet = (sid: string) => ({ v: "1", sid, seq: draw(9), p: "AAAAAAAAAAAAAAAAAAAAAA" });
    const say = (link: RawLink, n: number): void => {
      const agent_id = pick(ids);
      const more = draw(2) === 0 ? {} : { request_id: `r${draw(99)}` };
      const payload = draw(3) === 0 ? { x: n } : packet(pick(sids));
      if (draw(3) === 0) link.send(packet(pick(sids)));
      else link.send({ type: "relay", agent_id, payload: JSON.stringify(payload), ...more });
    };
    const answer = (link: RawLink, agentId: string): void => {
      const sid = pick(sids);
      if (draw(2) === 0) link.send(packet(sid));
      else {
        const payload = JSON.stringify(draw(2) === 0 ? { from: agentId } : packet(sid));
        link.send({ type: "relay", payload, request_id: `r${draw(99)}` });
      }
    };
    const paths = [
      ...ids.flatMap((id) => [`/agents/${id}`, `/agents/${id}/export`]),
      ...["/agents", "/agents?where=label.site%3Dcellar", "/agents?name=cellar", "/account"],
      ...["/account/keys", "/admin/users", "/admin/audit", "/admin/stats", "/releases"],
      ...["/auth/token/rotate", "/auth/session", "/auth/logout", "/releases/check"],
      ...ids.map((id) => `/agents/${id}/rotate-token`),
    ];
    const ask = async (): Promise<void> => {
      const method = pick(["GET", "GET", "POST", "PATCH", "DELETE"]);
      const path = pick(paths);
      const held = draw(2) === 0 ? key.ci : key.call;
      const body = method === "GET" ? undefined : { name: "x", labels: { site: "hall" } };
      const answered = await rest(method, path, held, body);
      const text = await answered.text();
      const may =
        (method === "POST" && path === "/auth/session") ||
        (held === key.ci && method === "GET" && /^\/(agents|releases)/.test(path));
      // A refusal repeats what was asked; an answer must not name what is hidden.
      const isBad = answered.ok && (!may || text.includes("cellar"));
      if (isBad || answered.status >= 500)
        found.push(`${method} ${path}: ${answered.status} ${text}`);
    };
    let done = 0;
    while (done < COUNT && found.length === 0) {
      const beganMs = performance.now();
      const asked: Promise<void>[] = [];
      for (const link of links) {
        for (let n = 0; n < RATE / 10; n += 1, done += 1) say(link, n);
        asked.push(ask());
        done += 1;
      }
      for (const [agentId, link] of agents)
        for (let n = 0; n < RATE / 10; n += 1) answer(link, agentId);
      await Promise.all(asked);
      await sleep(Math.max(0, 100 - (performance.now() - beganMs)));
    }
    await sleep(200);
    expect(found).toEqual([]);
    // The search must not be green because nothing went through.
    expect(reached).toBeGreaterThan(COUNT / 20);
    expect(heard).toBeGreaterThan(COUNT / 100);
    for (const link of [...links, ...agents.values()]) link.close();
  }, 900_000);

  it("loses an agent whose labels change, on open bindings, in both directions", async () => {
    const got: { type?: string; code?: string; sid?: string; online?: boolean }[] = [];
    const atAgent: unknown[] = [];
    const client = await clientLink(key.call, (message) => got.push(message as object));
    const agent = await agentLink("hall-2", (message) => atAgent.push(message));
    await expect.poll(() => got.some(({ online }) => online === true)).toBe(true);
    const sid = "s".repeat(22);
    const packet = { v: "1", sid, seq: 0, p: "AAAAAAAAAAAAAAAAAAAAAA" };
    client.send({ type: "relay", agent_id: "hall-2", payload: JSON.stringify(packet) });
    await expect.poll(() => atAgent.length).toBe(1);
    const relabel = (site: string) =>
      rest("PATCH", "/agents/hall-2", account, { labels: { site } });
    await relabel("cellar");
    await expect.poll(() => got.some(({ online }) => online === false)).toBe(true);
    got.length = 0;
    agent.send(packet);
    client.send({ ...packet, sid: `${sid}.${sid}` });
    await expect.poll(() => got.length).toBe(1);
    expect(got).toMatchObject([{ type: "error", code: "AGENT_NOT_FOUND" }]);
    expect(atAgent).toHaveLength(1);
    await relabel("hall");
    await expect.poll(() => got.some(({ online }) => online === true)).toBe(true);
    agent.send(packet);
    await expect.poll(() => got.some((message) => message.sid === sid)).toBe(true);
    client.close();
    agent.close();
  });
});
