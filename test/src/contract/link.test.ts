/**
 * Section 3 of the contract, a link's life: how `auth` is answered, what is refused and how, and
 * how a link ends. Over raw sockets, with a started relay; ../specification tests what the
 * specification itself states.
 */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { BINARY, PING, type RawWebSocket, TEXT } from "../specification/raw-websocket.ts";
import {
  type Account,
  agentAuth,
  clientAuth,
  PASSWORD,
  type RegisteredAgent,
  Relay,
} from "../specification/relay.ts";

const MAX_MESSAGE_BYTES = 65_536;

let relay: Relay;
let account: Account;
let device: RegisteredAgent;
beforeAll(async () => {
  relay = await new Relay().start();
  account = await relay.admin();
});
beforeEach(async () => {
  device = await relay.device(account);
});
afterAll(() => relay.close());

const asClient = (more?: object) => clientAuth(account, more);
const asAgent = (more?: object) => agentAuth(device, more);

/** The same token with another checksum. */
const mistyped = (token: string): string => token.slice(0, -1) + (token.endsWith("0") ? "1" : "0");

describe("auth_response", () => {
  test("gets an answer at the third failure too, and 1008 follows; a malformed auth counts", async () => {
    const link = await relay.open();
    link.send({ type: "auth" });
    expect(await link.next()).toMatchObject({ status: "failed", code: "BAD_MESSAGE" });
    for (let i = 0; i < 2; i++) {
      link.send({ type: "auth", ...asClient({ api_token: "guess" }) });
      expect(await link.next()).toMatchObject({ status: "failed", code: "INVALID_TOKEN" });
    }
    expect(await link.next()).toEqual({ closed: 1008 });
  });

  test("names both kinds for a valid token in the wrong place, and for no other token", async () => {
    const session = await relay.sessionToken(account.accountToken);
    const wrong: [object, RegExp, RegExp][] = [
      [asClient({ api_token: device.relayToken }), /account/, /agent/],
      [asAgent({ api_token: account.accountToken }), /agent/, /account/],
      [asClient({ api_token: session }), /account/, /session/],
      [
        asClient({ api_token: undefined, session_token: account.accountToken }),
        /session/,
        /account/,
      ],
      [asClient({ api_token: account.accessToken }), /account/, /login/],
    ];
    for (const [fields, expected, got] of wrong) {
      const { answer } = await relay.auth(fields);
      expect(answer).toMatchObject({ status: "failed", code: "WRONG_TOKEN_KIND", retry_after: 0 });
      expect(answer.error).toMatch(expected);
      expect(answer.error).toMatch(got);
    }
    const other = await relay.device(account);
    for (const fields of [
      asClient({ api_token: mistyped(device.relayToken) }),
      asClient({ api_token: "acct_" }),
      asAgent({ agent_id: other.agentId }),
      asAgent({ agent_id: "x".repeat(65) }),
    ]) {
      const { answer } = await relay.auth(fields);
      expect(answer).toMatchObject({ status: "failed", error: "Invalid token" });
    }
  });

  test("admits an agent with its session token and its agent_id, and no other", async () => {
    const { answer } = await relay.auth(asAgent());
    const session = { session_token: answer.session_token, api_token: undefined };
    relay.advance(100.5);
    const again = await relay.auth(asAgent(session));
    expect(again.answer).toMatchObject({
      status: "authenticated",
      session_token: answer.session_token,
      expires_in: 86_300, // 86,299.5 s are left
    });
    const other = await relay.device(account);
    for (const fields of [
      asAgent({ ...session, agent_id: other.agentId }),
      asClient(session),
      asAgent({
        api_token: undefined,
        session_token: await relay.sessionToken(account.accountToken),
      }),
    ]) {
      expect((await relay.auth(fields)).answer.status).toBe("failed");
    }
  });

  test("of a formerly valid credential names that, and is not counted", async () => {
    const user = await relay.user();
    const own = await relay.device(user);
    const session = await relay.sessionToken(user.accountToken);
    await relay.api("POST", `/agents/${own.agentId}/rotate-token`, { token: user.accountToken });
    relay.advance(86_400);
    const address = relay.freshAddress();
    for (let i = 0; i < 6; i++) {
      const expired = await relay.auth({ client_type: "client", session_token: session }, address);
      expect(expired.answer).toMatchObject({
        error: "Session token expired",
        code: "SESSION_EXPIRED",
        retry_after: 0,
      });
      const fields = { client_type: "agent", agent_id: own.agentId, api_token: own.relayToken };
      const retired = await relay.auth(fields, address);
      expect(retired.answer).toMatchObject({ error: "Invalid token", retry_after: 0 });
    }
  });
});

