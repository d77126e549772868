/**
 * Which logins `/wss` accepts, as far as the store decides: every row of section 3 about tokens and
 * error texts.
 */
import { randomBytes } from "node:crypto";
import { makeToken, SESSION_MAX_REQUESTS } from "@blindrelay/protocol";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { AuthRequest } from "../core/ports.ts";
import { type Rest, startRest } from "../http/testing/test-rest.ts";
import { addRequestsUsed } from "../store/sessions.ts";
import { findCredential } from "./credentials.ts";
import { issueSession } from "./issue.ts";
import { drawToken, hashToken } from "./secrets.ts";
import { storeLookups } from "./token-check.ts";

const DAY_MS = 86_400_000;
const INVALID = { ok: false, code: "INVALID_TOKEN", error: "Invalid token" };

let rest: Rest;
let account: string;
let login: string;
let relayToken: string;
beforeEach(async () => {
  rest = await startRest();
  const answer = await rest.login();
  account = answer.user.api_token;
  login = answer.access_token;
  const body = { name: "pump", agent_id: "pump-7" };
  relayToken = (await rest.call("POST", "/agents", { token: account, body })).json().api_token;
});
afterEach(() => rest.close());

const ask = async (request: Partial<AuthRequest>) =>
  storeLookups(rest.context.store).authenticate({
    clientType: "client",
    address: "192.0.2.1",
    nowMs: rest.clock.nowMs,
    ...request,
  });
const asClient = (apiToken: string) => ask({ apiToken });
const asAgent = (apiToken: string, agentId = "pump-7") =>
  ask({ apiToken, agentId, clientType: "agent" });

const accepted = async (request: Promise<Awaited<ReturnType<typeof ask>>>) => {
  const result = await request;
  if (!result.ok) throw new Error(result.error);
  return result;
};

describe("accepted", () => {
  test("an account token, with a new session token each time", async () => {
    const [one, two] = [await accepted(asClient(account)), await accepted(asClient(account))];
    expect(one).toMatchObject({ role: "client", requestsUsed: 0 });
    expect(one.expiresAtMs).toBe(rest.clock.nowMs + DAY_MS);
    expect(one.sessionToken).toMatch(/^sess_/);
    expect(one.sessionHash).toBe(hashToken(one.sessionToken));
    expect(one.sessionToken).not.toBe(two.sessionToken);
  });

  test("a client that renews its account's session token, until an hour after its end", async () => {
    const { sessionToken: renews } = await accepted(asClient(account));
    const { sessionToken: agents } = await accepted(asAgent(relayToken));
    const renewedAt = async (nowMs: number, token = renews) => {
      const result = await accepted(ask({ apiToken: account, renews: token, nowMs }));
      return "renews" in result ? result.renews : undefined;
    };
    const endMs = rest.clock.nowMs + DAY_MS;
    expect(await renewedAt(rest.clock.nowMs)).toBe(hashToken(renews));
    expect(await renewedAt(endMs + 3_599_999)).toBe(hashToken(renews));
    expect(await renewedAt(endMs + 3_600_000)).toBeUndefined();
    expect(await renewedAt(rest.clock.nowMs, agents)).toBeUndefined();
    expect(await renewedAt(rest.clock.nowMs, account)).toBeUndefined();
    expect(await renewedAt(rest.clock.nowMs, drawToken("session"))).toBeUndefined();
    expect(await renewedAt(rest.clock.nowMs, "nonsense")).toBeUndefined();
  });

  test.each(["agent", "firmware"] as const)("an agent relay token as %s", async (clientType) => {
    const result = await accepted(ask({ apiToken: relayToken, agentId: "pump-7", clientType }));
    expect(result).toMatchObject({ role: "agent", agentId: "pump-7" });
  });

  test("a session token is returned unchanged, with its remaining time and count", async () => {
    const first = await accepted(asClient(account));
    await addRequestsUsed(rest.context.store.db, { hash: first.sessionHash, requests: 41 });
    rest.clock.nowMs += 5000;
    const again = await accepted(ask({ sessionToken: first.sessionToken }));
    expect(again).toEqual({ ...first, requestsUsed: 41 });
  });

  test("an agent's session token, as that agent", async () => {
    const first = await accepted(asAgent(relayToken));
    const sessionToken = first.sessionToken;
    const again = await accepted(ask({ sessionToken, agentId: "pump-7", clientType: "firmware" }));
    expect(again).toEqual(first);
  });

  test("a session token issued over REST", async () => {
    const { session_token } = (await rest.call("POST", "/auth/session", { token: login })).json();
    expect((await accepted(ask({ sessionToken: session_token }))).role).toBe("client");
  });
});

