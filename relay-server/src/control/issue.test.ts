/** However often a user logs in or requests session tokens, the store holds a bounded number. */
import { afterEach, beforeEach, expect, test } from "vitest";
import { type Rest, startRest } from "../http/testing/test-rest.ts";
import { addRequestsUsed } from "../store/sessions.ts";
import { type Credential, findCredential } from "./credentials.ts";
import { issueLogin, issueSession } from "./issue.ts";

let rest: Rest;
let account: Credential;
let device: Credential;
beforeEach(async () => {
  rest = await startRest();
  const token = (await rest.login()).user.api_token;
  const made = await rest.call("POST", "/agents", { token, body: { name: "x", agent_id: "x" } });
  account = await credential(token);
  device = await credential(made.json().api_token);
});
afterEach(() => rest.close());

const find = (text: string) => findCredential(rest.context.store.db, text, rest.clock.nowMs);

const credential = async (text: string): Promise<Credential> => {
  const finding = await find(text);
  if (!("credential" in finding)) throw new Error(finding.state);
  return finding.credential;
};

/** Issues one per millisecond; returns the tokens, oldest first. */
const issue = async (parent: Credential, count: number): Promise<string[]> => {
  const issued = Array.from({ length: count }, () =>
    issueSession(rest.context.store, parent, ++rest.clock.nowMs),
  );
  return (await Promise.all(issued)).map(({ token }) => token);
};

const rowsOf = async ({ hash }: Credential): Promise<number> => {
  const { db } = rest.context.store;
  return (await db.selectFrom("sessions").select("hash").where("parent", "=", hash).execute())
    .length;
};

test("an agent has 16 at a time; 16 more are remembered as ended, and older ones are deleted", async () => {
  const tokens = await issue(device, 40);
  const states = await Promise.all(tokens.map(async (token) => (await find(token)).state));
  expect(states).toEqual([
    ...Array(8).fill("unknown"),
    ...Array(16).fill("ended"),
    ...Array(16).fill("live"),
  ]);
  expect(await rowsOf(device)).toBe(32);
});

test("expired ones count among the ended ones", async () => {
  await issue(device, 32);
  rest.clock.nowMs += 86_400_000;
  await issue(device, 3);
  expect(await rowsOf(device)).toBe(19);
});

test("an account has 1,000 at a time; used ones outlive unused ones", async () => {
  const [used = "", unused = ""] = await issue(account, 1000);
  await addRequestsUsed(rest.context.store.db, {
    hash: (await credential(used)).hash,
    requests: 1,
  });
  const [newest = ""] = await issue(account, 1);
  expect((await find(used)).state).toBe("live");
  expect((await find(unused)).state).toBe("ended");
  expect((await find(newest)).state).toBe("live");
  expect(await rowsOf(account)).toBe(1001);
});

test("an account at its limit loses 64 at a time, so that most new ones need no search", async () => {
  const tokens = await issue(account, 1000);
  const live = async () =>
    (await Promise.all(tokens.map(async (token) => (await find(token)).state === "live"))).filter(
      Boolean,
    ).length;
  await issue(account, 1);
  expect(await live()).toBe(936);
  await issue(account, 63);
  expect(await live()).toBe(936);
  await issue(account, 1);
  expect(await live()).toBe(872);
});

const logIn = async (): Promise<string> => {
  const { context, clock } = rest;
  const issued = context.store.write((tx) => issueLogin(tx, account.userId, false, ++clock.nowMs));
  return (await issued).token;
};

const logInOften = async (times: number): Promise<void> => {
  for (let i = 0; i < times; i++) await logIn();
};

test("a user has 200 logins at a time; older ones end, and later are deleted with what they made", async () => {
  const first = await logIn();
  const [session = ""] = await issue(await credential(first), 1);
  await logInOften(200);
  expect((await find(first)).state).toBe("ended");
  expect((await find(session)).state).toBe("ended");
  await logInOften(200);
  expect((await find(first)).state).toBe("unknown");
  expect((await find(session)).state).toBe("unknown");
  const { db } = rest.context.store;
  const logins = db.selectFrom("sessions").select("hash").where("kind", "=", "login");
  expect(await logins.execute()).toHaveLength(400);
});

test("what a login made outlives it if it only expired", async () => {
  const login = await logIn();
  const [session = ""] = await issue(await credential(login), 1);
  rest.clock.nowMs += 3_600_000;
  await logInOften(200);
  rest.clock.nowMs += 3_600_000;
  await logIn();
  expect((await find(login)).state).toBe("unknown");
  expect((await find(session)).state).toBe("live");
});