describe("before and after auth", () => {
  test("anything else first is AUTH_REQUIRED, and the link stays", async () => {
    const link = await relay.open();
    for (const message of [{ type: "pong" }, { type: "dance" }, { type: "ping" }]) {
      link.send(message);
      expect(await link.next()).toMatchObject({ type: "error", code: "AUTH_REQUIRED" });
    }
    const packet = { v: "1", sid: "abc.def", seq: 1, p: "AAAA" };
    link.send(packet);
    expect(await link.next()).toMatchObject({ code: "AUTH_REQUIRED", sid: "abc.def" });
    link.send({ type: "auth", ...asClient() });
    expect(await link.next()).toMatchObject({ status: "authenticated" });
  });

  test("a second auth is BAD_MESSAGE and changes nothing", async () => {
    const link = await relay.client(account);
    link.send({ type: "auth", ...asClient({ api_token: "guess" }) });
    expect(await link.next()).toMatchObject({ type: "error", code: "BAD_MESSAGE" });
    expect(await link.soFar()).toEqual([]);
  });
});

describe("lockout", () => {
  const guess = async (address: string) =>
    (await relay.auth(asClient({ api_token: "guess" }), address)).answer;

  test("closes with 1008, and later tries too, a valid token's with the remaining time", async () => {
    const address = relay.freshAddress();
    const open = await relay.auth(asClient(), address);
    for (let i = 0; i < 4; i++) await guess(address);
    const fifth = await relay.auth(
      asClient({ api_token: mistyped(account.accountToken) }),
      address,
    );
    expect(fifth.answer).toMatchObject({ error: "Invalid token", retry_after: 600 });
    expect(await fifth.link.next()).toEqual({ closed: 1008 });
    relay.advance(0.5);
    const valid = await relay.auth(asClient(), address);
    expect(valid.answer).toMatchObject({ status: "failed", code: "LOCKED_OUT", retry_after: 600 });
    expect(await valid.link.next()).toEqual({ closed: 1008 });
    expect(await open.link.soFar()).toEqual([]); // An authenticated link stays open.
  });

  test("counts REST and /wss together", async () => {
    const address = relay.freshAddress();
    const headers = { "x-forwarded-for": address };
    for (let i = 0; i < 2; i++) await guess(address);
    for (let i = 0; i < 2; i++) {
      expect((await relay.api("GET", "/account", { token: "guess", headers })).status).toBe(401);
    }
    const body = { username: "ada", password: "a wrong password" };
    const { status, headers: told } = await relay.api("POST", "/auth/login", { body, headers });
    expect([status, told["retry-after"]]).toEqual([401, "600"]);
    expect(await guess(address)).toMatchObject({ code: "LOCKED_OUT", retry_after: 600 });
  });

  test("counts IPv6 by /64", async () => {
    for (let i = 1; i < 5; i++) await guess(`2001:db8:1:2::${i}`);
    expect(await guess("2001:db8:1:2:ffff::5")).toMatchObject({ retry_after: 600 });
    expect(await guess("2001:db8:1:3::1")).toMatchObject({ retry_after: 0 });
  });
});

