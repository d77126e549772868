/**
 * Behaviour over time: waits, pings, lockout, the life of a session. The relay's clock stands still
 * until a test advances it; everything else, including sockets and the relay's tick, is as usual.
 */
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import type { Message, RawWebSocket } from "./raw-websocket.ts";
import { type Account, clientAuth, type RegisteredAgent, Relay } from "./relay.ts";

const MAX_REQUESTS = 10_000;

let relay: Relay;
let account: Account;
let device: RegisteredAgent;
beforeAll(async () => {
  relay = await new Relay().start({ settings: { rateBurst: 2 * MAX_REQUESTS } });
  account = await relay.admin();
});
beforeEach(async () => {
  device = await relay.device(account);
});
afterAll(() => relay.close());

const asClient = (more?: object) => clientAuth(account, more);

/**
 * A silent link: its end, 30 s after it began, shows that the relay has done what was due by then.
 */
const openSilent = async (): Promise<{ ended: () => Promise<void> }> => {
  const link = await relay.open();
  return { ended: async () => expect(await link.nextOf(null)).toEqual({ closed: 1008 }) };
};

/** Advances the clock by 30 s, and returns when the relay has done what was due. */
const thirtySeconds = async (): Promise<void> => {
  const silent = await openSilent();
  relay.advance(30);
  await silent.ended();
};

/** The received pings, and anything else except presence. */
const heard = async (link: RawWebSocket): Promise<Message[]> =>
  (await link.soFar()).filter(({ type }) => type !== "agent_status");

/** Fails once from an address; returns `retry_after`. */
const guess = async (address: string): Promise<number> => {
  const { link, answer } = await relay.auth(asClient({ api_token: "guess" }), address);
  link.destroy();
  expect(answer).toMatchObject({ type: "auth_response", status: "failed" });
  return answer.retry_after;
};

const mayEnter = async (address: string): Promise<boolean> => {
  const { link, answer } = await relay.auth(asClient(), address);
  link.destroy();
  return answer.status === "authenticated";
};

const lockOut = async (address: string): Promise<void> => {
  for (let i = 0; i < 5; i++) await guess(address);
};

/**
 * Uses up a session token to the last request, and returns the answer to one more. Once for all
 * tests.
 */
const exhaust = async () => {
  const token = await relay.sessionToken(account.accountToken);
  const { link } = await relay.auth({ client_type: "client", session_token: token });
  const request = { v: "1", sid: "nobody-knows", seq: 1, p: "AAAA" };
  const codes = new Map<string, number>();
  const round = 500;
  for (let sent = 0; sent < MAX_REQUESTS; sent += round) {
    for (let i = 0; i < round; i++) link.send(request);
    for (let i = 0; i < round; i++) {
      const { code } = await link.nextOf("error");
      codes.set(code, (codes.get(code) ?? 0) + 1);
    }
  }
  link.send(request);
  const [last, end] = [await link.nextOf("error"), await link.next()];
  // Asked at once: the count is saved in real time, and other tests let an hour pass in a moment.
  const { answer: again } = await relay.auth({ client_type: "client", session_token: token });
  return { codes, last, end, again };
};
let exhausted: ReturnType<typeof exhaust> | undefined;
const usedUp = () => {
  exhausted ??= exhaust();
  return exhausted;
};

test("state.upgraded", async () => {
  const silent = await openSilent();
  relay.advance(0.1);
  const link = await relay.open();
  relay.advance(29.9);
  await silent.ended();
  link.send({ type: "auth", ...asClient() });
  expect(await link.next()).toMatchObject({ status: "authenticated" });
  // The timer was for authentication: an authenticated link stays.
  await thirtySeconds();
  expect(await heard(link)).toEqual([{ type: "ping" }]);
});

test("state.auth_timeout", async () => {
  const link = await relay.open();
  relay.advance(30);
  expect(await link.nextOf("closed")).toEqual({ closed: 1008 });
});

test("state.authenticated", async () => {
  const { link, answer } = await relay.auth(asClient());
  expect(answer).toMatchObject({ type: "auth_response", status: "authenticated" });
  link.send({ type: "relay", agent_id: "nobody", payload: "x" });
  expect(await link.next()).toMatchObject({ code: "AGENT_NOT_FOUND" });
});

test("state.refused", async () => {
  const { answer } = await relay.auth(asClient({ api_token: "guess" }));
  expect(answer).toMatchObject({
    type: "auth_response",
    status: "failed",
    error: expect.any(String),
    retry_after: expect.any(Number),
  });
});

