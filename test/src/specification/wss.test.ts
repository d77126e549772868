/** The messages of `/wss`, field by field, and what the relay does with those it forwards. */
import { createHmac, randomBytes } from "node:crypto";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import type { RawWebSocket } from "./raw-websocket.ts";
import { type Account, agentAuth, clientAuth, type RegisteredAgent, Relay } from "./relay.ts";

let relay: Relay;
let account: Account;
let device: RegisteredAgent;
beforeAll(async () => {
  relay = await new Relay().start();
  account = await relay.admin();
});
// A separate one for each test: the relay refuses an agent whose place is taken over too often.
beforeEach(async () => {
  device = await relay.device(account);
});
afterAll(() => relay.close());

const asAgent = (more?: object) => agentAuth(device, more);

const asClient = (more?: object) => clientAuth(account, more);

/** A packet as the relay sees it: the relay reads no field but the sid. */
const packet = (sid: string, more: object = {}) => ({ v: "1", sid, seq: 0, p: "AAAA", ...more });
const freshSid = () => randomBytes(16).toString("base64url");

/** A client and an agent, and the client's envelope in transit to it. */
const pair = async (): Promise<{ client: RawWebSocket; agent: RawWebSocket }> => ({
  client: await relay.client(account),
  agent: await relay.agent(device),
});

test("wss.first_message", async () => {
  const link = await relay.open();
  link.send({ type: "relay", agent_id: device.agentId, payload: "x" });
  expect(await link.next()).toMatchObject({ type: "error", code: "AUTH_REQUIRED" });
  link.send({ type: "auth", ...asClient() });
  expect(await link.next()).toMatchObject({ type: "auth_response", status: "authenticated" });
});

test("wss.client_auth.type", async () => {
  const link = await relay.open();
  for (const type of ["authenticate", "AUTH"]) {
    link.send({ type, ...asClient() });
    expect(await link.next()).toMatchObject({ type: "error", code: "AUTH_REQUIRED" });
  }
  link.send({ type: "auth", ...asClient() });
  expect(await link.next()).toMatchObject({ type: "auth_response", status: "authenticated" });
});

test("wss.client_auth.api_token", async () => {
  const { answer } = await relay.auth(asClient());
  expect(answer.status).toBe("authenticated");
  const none = await relay.auth({ client_type: "client" });
  expect(none.answer).toMatchObject({ status: "failed", code: "BAD_MESSAGE" });
  const both = asClient({ session_token: await relay.sessionToken(account.accountToken) });
  expect((await relay.auth(both)).answer).toMatchObject({ status: "failed", code: "BAD_MESSAGE" });
});

test("wss.client_auth.session_token", async () => {
  const session_token = await relay.sessionToken(account.accountToken);
  const { answer } = await relay.auth({ client_type: "client", session_token });
  expect(answer).toMatchObject({ status: "authenticated", session_token });
});

test("wss.client_auth.client_type", async () => {
  expect((await relay.auth(asClient())).answer.status).toBe("authenticated");
  for (const client_type of [undefined, "person", 1]) {
    const { answer } = await relay.auth(asClient({ client_type }));
    expect(answer).toMatchObject({ status: "failed", code: "BAD_MESSAGE" });
  }
});

test("wss.agent_auth.type", async () => {
  const link = await relay.open();
  link.send({ type: "hello", ...asAgent() });
  expect(await link.next()).toMatchObject({ type: "error", code: "AUTH_REQUIRED" });
  link.send({ type: "auth", ...asAgent() });
  expect(await link.next()).toMatchObject({ type: "auth_response", status: "authenticated" });
});

test("wss.agent_auth.api_token", async () => {
  expect((await relay.auth(asAgent())).answer.status).toBe("authenticated");
  const { answer } = await relay.auth(asAgent({ api_token: account.accountToken }));
  expect(answer).toMatchObject({
    status: "failed",
    error: expect.stringMatching(/agent.*account|account.*agent/i),
    code: "WRONG_TOKEN_KIND",
  });
});

test("wss.agent_auth.client_type", async () => {
  for (const client_type of ["agent", "firmware"]) {
    const { answer } = await relay.auth(asAgent({ client_type }));
    expect([client_type, answer.status]).toEqual([client_type, "authenticated"]);
  }
  expect((await relay.auth(asAgent({ client_type: "client" }))).answer.status).toBe("failed");
});