describe("bad input", () => {
  const tooLarge = "x".repeat(MAX_MESSAGE_BYTES + 1);
  const bad: [string, (link: RawWebSocket) => void, string][] = [
    ["over the limit", (link) => link.send(tooLarge), "TOO_LARGE"],
    ["over it by far", (link) => link.send(tooLarge.repeat(20)), "TOO_LARGE"],
    ["no JSON", (link) => link.send("{"), "BAD_MESSAGE"],
    ["no object", (link) => link.send("[]"), "BAD_MESSAGE"],
    ["no packet", (link) => link.send({ v: "1", sid: "a", p: "AAAA" }), "BAD_MESSAGE"],
    ["binary", (link) => link.sendFrame(BINARY, '{"type":"pong"}'), "BAD_MESSAGE"],
    ["not UTF-8", (link) => link.sendFrame(TEXT, Buffer.from([0xff, 0xfe])), "BAD_MESSAGE"],
  ];

  test.each(bad)("%s: its error three times in a row, then 1008", async (_, send, code) => {
    const link = await relay.client(account);
    for (let i = 0; i < 3; i++) {
      send(link);
      expect(await link.next()).toMatchObject({ type: "error", code });
    }
    expect(await link.next()).toEqual({ closed: 1008 });
  });

  test.each(bad)("%s: a valid message resets the count", async (_, send, code) => {
    const link = await relay.client(account);
    for (let i = 0; i < 3; i++) {
      for (let j = 0; j < 2; j++) {
        send(link);
        expect(await link.next()).toMatchObject({ type: "error", code });
      }
      link.send({ type: "pong" });
    }
    expect(await link.soFar()).toEqual([]);
  });

  test("an unknown type is UNKNOWN_TYPE however often, and does not affect the count", async () => {
    const link = await relay.client(account);
    for (const message of ["{", { type: "dance" }, "{", { type: "dance" }, { type: "dance" }]) {
      link.send(message);
      const code = message === "{" ? "BAD_MESSAGE" : "UNKNOWN_TYPE";
      expect(await link.next()).toMatchObject({ type: "error", code });
    }
    link.send("{");
    expect(await link.next()).toMatchObject({ code: "BAD_MESSAGE" });
    expect(await link.next()).toEqual({ closed: 1008 });
  });

  test("a message of exactly the limit is accepted", async () => {
    const [client, agent] = [await relay.client(account), await relay.agent(device)];
    const empty = JSON.stringify({ type: "relay", agent_id: device.agentId, payload: "" });
    const payload = "x".repeat(MAX_MESSAGE_BYTES - empty.length);
    client.send({ type: "relay", agent_id: device.agentId, payload });
    expect((await agent.next()).payload).toBe(payload);
  });

  test("a message in fragments is joined", async () => {
    const [client, agent] = [await relay.client(account), await relay.agent(device)];
    const text = JSON.stringify({ type: "relay", agent_id: device.agentId, payload: "in parts" });
    client.sendFrame(TEXT, text.slice(0, 10), false);
    client.sendFrame(0, text.slice(10, 30), false);
    client.sendFrame(0, text.slice(30), true);
    expect(await agent.next()).toMatchObject({ payload: "in parts" });
  });
});

describe("rate", () => {
  test("a burst of 2,000 passes, the rest is RATE_LIMITED, and each second allows 1,000 more", async () => {
    const link = await relay.client(account);
    const ask = async (times: number) => {
      const codes = new Map<string, number>();
      for (let i = 0; i < times; i++) link.send({ v: "1", sid: "nobody", seq: 1, p: "AAAA" });
      for (let i = 0; i < times; i++) {
        const { code } = await link.nextOf("error");
        codes.set(code, (codes.get(code) ?? 0) + 1);
      }
      return Object.fromEntries(codes);
    };
    expect(await ask(2_100)).toEqual({ UNKNOWN_SESSION: 2_000, RATE_LIMITED: 100 });
    relay.advance(1);
    expect(await ask(1_100)).toEqual({ UNKNOWN_SESSION: 1_000, RATE_LIMITED: 100 });
  });
});

describe("pings", () => {
  test("are messages only: the relay sends no control frame", async () => {
    const link = await relay.client(account);
    relay.advance(30);
    expect(await link.nextOf("ping")).toEqual({ type: "ping" });
    expect(link.controls).toEqual([]);
  });

  test("of a peer's library are answered as RFC 6455 says", async () => {
    const link = await relay.client(account);
    link.sendFrame(PING, "are you there");
    await link.soFar();
    expect(link.controls).toEqual([0xa]);
  });
});

describe("presence", () => {
  test("is sent to clients that ask for it, after auth_response, and to no others", async () => {
    const user = await relay.user();
    const [one, other, away] = [
      await relay.device(user),
      await relay.device(user),
      await relay.device(user),
    ];
    await Promise.all([relay.agent(one), relay.agent(other), relay.agent(device)]);
    const asking = await relay.client(user, { presence: true });
    const told = [await asking.next(), await asking.next()];
    expect(told.map(({ type, online }) => [type, online])).toEqual([
      ["agent_status", true],
      ["agent_status", true],
    ]);
    expect(told.map(({ agent_id }) => agent_id).sort()).toEqual(
      [one.agentId, other.agentId].sort(),
    );
    expect(told.map(({ agent_id }) => agent_id)).not.toContain(away.agentId);
    expect(await asking.soFar()).toEqual([]);
    expect(await (await relay.client(user)).soFar()).toEqual([]);
    expect(await (await relay.client(user, { presence: false })).soFar()).toEqual([]);
  });
});