describe("refused with both kinds named", () => {
  const e2e = makeToken("e2e", new Uint8Array(32));
  test.each([
    [
      "an agent's token as a client",
      () => ask({ apiToken: relayToken }),
      "an account token (acct_)",
      "an agent relay token (agt_)",
      true,
    ],
    [
      "an account token as an agent",
      () => asAgent(account),
      "an agent relay token (agt_)",
      "an account token (acct_)",
      true,
    ],
    [
      "an access token as a client",
      () => ask({ apiToken: login }),
      "an account token (acct_)",
      "a login access token (login_)",
      true,
    ],
    [
      "an account token as a session",
      () => ask({ sessionToken: account }),
      "a client's session token (sess_)",
      "an account token (acct_)",
      true,
    ],
    [
      "an end-to-end secret",
      () => ask({ apiToken: e2e }),
      "an account token (acct_)",
      "an end-to-end secret (e2e_)",
      true,
    ],
    [
      "an agent's token that nobody has",
      () => ask({ apiToken: makeToken("agent", new Uint8Array(32)) }),
      "an account token (acct_)",
      "an agent relay token (agt_)",
      true,
    ],
    [
      "an unknown session token in the place of an account token",
      () => ask({ apiToken: drawToken("session") }),
      "an account token (acct_)",
      "a session token (sess_)",
      true,
    ],
  ] as const)("%s", async (_what, request, expected, got, counted) => {
    expect(await request()).toEqual({
      ok: false,
      code: "WRONG_TOKEN_KIND",
      error: `Expected ${expected}, got ${got}`,
      counted,
    });
  });

  test("session tokens are valid for the side that they were issued for", async () => {
    const agentSession = (await accepted(asAgent(relayToken))).sessionToken;
    const clientSession = (await accepted(asClient(account))).sessionToken;
    expect(await ask({ sessionToken: agentSession })).toMatchObject({
      code: "WRONG_TOKEN_KIND",
      error: "Expected a client's session token (sess_), got an agent's session token (sess_)",
    });
    expect(
      await ask({ sessionToken: clientSession, agentId: "pump-7", clientType: "agent" }),
    ).toMatchObject({
      code: "WRONG_TOKEN_KIND",
      error: "Expected an agent's session token (sess_), got a client's session token (sess_)",
    });
  });
});

describe("refused with exactly Invalid token", () => {
  test("a token that never existed, counted", async () => {
    const mistyped = `${account.slice(0, -1)}${account.endsWith("0") ? "1" : "0"}`;
    const unknown = makeToken("account", new Uint8Array(32));
    for (const text of [
      "",
      "x",
      mistyped,
      `${account} `,
      unknown,
      account.replace("acct", "agt"),
    ]) {
      expect(await asClient(text)).toEqual({ ...INVALID, counted: true });
    }
    expect(await ask({ sessionToken: drawToken("session") })).toEqual({
      ...INVALID,
      code: "SESSION_EXPIRED",
      counted: false,
      isUnknownSession: true,
    });
  });

  test("a valid agent token or session with another agent_id, or none, counted", async () => {
    const body = { name: "other", agent_id: "pump-8" };
    await rest.call("POST", "/agents", { token: account, body });
    const { sessionToken } = await accepted(asAgent(relayToken));
    for (const request of [
      asAgent(relayToken, "pump-8"),
      asAgent(relayToken, "nobody"),
      asAgent(relayToken, "Pump-7"),
      ask({ apiToken: relayToken, clientType: "agent" }),
      ask({ sessionToken, agentId: "pump-8", clientType: "agent" }),
    ]) {
      expect(await request).toEqual({ ...INVALID, counted: true });
    }
  });

  test("a token that was valid once, not counted: rotated, deleted, logged out", async () => {
    const clientSession = (await accepted(asClient(account))).sessionToken;
    const agentSession = (await accepted(asAgent(relayToken))).sessionToken;
    const agent = { clientType: "agent", agentId: "pump-7" } as const;
    await rest.call("POST", "/agents/pump-7/rotate-token", { token: login });
    expect(await asAgent(relayToken)).toEqual({ ...INVALID, counted: false });
    expect(await ask({ ...agent, sessionToken: agentSession })).toEqual({
      ...INVALID,
      counted: false,
    });
    expect(await asClient(relayToken)).toMatchObject({ code: "WRONG_TOKEN_KIND", counted: false });
    const exported = await rest.call("GET", "/agents/pump-7/export", { token: login });
    const fresh = exported.json().api_token;
    await accepted(asAgent(fresh));
    await rest.call("DELETE", "/agents/pump-7", { token: login });
    expect(await asAgent(fresh)).toEqual({ ...INVALID, counted: false });
    await rest.call("POST", "/auth/token/rotate", { token: login });
    expect(await asClient(account)).toEqual({ ...INVALID, counted: false });
    expect(await ask({ sessionToken: clientSession })).toEqual({ ...INVALID, counted: false });
  });
});