test("wss.agent_auth.agent_id", async () => {
  expect((await relay.auth(asAgent())).answer.status).toBe("authenticated");
  const missing = await relay.auth(asAgent({ agent_id: undefined }));
  expect(missing.answer).toMatchObject({ status: "failed", code: "BAD_MESSAGE" });
  const other = await relay.auth(asAgent({ agent_id: "another" }));
  expect(other.answer).toMatchObject({ status: "failed", error: "Invalid token" });
});

test("wss.auth_response.type", async () => {
  expect((await relay.auth(asClient())).answer.type).toBe("auth_response");
  expect((await relay.auth(asAgent())).answer.type).toBe("auth_response");
  expect((await relay.auth(asClient({ api_token: "x" }))).answer.type).toBe("auth_response");
});

test("wss.auth_response.status", async () => {
  expect((await relay.auth(asClient())).answer.status).toBe("authenticated");
  expect((await relay.auth(asAgent())).answer.status).toBe("authenticated");
  expect((await relay.auth(asClient({ api_token: "x" }))).answer.status).toBe("failed");
});

test("wss.auth_response.session_token", async () => {
  for (const fields of [asClient(), asAgent()]) {
    const { answer } = await relay.auth(fields);
    expect(answer.session_token).toMatch(/^sess_/);
    const { api_token: _, ...rest } = fields;
    const again = await relay.auth({ ...rest, session_token: answer.session_token });
    expect(again.answer.status).toBe("authenticated");
  }
  expect((await relay.auth(asClient({ api_token: "x" }))).answer).not.toHaveProperty(
    "session_token",
  );
});

test("wss.auth_response.expires_in", async () => {
  expect((await relay.auth(asClient())).answer.expires_in).toBe(86_400);
  expect((await relay.auth(asAgent())).answer.expires_in).toBe(86_400);
});

test("wss.auth_response.max_requests", async () => {
  expect((await relay.auth(asClient())).answer.max_requests).toBe(10_000);
  expect((await relay.auth(asAgent())).answer.max_requests).toBe(10_000);
});

test("wss.auth_response.error", async () => {
  const damaged = `${account.accountToken.slice(0, -1)}${account.accountToken.endsWith("0") ? 1 : 0}`;
  for (const api_token of ["nonsense", damaged]) {
    const { answer } = await relay.auth(asClient({ api_token }));
    expect(answer.error).toBe("Invalid token");
  }
  expect((await relay.auth(asClient())).answer).not.toHaveProperty("error");
});

test("wss.auth_response.retry_after", async () => {
  const address = relay.freshAddress();
  const refused: number[] = [];
  for (let i = 0; i < 6; i++) {
    const { answer } = await relay.auth(asClient({ api_token: "guess" }), address);
    refused.push(answer.retry_after);
  }
  expect(refused).toEqual([0, 0, 0, 0, 600, 600]);
  expect((await relay.auth(asClient())).answer).not.toHaveProperty("retry_after");
});

test("wss.agent_status", async () => {
  const user = await relay.user();
  const own = await relay.device(user);
  const clients = [await relay.client(user), await relay.client(user)];
  const stranger = await relay.client(account);
  const agent = await relay.agent(own);
  const online = {
    type: "agent_status",
    agent_id: own.agentId,
    online: true,
    timestamp: new Date(relay.nowMs).toISOString(),
  };
  for (const client of clients) expect(await client.next()).toEqual(online);
  await agent.close();
  for (const client of clients) expect(await client.next()).toEqual({ ...online, online: false });
  const heard = (await stranger.soFar()).filter(({ agent_id }) => agent_id === own.agentId);
  expect(heard).toEqual([]);
});

test("wss.relay", async () => {
  const { client, agent } = await pair();
  const payload = JSON.stringify(packet(freshSid()));
  const signature = createHmac("sha256", "a key").update(payload).digest("base64url");
  const whole = {
    type: "relay",
    agent_id: device.agentId,
    request_id: "tracking-1",
    payload,
    signature,
  };
  client.send(whole);
  expect(await agent.next()).toEqual(whole);
  const bare = { type: "relay", agent_id: device.agentId, payload };
  client.send(bare);
  expect(await agent.next()).toEqual(bare);
  for (const wrong of [{ agent_id: 1 }, { payload: 1 }, { request_id: 1 }, { signature: 1 }]) {
    client.send({ ...whole, payload: "opaque", ...wrong });
    expect(await client.nextOf("error")).toMatchObject({ code: "BAD_MESSAGE" });
  }
  agent.send(whole);
  expect(await client.nextOf("relay")).toEqual(whole);
});