test("state.after_refusal", async () => {
  const link = await relay.open();
  for (let i = 0; i < 2; i++) {
    link.send({ type: "auth", ...asClient({ api_token: "guess" }) });
    expect(await link.next()).toMatchObject({ status: "failed" });
  }
  link.send({ type: "auth", ...asClient() });
  expect(await link.next()).toMatchObject({ status: "authenticated" });
  const stubborn = await relay.open();
  for (let i = 0; i < 3; i++) stubborn.send({ type: "auth", ...asClient({ api_token: "guess" }) });
  for (let i = 0; i < 3; i++) expect(await stubborn.next()).toMatchObject({ status: "failed" });
  expect(await stubborn.next()).toEqual({ closed: 1008 });
  // The remaining time continues to decrease.
  const slow = await relay.open();
  relay.advance(20);
  slow.send({ type: "auth", ...asClient({ api_token: "guess" }) });
  expect(await slow.next()).toMatchObject({ status: "failed" });
  relay.advance(10);
  expect(await slow.nextOf("closed")).toEqual({ closed: 1008 });
});

test("state.pings_missed", async () => {
  for (const link of [await relay.client(account), await relay.agent(device)]) {
    relay.advance(30);
    expect(await link.nextOf("ping")).toEqual({ type: "ping" });
    relay.advance(30);
    expect(await link.nextOf("ping")).toEqual({ type: "ping" });
    relay.advance(30);
    expect(await link.nextOf("closed")).toEqual({ closed: 1008 });
  }
});

test("state.limit_exceeded", async () => {
  const { last, end } = await usedUp();
  expect(last).toMatchObject({ type: "error", code: "LIMIT_EXCEEDED" });
  expect(end).toEqual({ closed: 1008 });
});

test("presence.online", async () => {
  const user = await relay.user();
  const own = await relay.device(user);
  const clients = [await relay.client(user), await relay.client(user)];
  await relay.agent(own);
  for (const client of clients) {
    expect(await client.next()).toMatchObject({
      type: "agent_status",
      agent_id: own.agentId,
      online: true,
    });
  }
});

test("presence.offline", async () => {
  const user = await relay.user();
  const own = await relay.device(user);
  const clients = [await relay.client(user), await relay.client(user)];
  const agent = await relay.agent(own);
  agent.destroy(); // a power cut
  for (const client of clients) {
    const told = [await client.next(), await client.next()].map(({ online }) => online);
    expect(told).toEqual([true, false]);
  }
});

test("wss.ping", async () => {
  const links = [await relay.client(account), await relay.agent(device)];
  for (let i = 0; i < 4; i++) {
    relay.advance(30);
    for (const link of links) {
      expect(await link.nextOf("ping")).toEqual({ type: "ping" });
      link.send({ type: "pong" });
    }
  }
});

test("wss.pong", async () => {
  // Whatever else a peer sends, and whatever its library answers automatically: only `pong` counts.
  const busy = await relay.client(account, { answersControlPings: true });
  const faithful = await relay.client(account);
  for (let i = 0; i < 2; i++) {
    relay.advance(30);
    await busy.nextOf("ping");
    busy.send({ v: "1", sid: "nobody-knows", seq: 1, p: "AAAA" });
    expect(await busy.nextOf("error")).toMatchObject({ code: "UNKNOWN_SESSION" });
    await faithful.nextOf("ping");
    faithful.send({ type: "pong" });
    await faithful.soFar();
  }
  relay.advance(30);
  expect(await busy.nextOf("closed")).toEqual({ closed: 1008 });
  expect(await faithful.nextOf("ping")).toEqual({ type: "ping" });
});

test("auth.lockout", async () => {
  const address = relay.freshAddress();
  for (let i = 0; i < 4; i++) {
    expect(await guess(address)).toBe(0);
    relay.advance(74); // so the fifth comes 296 s after the first
  }
  expect(await guess(address)).toBe(600);
  expect(await mayEnter(address)).toBe(false);
  relay.advance(599);
  expect(await mayEnter(address)).toBe(false);
  relay.advance(1);
  expect(await mayEnter(address)).toBe(true);
});

test("event.websocket_only", async () => {
  const { json } = await relay.root("GET", "/api/asyncapi.json");
  expect(json.asyncapi).toMatch(/^3\./);
  expect(Object.values<{ address: string }>(json.channels).map(({ address }) => address)).toEqual([
    "/wss",
  ]);
});

test("event.ping", async () => {
  const links = [
    await relay.client(account),
    await relay.agent(device),
    await relay.client(await relay.user()),
  ];
  relay.advance(30);
  for (const link of links) expect(await link.nextOf("ping")).toEqual({ type: "ping" });
});