test("expired and used-up session tokens get their own codes, and are not counted", async () => {
  const { sessionToken, sessionHash } = await accepted(asClient(account));
  await addRequestsUsed(rest.context.store.db, {
    hash: sessionHash,
    requests: SESSION_MAX_REQUESTS,
  });
  expect(await ask({ sessionToken })).toEqual({
    ok: false,
    code: "LIMIT_EXCEEDED",
    error: "Session token used up",
    counted: false,
  });
  rest.clock.nowMs += DAY_MS;
  expect(await ask({ sessionToken })).toEqual({
    ok: false,
    code: "SESSION_EXPIRED",
    error: "Session token expired",
    counted: false,
  });
});

test("a session whose token was rotated between look-up and insert has ended from the start", async () => {
  const { store } = rest.context;
  const found = await findCredential(store.db, relayToken, rest.clock.nowMs);
  if (found.state !== "live") throw new Error(found.state);
  await rest.call("POST", "/agents/pump-7/rotate-token", { token: login });
  const { token } = await issueSession(store, found.credential, rest.clock.nowMs);
  const late = await ask({ sessionToken: token, agentId: "pump-7", clientType: "agent" });
  expect(late).toEqual({ ...INVALID, counted: false });
});

test("an agent's owner is found, and null if there is none", async () => {
  const lookups = storeLookups(rest.context.store);
  const { id } = (await rest.login()).user;
  expect(await lookups.ownerOf("pump-7")).toBe(id);
  expect(await lookups.ownerOf("nobody")).toBeNull();
});

describe("where look-ups wait for a database", () => {
  const pooled = () => {
    const pool = () => ({ used: 0, idle: 0, waiting: 0 });
    return storeLookups({ ...rest.context.store, pool });
  };
  const guess = (address: string, isWanted = () => true): AuthRequest => {
    const apiToken = makeToken("agent", randomBytes(32));
    const { nowMs } = rest.clock;
    return { apiToken, agentId: "pump-7", clientType: "agent", address, nowMs, isWanted };
  };

  test("guesses sent at once from one address are looked up until it is locked out, and no further", async () => {
    const { authenticate } = pooled();
    let failures = 0;
    const answers = Array.from({ length: 100 }, async () => {
      const result = await authenticate(guess("192.0.2.1", () => failures < 5));
      if (!result.ok && result.counted) failures += 1;
    });
    await Promise.all(answers);
    expect(failures).toBeGreaterThanOrEqual(5);
    expect(failures).toBeLessThan(5 + 8);
  });

  test("a login is looked up before most of those that another address sent earlier", async () => {
    const { authenticate } = pooled();
    const order: string[] = [];
    const addresses = [...Array<string>(100).fill("192.0.2.1"), "192.0.2.2"];
    const asked = addresses.map((address) => {
      const isWanted = () => order.push(address) > 0;
      return authenticate(guess(address, isWanted));
    });
    await Promise.all(asked);
    expect(order).toHaveLength(addresses.length);
    expect(order.indexOf("192.0.2.2")).toBeLessThan(50);
  });
});