test("wss.bare_packet", async () => {
  const { client, agent } = await pair();
  const sid = freshSid();
  client.send({ type: "relay", agent_id: device.agentId, payload: JSON.stringify(packet(sid)) });
  await agent.next();
  const bare = packet(`${sid}.answer`, { seq: 1 });
  client.send(bare);
  expect(await agent.next()).toEqual(bare);
  agent.send(bare);
  expect(await client.nextOf(null)).toEqual(bare);
  const unknown = packet(freshSid());
  client.send(unknown);
  expect(await client.next()).toMatchObject({ code: "UNKNOWN_SESSION", sid: unknown.sid });
});

test("wss.error", async () => {
  const client = await relay.client(account);
  const request_id = "tracking-2";
  client.send({ type: "relay", agent_id: "nobody", payload: "x", request_id });
  expect(await client.next()).toEqual({
    type: "error",
    error: expect.any(String),
    code: "AGENT_NOT_FOUND",
    request_id,
  });
  client.send("no JSON");
  const { type, error, code } = await client.next();
  expect([type, typeof error, code]).toEqual(["error", "string", "BAD_MESSAGE"]);
});

test("relay.forwards_unchanged", async () => {
  const { client, agent } = await pair();
  const user = await relay.user();
  const stranger = await relay.client(user);
  const foreign = { type: "relay", agent_id: device.agentId, payload: "x" };
  stranger.send(foreign);
  expect(await stranger.next()).toMatchObject({ type: "error", code: "AGENT_NOT_FOUND" });
  // Any text, with its white space and escapes unchanged.
  for (const payload of [
    '{ "v":"1" }',
    "\u0000\u0001 \\u00e9 \u00e9 \u{1f512}",
    "x".repeat(60_000),
  ]) {
    client.send({ type: "relay", agent_id: device.agentId, payload });
    expect((await agent.next()).payload).toBe(payload);
  }
});

test("relay.bare_is_encrypted", async () => {
  const { client, agent } = await pair();
  const sid = freshSid();
  client.send({ type: "relay", agent_id: device.agentId, payload: JSON.stringify(packet(sid)) });
  await agent.next();
  // Without ciphertext it is not a bare packet, so nothing is sent to the agent.
  const plain = { jsonrpc: "2.0", id: 1, method: "valve.open" };
  for (const message of [plain, { ...plain, sid }, { v: "1", sid, seq: 1 }]) {
    client.send(message);
    expect(await client.nextOf("error")).toMatchObject({ code: "BAD_MESSAGE" });
    client.send({ type: "pong" }); // or the third in a row ends the link
  }
  expect(await agent.soFar()).toEqual([]);
});

test("auth.websocket_client", async () => {
  const session_token = await relay.sessionToken(account.accountToken);
  for (const credential of [{ api_token: account.accountToken }, { session_token }]) {
    const { link, answer } = await relay.auth({ client_type: "client", ...credential });
    expect(answer.status).toBe("authenticated");
    link.send({ type: "relay", agent_id: "nobody", payload: "x" });
    expect(await link.next()).toMatchObject({ code: "AGENT_NOT_FOUND" });
  }
});

test("event.auth_response", async () => {
  const other = await relay.client(account);
  const { link, answer } = await relay.auth(asClient());
  expect(answer.type).toBe("auth_response");
  expect(await link.soFar()).toEqual([]);
  expect((await other.soFar()).filter(({ type }) => type === "auth_response")).toEqual([]);
});

test("error.invalid_token", async () => {
  const { link, answer } = await relay.auth(asClient({ api_token: "nonsense" }));
  expect(answer).toEqual({
    type: "auth_response",
    status: "failed",
    error: "Invalid token",
    code: "INVALID_TOKEN",
    retry_after: 0,
  });
  expect(await link.soFar()).toMatchObject([]);
});
