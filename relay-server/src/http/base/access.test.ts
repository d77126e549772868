/** Who was shut out while one of their requests was under way gets nothing by it. */

import { PassThrough } from "node:stream";
import { setImmediate as turn } from "node:timers/promises";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { PASSWORD, type Rest, startRest } from "../testing/test-rest.ts";

let rest: Rest;
let token: string;
beforeEach(async () => {
  rest = await startRest();
  token = (await rest.login()).user.api_token;
});
afterEach(() => rest.close());

const admin = (method: string, path: string, body?: object) =>
  rest.call(method, path, { token, ...(body === undefined ? {} : { body }) });

/** Sends a request's head; the returned function sends the body later, for the answer. */
const slowly = async (method: string, path: string, as: string, body: object) => {
  const stream = new PassThrough();
  const text = JSON.stringify(body);
  const headers = { "content-type": "application/json", "content-length": `${text.length}` };
  const answer = rest.call(method, path, { token: as, body: stream, headers });
  for (let turns = 0; turns < 20; turns += 1) await turn();
  return (laterMs: number) => {
    rest.clock.nowMs += laterMs;
    stream.end(text);
    return answer;
  };
};

const anotherAdmin = async (): Promise<{ id: string; token: string }> => {
  const body = { username: "eve", password: PASSWORD, role: "admin" };
  const { id } = (await admin("POST", "/admin/users", body)).json();
  const { user } = await rest.login({ username: "eve" });
  return { id, token: user.api_token };
};

describe("a request whose body arrives later", () => {
  const body = { username: "mallory", password: PASSWORD, role: "admin" };

  test("is served", async () => {
    const finish = await slowly("POST", "/admin/users", token, body);
    expect((await finish(29_000)).statusCode).toBe(201);
  });

  test.each([
    ["demoted", 403, (id: string) => admin("PATCH", `/admin/users/${id}`, { role: "user" })],
    ["disabled", 401, (id: string) => admin("PATCH", `/admin/users/${id}`, { disabled: true })],
    ["removed", 401, (id: string) => admin("DELETE", `/admin/users/${id}`)],
  ])("makes no admin once its sender is %s", async (_, status, shutOut) => {
    const eve = await anotherAdmin();
    const finish = await slowly("POST", "/admin/users", eve.token, body);
    expect((await shutOut(eve.id)).statusCode).toBeLessThan(300);
    expect((await finish(1000)).statusCode).toBe(status);
    const { items } = (await admin("GET", "/admin/users")).json();
    expect(items.map((user: { username: string }) => user.username)).not.toContain("mallory");
  });

  test("gets no agent's token once its access key is removed", async () => {
    const made = { name: "ci", scopes: ["agents"] };
    const key = (await admin("POST", "/account/keys", made)).json();
    const finish = await slowly("POST", "/agents", key.api_token, { name: "Pump" });
    await admin("DELETE", `/account/keys/${key.id}`);
    expect((await finish(3000)).statusCode).toBe(401);
  });
});

/** Holds the next password back before it is hashed; `reached` resolves when it is there. */
const holdHashing = () => {
  const [reached, released] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  vi.spyOn(rest.context.hashing, "run").mockImplementationOnce(async (_, hash) => {
    reached.resolve();
    await released.promise;
    return hash();
  });
  return { reached: reached.promise, release: released.resolve };
};

describe("a request whose password waits to be hashed", () => {
  const makes = (): [string, string, object] => [
    "POST",
    "/admin/users",
    { username: "mallory", password: PASSWORD, role: "admin" },
  ];
  const promotes = (id: string): [string, string, object] => [
    "PATCH",
    `/admin/users/${id}`,
    { password: PASSWORD, role: "admin" },
  ];
  const demote = (id: string) => admin("PATCH", `/admin/users/${id}`, { role: "user" });
  const remove = (id: string) => admin("DELETE", `/admin/users/${id}`);

  test.each([
    ["makes", "demoted", makes, 403, demote],
    ["makes", "removed", makes, 401, remove],
    ["promotes to", "demoted", promotes, 403, demote],
    ["promotes to", "removed", promotes, 401, remove],
  ])("%s no admin once its sender is %s", async (_, _how, wish, status, shutOut) => {
    const eve = await anotherAdmin();
    await rest.addUser("bob");
    const { reached, release } = holdHashing();
    const [method, path, body] = wish("id-of-bob");
    const answer = rest.call(method, path, { token: eve.token, body });
    await reached;
    expect((await shutOut(eve.id)).statusCode).toBeLessThan(300);
    release();
    expect((await answer).statusCode).toBe(status);
    const { items } = (await admin("GET", "/admin/users")).json();
    const admins = items.filter(({ role }: { role: string }) => role === "admin");
    expect(admins).toMatchObject([{ username: "admin" }]);
  });
});
