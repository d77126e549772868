/** A POST repeated with its Idempotency-Key is executed once. */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { Overloaded } from "../../control/hash-queue.ts";
import { PASSWORD, type Rest, startRest } from "../testing/test-rest.ts";

let rest: Rest;
let token: string;
beforeEach(async () => {
  rest = await startRest();
  token = (await rest.login()).user.api_token;
});
afterEach(() => rest.close());

const create = (key: string, body: object, as = token) =>
  rest.call("POST", "/agents", { token: as, body, headers: { "idempotency-key": key } });
const count = async () => (await rest.call("GET", "/agents", { token })).json().items.length;

test("the same request is answered as before, including the token, and does nothing", async () => {
  const first = await create("k1", { name: "Pump" });
  const again = await create("k1", { name: "Pump" });
  expect([first.statusCode, again.statusCode]).toEqual([201, 201]);
  expect(again.json()).toEqual(first.json());
  expect(again.headers.location).toBe(first.headers.location);
  expect(first.headers["idempotency-replayed"]).toBeUndefined();
  expect(again.headers["idempotency-replayed"]).toBe("true");
  expect(await count()).toBe(1);
});

test("sent twice at once, it is executed once", async () => {
  const answers = await Promise.all([1, 2, 3].map(() => create("k1", { name: "Pump" })));
  expect(new Set(answers.map((answer) => answer.json().agent_id)).size).toBe(1);
  expect(await count()).toBe(1);
});

test("another request with the same key is 422, also to another path", async () => {
  const { agent_id } = (await create("k1", { name: "Pump" })).json();
  for (const answer of [
    await create("k1", { name: "Valve" }),
    await rest.call("POST", `/agents/${agent_id}/rotate-token`, {
      token,
      headers: { "idempotency-key": "k1" },
    }),
  ]) {
    expect(answer.statusCode).toBe(422);
    expect(answer.json().code).toBe("IDEMPOTENCY_KEY_REUSED");
    expect(answer.json().errors).toMatchObject([{ path: "/idempotency-key", in: "headers" }]);
  }
  expect(rest.ended).toEqual([]);
});

test("a key belongs to its account, and expires after a day", async () => {
  await create("k1", { name: "Pump" });
  const stranger = await rest.addUser("stranger");
  expect((await create("k1", { name: "Theirs" }, stranger)).statusCode).toBe(201);
  rest.clock.nowMs += 86_400_001;
  const { user } = await rest.login();
  expect((await create("k1", { name: "Valve" }, user.api_token)).statusCode).toBe(201);
  expect(await count()).toBe(2);
});

test("a refused request may be corrected under its key", async () => {
  await create("k0", { name: "Pump", agent_id: "pump" });
  expect((await create("k1", { name: "x", agent_id: "pump" })).statusCode).toBe(409);
  expect((await create("k1", { name: "x", agent_id: "pump-2" })).statusCode).toBe(201);
});

test("a request that too many logins kept from beginning may be sent again under its key", async () => {
  vi.spyOn(rest.context.hashing, "run").mockImplementationOnce(() =>
    Promise.reject(new Overloaded()),
  );
  const body = { username: "grace", password: PASSWORD, role: "user" };
  const headers = { "idempotency-key": "k1" };
  const make = () => rest.call("POST", "/admin/users", { token, body, headers });
  expect((await make()).statusCode).toBe(503);
  expect((await make()).statusCode).toBe(201);
});

test("after a bug the outcome is unknown, so the key stays taken", async () => {
  const { secrets } = rest.context;
  vi.spyOn(secrets, "persistentToken").mockImplementationOnce(() => {
    throw new Error("on purpose");
  });
  expect((await create("k1", { name: "Pump" })).statusCode).toBe(500);
  expect((await create("k1", { name: "Pump" })).json().code).toBe("IDEMPOTENCY_KEY_IN_USE");
  expect((await create("k2", { name: "Pump" })).statusCode).toBe(201);
});

test("a request interrupted by a crash is not executed again", async () => {
  await create("k1", { name: "Pump" });
  await rest.context.store.db.updateTable("idempotency").set({ answer: null }).execute();
  const answer = await create("k1", { name: "Pump" });
  expect(answer.statusCode).toBe(409);
  expect(answer.json().code).toBe("IDEMPOTENCY_KEY_IN_USE");
  expect(await count()).toBe(1);
});

test("the newest thousand keys of an account are kept", async () => {
  await create("k1", { name: "Pump" });
  const { db } = rest.context.store;
  const [row] = await db.selectFrom("idempotency").selectAll().execute();
  for (let i = 0; i < 1000; i += 1) {
    const created_at = rest.clock.nowMs + 1 + i;
    await db
      .insertInto("idempotency")
      .values({ ...row!, key: `n${i}`, created_at })
      .execute();
  }
  rest.clock.nowMs += 5000;
  await create("k2", { name: "Valve" });
  const keys = (await db.selectFrom("idempotency").select("key").execute()).map((r) => r.key);
  expect(keys).toHaveLength(1001);
  expect(keys).not.toContain("k1");
  expect(keys).toContain("k2");
});

test("neither tokens nor requests can be read in the store", async () => {
  const made = (await create("k1", { name: "a name that is looked for" })).json();
  await rest.call("DELETE", `/agents/${made.agent_id}`, { token });
  const [row] = await rest.context.store.db.selectFrom("idempotency").selectAll().execute();
  for (const text of [row?.answer, row?.request]) {
    expect(Buffer.from(text ?? "", "base64url").includes("api_token")).toBe(false);
    expect(text).not.toContain("looked for");
  }
  const folder = join(rest.dataDir, "store");
  const loot = Buffer.concat(readdirSync(folder).map((file) => readFileSync(join(folder, file))));
  expect(loot.includes(made.api_token)).toBe(false);
});

test.each(["", "a b", "x".repeat(256)])("the key %j is refused", async (key) => {
  expect((await create(key, { name: "Pump" })).statusCode).toBe(422);
});

test("a token that was renewed since is not returned again", async () => {
  const made = (await create("k1", { name: "Pump" })).json();
  const rotate = (key: string) =>
    rest.call("POST", `/agents/${made.agent_id}/rotate-token`, {
      token,
      headers: { "idempotency-key": key },
    });
  const first = await rotate("r1");
  expect((await rotate("r1")).json()).toEqual(first.json());
  const second = await rotate("r2");
  for (const late of [await create("k1", { name: "Pump" }), await rotate("r1")]) {
    expect([late.statusCode, late.json().code]).toEqual([409, "CONFLICT"]);
    expect(late.body).not.toContain(made.api_token);
  }
  expect((await rotate("r2")).json()).toEqual(second.json());
  await rest.call("DELETE", `/agents/${made.agent_id}`, { token });
  expect((await rotate("r2")).statusCode).toBe(409);
});