describe("the same agent twice", () => {
  test("the newer wins, the older gets REPLACED and 1008, and presence does not flap", async () => {
    const client = await relay.client(account);
    const older = await relay.agent(device);
    expect(await client.next()).toMatchObject({ agent_id: device.agentId, online: true });
    const newer = await relay.agent(device);
    expect(await older.next()).toMatchObject({ type: "error", code: "REPLACED" });
    expect(await older.next()).toEqual({ closed: 1008 });
    client.send({ type: "relay", agent_id: device.agentId, payload: "x" });
    expect(await newer.next()).toMatchObject({ payload: "x" });
    expect(await client.soFar()).toEqual([]);
  });

  test("the sixth takeover of a minute is TAKEOVER_LOOP and 1008, and not counted", async () => {
    const address = relay.freshAddress();
    for (let i = 0; i < 6; i++) {
      expect((await relay.auth(asAgent(), address)).answer.status).toBe("authenticated");
    }
    for (let i = 0; i < 6; i++) {
      const { link, answer } = await relay.auth(asAgent(), address);
      expect(answer).toMatchObject({ status: "failed", code: "TAKEOVER_LOOP", retry_after: 60 });
      expect(await link.next()).toEqual({ closed: 1008 });
    }
    relay.advance(60);
    expect((await relay.auth(asAgent(), address)).answer.status).toBe("authenticated");
  });
});

describe("a link ends with 1008 and REVOKED", () => {
  const expectRevoked = async (link: RawWebSocket): Promise<void> => {
    expect(await link.nextOf("error")).toMatchObject({ code: "REVOKED" });
    expect(await link.next()).toEqual({ closed: 1008 });
  };

  test("of an agent when its token is rotated or it is deleted", async () => {
    const token = account.accountToken;
    const link = await relay.agent(device);
    const path = `/agents/${device.agentId}`;
    const { json } = await relay.api("POST", `${path}/rotate-token`, { token });
    await expectRevoked(link);
    const again = await relay.agent({ ...device, relayToken: json.api_token });
    expect((await relay.api("DELETE", path, { token })).status).toBe(204);
    await expectRevoked(again);
  });

  test("of a user when it is disabled, agents included, and of clients at a new password", async () => {
    const user = await relay.user();
    const own = await relay.device(user);
    const [client, agent] = [await relay.client(user), await relay.agent(own)];
    const changed = await relay.api("PATCH", "/account", {
      token: user.accountToken,
      body: { password: "another long password", current_password: PASSWORD },
    });
    expect(changed.status, changed.text).toBe(200);
    await expectRevoked(client);
    expect(await agent.soFar()).toEqual([]);
    const token = account.accountToken;
    const body = { disabled: true };
    expect((await relay.api("PATCH", `/admin/users/${user.id}`, { token, body })).status).toBe(200);
    await expectRevoked(agent);
  });
});

describe("a receiver that does not read", () => {
  test("costs the sender SLOW_CONSUMER, and is closed with 1013 after 30 s", async () => {
    const [client, agent] = [await relay.client(account), await relay.agent(device)];
    agent.socket.pause();
    const message = { type: "relay", agent_id: device.agentId, payload: "x".repeat(60_000) };
    let told: { code?: string } = {};
    for (let i = 0; i < 1_000 && told.code === undefined; i++) {
      client.send(message);
      // Each is answered by nothing or by an error; the mark identifies the answer.
      [told = {}] = await client.soFar();
    }
    expect(told).toMatchObject({ type: "error", code: "SLOW_CONSUMER" });
    relay.advance(30);
    expect(await client.nextOf("agent_status")).toMatchObject({ online: false });
    agent.socket.resume();
    expect(await agent.nextOf("nothing of this type")).toEqual({ closed: 1013 });
  });
});

describe("shutdown", () => {
  test("sends RESTARTING with reconnect_in, and closes with 1012", async () => {
    const own = await new Relay().start();
    try {
      const admin = await own.admin();
      const links = [
        await own.client(admin),
        await own.client(admin),
        await own.agent(await own.device(admin)),
        await own.open(),
      ];
      const stopped = own.stop();
      const waits: number[] = [];
      for (const link of links) {
        const { type, code, reconnect_in } = await link.nextOf("error");
        expect([type, code]).toEqual(["error", "RESTARTING"]);
        waits.push(reconnect_in);
        expect(await link.next()).toEqual({ closed: 1012 });
      }
      expect(Math.min(...waits)).toBeGreaterThan(0);
      expect(new Set(waits).size).toBe(waits.length);
      await stopped;
    } finally {
      await own.close();
    }
  });
});