test("event.agent_status", async () => {
  const user = await relay.user();
  const own = await relay.device(user);
  const client = await relay.client(user);
  const stranger = await relay.client(account);
  await (await relay.agent(own)).close();
  expect(await client.next()).toMatchObject({ type: "agent_status", online: true });
  expect(await client.next()).toMatchObject({ type: "agent_status", online: false });
  // Not to agents, and not to other users' clients.
  const about = (await stranger.soFar()).filter(({ agent_id }) => agent_id === own.agentId);
  expect(about).toEqual([]);
});

test("event.limit_exceeded", async () => {
  const { codes, last } = await usedUp();
  expect([...codes.keys()]).toEqual(["UNKNOWN_SESSION"]);
  expect(last.code).toBe("LIMIT_EXCEEDED");
});

test("error.auth_timeout", async () => {
  // Also for peers that send messages but do not authenticate.
  const link = await relay.open();
  link.send({ type: "pong" });
  expect(await link.next()).toMatchObject({ code: "AUTH_REQUIRED" });
  relay.advance(30);
  expect(await link.next()).toMatchObject({ type: "error", code: "AUTH_TIMEOUT" });
  expect(await link.next()).toEqual({ closed: 1008 });
});

test("error.lockout", async () => {
  const [address, other] = [relay.freshAddress(), relay.freshAddress()];
  await lockOut(address);
  expect(await guess(address)).toBe(600);
  relay.advance(250);
  expect(await guess(address)).toBe(350);
  expect(await mayEnter(other)).toBe(true);
  relay.advance(350);
  expect(await mayEnter(address)).toBe(true);
});

test("error.limit_exceeded", async () => {
  const { last, again } = await usedUp();
  expect(last).toMatchObject({ type: "error", error: expect.stringMatching(/session.*request/i) });
  // The token is used up for good; a new session continues.
  expect(again).toMatchObject({ status: "failed", error: "Session token used up" });
  expect((await relay.auth(asClient())).answer.status).toBe("authenticated");
});

test("error.pings_missed", async () => {
  const link = await relay.client(account, { answersControlPings: true });
  for (let i = 0; i < 2; i++) {
    relay.advance(30);
    await link.nextOf("ping");
  }
  relay.advance(30);
  expect(await link.nextOf("closed")).toEqual({ closed: 1008 });
});

test("limit.auth_wait", async () => {
  const silent = await openSilent();
  relay.advance(0.1);
  const link = await relay.open();
  relay.advance(29.9);
  await silent.ended();
  link.send({ type: "pong" });
  expect(await link.next()).toMatchObject({ code: "AUTH_REQUIRED" }); // it is still there
  relay.advance(0.1);
  expect(await link.nextOf("closed")).toEqual({ closed: 1008 });
});

test("limit.ping_interval", async () => {
  const link = await relay.client(account);
  for (let i = 0; i < 5; i++) {
    await thirtySeconds();
    expect(await heard(link)).toEqual([{ type: "ping" }]);
    link.send({ type: "pong" });
  }
});

test("limit.missed_pings", async () => {
  const link = await relay.client(account);
  for (let i = 0; i < 3; i++) {
    relay.advance(30);
    await link.nextOf("ping"); // which is missed
    relay.advance(30);
    await link.nextOf("ping");
    link.send({ type: "pong" });
    expect(await heard(link)).toEqual([]);
  }
});

test("limit.requests", async () => {
  const { codes, last } = await usedUp();
  expect(codes.get("UNKNOWN_SESSION")).toBe(MAX_REQUESTS);
  expect(last.code).toBe("LIMIT_EXCEEDED");
});

test("limit.session_lifetime", async () => {
  const session_token = await relay.sessionToken(account.accountToken);
  const { link } = await relay.auth({ client_type: "client", session_token });
  relay.advance(86_400);
  expect(await link.nextOf("error")).toMatchObject({ code: "SESSION_EXPIRED" });
  expect(await link.next()).toEqual({ closed: 1008 });
  const { answer } = await relay.auth({ client_type: "client", session_token });
  expect(answer).toMatchObject({ status: "failed", error: "Session token expired" });
});

test("limit.auth_failures", async () => {
  const [within, beyond] = [relay.freshAddress(), relay.freshAddress()];
  for (const address of [within, beyond]) {
    for (let i = 0; i < 4; i++) expect(await guess(address)).toBe(0);
  }
  relay.advance(299);
  expect(await guess(within)).toBe(600);
  relay.advance(1);
  expect(await guess(beyond)).toBe(0);
  expect(await mayEnter(beyond)).toBe(true);
});

test("limit.lockout", async () => {
  const address = relay.freshAddress();
  await lockOut(address);
  relay.advance(599);
  expect(await guess(address)).toBe(1);
  relay.advance(1);
  expect(await guess(address)).toBe(0);
});
