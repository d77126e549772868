/** Releases from draft to yank, and which are offered to devices. */
import { createHash, generateKeyPairSync, randomBytes, sign } from "node:crypto";
import { once } from "node:events";
import { request } from "node:http";
import { PassThrough } from "node:stream";
import { json } from "node:stream/consumers";
import { releaseText } from "@blindrelay/protocol/releases";
import {
  CheckAnswer,
  ReleasePage,
  Release as ReleaseSchema,
} from "@blindrelay/protocol/schema/rest";
import { Value } from "typebox/value";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { storeWriteBehind } from "../../control/write-behind.ts";
import { createLog } from "../../log.ts";
import { PART_BYTES } from "../../store/uploads.ts";
import { buildApp } from "../app.ts";
import { PASSWORD, type Rest, startRest } from "../testing/test-rest.ts";

const { publicKey, privateKey } = generateKeyPairSync("ed25519");
const PUBLIC_KEY = publicKey.export({ format: "jwk" }).x as string;
const KEY_ID = createHash("sha256")
  .update(Buffer.from(PUBLIC_KEY, "base64url"))
  .digest("hex")
  .slice(0, 16);

let rest: Rest;
let token: string;
beforeEach(async () => {
  rest = await startRest({ releaseKeys: [PUBLIC_KEY] });
  token = (await rest.login()).user.api_token;
});
afterEach(() => rest.close());

const SOON = { timeout: 120_000, interval: 5 };

const DRAFT = { runtime: "espruino", channel: "stable", version: "1.4.0" };

const signatureOf = (draft: typeof DRAFT, bytes: Buffer, key = privateKey) => {
  const sha256 = createHash("sha256").update(bytes).digest("hex");
  const text = releaseText({ ...draft, size: bytes.length, sha256 });
  return sign(null, Buffer.from(text), key).toString("base64url");
};

const create = async (draft: object = DRAFT): Promise<string> =>
  (await rest.call("POST", "/releases", { token, body: draft })).json().id;

const upload = (id: string, bytes: Buffer | PassThrough, signature: string, as = token) =>
  rest.app.inject({
    method: "PUT",
    url: `/api/v1/releases/${id}/artifact`,
    headers: {
      authorization: `Bearer ${as}`,
      "content-type": "application/octet-stream",
      "release-signature": signature,
    },
    payload: bytes,
  });

const patch = (id: string, body: object) => rest.call("PATCH", `/releases/${id}`, { token, body });

/** A published release of a few bytes. */
const publish = async (draft: typeof DRAFT = DRAFT, bytes = Buffer.from("firmware")) => {
  const id = await create(draft);
  expect((await upload(id, bytes, signatureOf(draft, bytes))).statusCode).toBe(200);
  expect((await patch(id, { status: "published" })).statusCode).toBe(200);
  return id;
};

const addAgent = async (agent_id: string, report?: { runtime: string; version: string }) => {
  const made = await rest.call("POST", "/agents", { token, body: { name: "x", agent_id } });
  if (report !== undefined) await boots(agent_id, report.runtime, report.version);
  return made.json().api_token as string;
};

/** An agent logs in and reports what it runs. */
/** Logs in as each of these versions, faster than the relay writes. */
const boots = async (agentId: string, runtime: string, ...versions: string[]) => {
  const writeBehind = storeWriteBehind(rest.context.store);
  for (const firmwareVersion of versions) {
    await writeBehind.agentSeen(agentId, rest.clock.nowMs, { runtime, firmwareVersion }, true);
  }
  await writeBehind.flush();
};

const check = async (as: string, version: string, more = "") =>
  (
    await rest.call("GET", `/releases/check?channel=stable&version=${version}${more}`, {
      token: as,
      headers: { host: "relay.example" },
    })
  ).json();
const offered = async (as: string, version: string, more = "") =>
  (await check(as, version, more)).latest?.version ?? null;

describe("the life of a release", () => {
  test("draft, artifact, published, yanked", async () => {
    const made = await rest.call("POST", "/releases", { token, body: { ...DRAFT, notes: "n" } });
    expect(made.statusCode).toBe(201);
    expect(Value.Check(ReleaseSchema, made.json())).toBe(true);
    expect(made.json()).toMatchObject({ ...DRAFT, status: "draft", size: null, notes: "n" });
    const { id } = made.json();
    expect((await patch(id, { status: "published" })).json().code).toBe("CONFLICT");
    const bytes = randomBytes(1000);
    const put = await upload(id, bytes, signatureOf(DRAFT, bytes));
    expect(put.json()).toMatchObject({
      size: 1000,
      sha256: createHash("sha256").update(bytes).digest("hex"),
      key_id: KEY_ID,
      status: "draft",
    });
    const published = await patch(id, { status: "published" });
    expect(published.json()).toMatchObject({
      status: "published",
      published_at: new Date(rest.clock.nowMs).toISOString(),
    });
    expect((await patch(id, { status: "published" })).statusCode).toBe(200);
    expect((await upload(id, bytes, signatureOf(DRAFT, bytes))).statusCode).toBe(409);
    expect((await patch(id, { status: "yanked" })).json().status).toBe("yanked");
    expect((await patch(id, { status: "published" })).statusCode).toBe(409);
  });

  test("a version can be used once for a runtime and channel", async () => {
    await create();
    expect((await rest.call("POST", "/releases", { token, body: DRAFT })).statusCode).toBe(409);
    await create({ ...DRAFT, channel: "beta" });
    await create({ ...DRAFT, runtime: "node" });
  });

  test.each([
    { version: "1.4" },
    { version: "1.4.0+build" },
    { version: "v1.4.0" },
    { version: "99999999999999999999.0.0" },
    { channel: "a|b" },
    { channel: "" },
    { runtime: "Node" },
  ])("%j is refused", async (wrong) => {
    const answer = await rest.call("POST", "/releases", { token, body: { ...DRAFT, ...wrong } });
    expect(answer.statusCode).toBe(422);
  });

  test("only admins write and see drafts", async () => {
    const id = await publish();
    const draft = await create({ ...DRAFT, version: "2.0.0" });
    const user = await rest.addUser("user");
    const bytes = Buffer.from("x");
    for (const answer of [
      await rest.call("POST", "/releases", { token: user, body: DRAFT }),
      await rest.call("PATCH", `/releases/${draft}`, { token: user, body: { notes: "mine" } }),
      await upload(draft, bytes, signatureOf({ ...DRAFT, version: "2.0.0" }, bytes), user),
    ]) {
      expect([answer.statusCode, answer.json().code]).toEqual([403, "FORBIDDEN"]);
    }
    const page = (await rest.call("GET", "/releases", { token: user })).json();
    expect(Value.Check(ReleasePage, page)).toBe(true);
    expect(page.items.map((item: { id: string }) => item.id)).toEqual([id]);
    expect((await rest.call("GET", `/releases/${draft}`, { token: user })).statusCode).toBe(404);
    expect((await rest.call("GET", "/releases", { token })).json().items).toHaveLength(2);
    const drafts = await rest.call("GET", "/releases?status=draft&channel=stable", { token });
    expect(drafts.json().items).toHaveLength(1);
  });

  test("pages are newest first and contain each once", async () => {
    for (let i = 0; i < 5; i += 1) {
      rest.clock.nowMs += i % 2;
      await create({ ...DRAFT, version: `1.0.${i}` });
    }
    const seen: string[] = [];
    let cursor: string | null = null;
    do {
      const query: string = `limit=2${cursor === null ? "" : `&cursor=${cursor}`}`;
      const page = (await rest.call("GET", `/releases?${query}`, { token })).json();
      seen.push(...page.items.map((item: { version: string }) => item.version));
      cursor = page.next_cursor;
    } while (cursor !== null);
    expect(new Set(seen).size).toBe(5);
    expect(seen.at(-1)).toBe("1.0.0");
  });
});

describe("an upload", () => {
  test("is accepted only with a configured key's signature over exactly these bytes and names", async () => {
    const id = await create();
    const bytes = randomBytes(100);
    const other = generateKeyPairSync("ed25519").privateKey;
    const wrong = [
      signatureOf(DRAFT, bytes, other),
      signatureOf({ ...DRAFT, version: "1.4.1" }, bytes),
      signatureOf({ ...DRAFT, channel: "beta" }, bytes),
      signatureOf({ ...DRAFT, runtime: "node" }, bytes),
      signatureOf(DRAFT, Buffer.concat([bytes, Buffer.from([0])])),
      "A".repeat(86),
    ];
    for (const signature of wrong) {
      const answer = await upload(id, bytes, signature);
      expect([answer.statusCode, answer.json().code]).toEqual([422, "UNTRUSTED_SIGNATURE"]);
      expect(answer.json().errors).toMatchObject([{ path: "/release-signature", in: "headers" }]);
    }
    expect((await upload(id, bytes, "short")).json().code).toBe("VALIDATION_FAILED");
    const { db } = rest.context.store;
    expect(await db.selectFrom("uploads").selectAll().execute()).toEqual([]);
    expect((await rest.call("GET", `/releases/${id}`, { token })).json().size).toBeNull();
  });

  test("is refused if over the limit, empty, or of another type, and leaves nothing", async () => {
    const id = await create();
    const big = Buffer.alloc(1_000_001);
    expect((await upload(id, big, signatureOf(DRAFT, big))).statusCode).toBe(413);
    const none = Buffer.alloc(0);
    expect((await upload(id, none, signatureOf(DRAFT, none))).statusCode).toBe(422);
    const json = await rest.call("PUT", `/releases/${id}/artifact`, {
      token,
      body: {},
      headers: { "release-signature": signatureOf(DRAFT, none) },
    });
    expect(json.statusCode).toBe(415);
    const { db } = rest.context.store;
    expect(await db.selectFrom("upload_parts").select("part").execute()).toEqual([]);
  });

  test("of unknown length is refused at the limit and logged, and an aborted upload leaves nothing", async () => {
    const id = await create();
    const [logged, failed]: [string[], string[]] = [[], []];
    const write = (line: string) => {
      if (/"PUT"/.test(line)) logged.push(line);
      if (/"level":50/.test(line)) failed.push(line);
    };
    const app = buildApp(rest.context, createLog("info", { write }));
    const url = new URL(await app.listen({ port: 0, host: "127.0.0.1" }));
    const send = () => {
      const headers = {
        authorization: `Bearer ${token}`,
        "content-type": "application/octet-stream",
        "release-signature": signatureOf(DRAFT, Buffer.alloc(1)),
      };
      const path = `/api/v1/releases/${id}/artifact`;
      return request({ host: url.hostname, port: url.port, method: "PUT", path, headers });
    };
    const endless = send().on("error", () => undefined);
    endless.write(Buffer.alloc(1_000_001));
    const [answer] = await once(endless, "response");
    expect([answer.statusCode, (await json(answer)) as object]).toMatchObject([
      413,
      { code: "TOO_LARGE" },
    ]);
    endless.destroy();
    // A request with a half-read body was once mistaken for aborted, and not logged.
    await vi.waitUntil(() => logged.length > 0, SOON);
    expect(JSON.parse(logged[0] as string)).toMatchObject({ method: "PUT", status: 413 });

    const { db } = rest.context.store;
    const uploads = () => db.selectFrom("uploads").selectAll().execute();
    const leaving = send().on("error", () => undefined);
    leaving.write(Buffer.alloc(PART_BYTES));
    await vi.waitUntil(async () => (await uploads()).length > 0, SOON);
    leaving.destroy();
    await vi.waitUntil(async () => (await uploads()).length === 0, SOON);
    await app.close();
    expect(failed).toEqual([]); // the relay has not failed
  });

  test.each<[string, number, (eve: string, key: string) => [string, string, object?]]>([
    ["who is demoted", 403, (eve) => ["PATCH", `/admin/users/${eve}`, { role: "user" }]],
    ["who is removed", 401, (eve) => ["DELETE", `/admin/users/${eve}`]],
    ["whose key is removed", 401, (_, key) => ["DELETE", `/account/keys/${key}`]],
  ])("is not taken of a sender %s before its end", async (_, status, shutOut) => {
    const id = await create();
    const admin = { username: "eve", password: PASSWORD, role: "admin" };
    const eve = (await rest.call("POST", "/admin/users", { token, body: admin })).json().id;
    const as = (await rest.login({ username: "eve" })).user.api_token;
    const ci = { name: "ci", scopes: ["releases"] };
    const key = (await rest.call("POST", "/account/keys", { token: as, body: ci })).json();
    const bytes = Buffer.from("firmware");
    const body = new PassThrough();
    const answer = upload(id, body, signatureOf(DRAFT, bytes), key.api_token);
    const { db } = rest.context.store;
    const uploads = () => db.selectFrom("uploads").selectAll().execute();
    await vi.waitUntil(async () => (await uploads()).length > 0, SOON);
    const [method, path, change] = shutOut(eve, key.id);
    const by = path.startsWith("/admin") ? token : as;
    const done = await rest.call(method, path, { token: by, ...(change && { body: change }) });
    expect(done.statusCode).toBeLessThan(300);
    body.end(bytes);
    expect((await answer).statusCode).toBe(status);
    expect(await uploads()).toEqual([]);
    expect((await rest.call("GET", `/releases/${id}`, { token })).json().size).toBeNull();
  });

  test("may be replaced until it is published", async () => {
    const id = await create();
    for (const bytes of [randomBytes(PART_BYTES * 2 + 1), randomBytes(10)]) {
      expect((await upload(id, bytes, signatureOf(DRAFT, bytes))).statusCode).toBe(200);
    }
    const { db } = rest.context.store;
    expect(await db.selectFrom("upload_parts").select("part").execute()).toHaveLength(1);
  });
});

test("a draft can be deleted with its artifact, a published release cannot, and only by admins", async () => {
  const id = await create();
  const bytes = randomBytes(PART_BYTES + 1);
  await upload(id, bytes, signatureOf(DRAFT, bytes));
  const { db } = rest.context.store;
  const parts = () => db.selectFrom("upload_parts").select("part").execute();
  expect(await parts()).toHaveLength(2);
  const agent = await addAgent("one");
  expect((await rest.call("DELETE", `/releases/${id}`, { token: agent })).statusCode).toBe(401);
  expect((await rest.call("DELETE", `/releases/${id}`, { token })).statusCode).toBe(204);
  expect(await parts()).toEqual([]);
  expect((await rest.call("DELETE", `/releases/${id}`, { token })).statusCode).toBe(404);
  const published = await publish();
  const refused = await rest.call("DELETE", `/releases/${published}`, { token });
  expect(refused.json()).toMatchObject({
    code: "CONFLICT",
    detail: expect.stringContaining("yank"),
  });
  const audit = await db.selectFrom("audit").select("action").where("subject", "=", id).execute();
  expect(audit.map(({ action }) => action)).toContain("release.delete");
});

describe("the artifact", () => {
  const bytes = randomBytes(PART_BYTES * 2 + 777);
  const size = bytes.length;
  let url: string;
  beforeEach(async () => {
    await publish(DRAFT, bytes);
    url = (await check(token, "1.0.0")).latest.url;
  });
  const get = (headers: Record<string, string> = {}) =>
    rest.app.inject({ method: "GET", url: url.replace("http://relay.example", ""), headers });

  test("is sent whole, with its hash as ETag, and needs no token with the ticket", async () => {
    expect(url).toMatch(
      /^http:\/\/relay\.example\/api\/v1\/releases\/[0-9a-f-]{36}\/artifact\?ticket=/,
    );
    const answer = await get();
    expect(answer.statusCode).toBe(200);
    expect(answer.rawPayload.equals(bytes)).toBe(true);
    expect(answer.headers).toMatchObject({
      etag: `"${createHash("sha256").update(bytes).digest("hex")}"`,
      "content-length": String(size),
      "accept-ranges": "bytes",
      "content-type": "application/octet-stream",
    });
    const again = await get({ "if-none-match": `W/"x", ${answer.headers.etag}` });
    expect([again.statusCode, again.body]).toEqual([304, ""]);
  });

  test("is not read for its head alone", async () => {
    const selects = vi.spyOn(rest.context.store.db, "selectFrom");
    const path = url.replace("http://relay.example", "");
    const answer = await rest.app.inject({ method: "HEAD", url: path });
    expect([answer.statusCode, answer.headers["content-length"]]).toEqual([200, String(size)]);
    expect(answer.body).toBe("");
    await new Promise((resolve) => setImmediate(resolve));
    expect(selects.mock.calls.flat()).not.toContain("upload_parts");
    selects.mockRestore();
  });

  test.each([
    ["bytes=0-0", 0, 0],
    ["bytes=10-19", 10, 19],
    [`bytes=${PART_BYTES - 1}-${PART_BYTES}`, PART_BYTES - 1, PART_BYTES],
    [`bytes=${PART_BYTES}-`, PART_BYTES, size - 1],
    ["bytes=-5", size - 5, size - 1],
    ["bytes=-99999999", 0, size - 1],
    ["bytes=5-99999999", 5, size - 1],
  ])("%s returns that range", async (range, from, to) => {
    const answer = await get({ range });
    expect(answer.statusCode).toBe(206);
    expect(answer.headers["content-range"]).toBe(`bytes ${from}-${to}/${size}`);
    expect(answer.rawPayload.equals(bytes.subarray(from, to + 1))).toBe(true);
  });

  test.each(["bytes=0-1,3-4", "bytes=9-3", "lines=1-2", "bytes=-", "bytes=a-b"])(
    "%s is not a single range and returns the whole",
    async (range) => {
      const answer = await get({ range });
      expect([answer.statusCode, answer.rawPayload.length]).toEqual([200, size]);
    },
  );

  test("a range outside is 416; one of another version of the file returns the whole", async () => {
    for (const range of [`bytes=${size}-`, "bytes=-0"]) {
      const answer = await get({ range });
      expect([answer.statusCode, answer.json().code]).toEqual([416, "RANGE_NOT_SATISFIABLE"]);
      expect(answer.headers["content-range"]).toBe(`bytes */${size}`);
    }
    expect((await get({ range: "bytes=0-0", "if-range": '"other"' })).statusCode).toBe(200);
  });

  test("a ticket is valid for its release and an hour; a forged one is not", async () => {
    const other = await publish({ ...DRAFT, version: "1.5.0" });
    const [path, ticket] = url.replace("http://relay.example", "").split("?ticket=");
    const status = async (target: string, text: string) =>
      (await rest.app.inject(`${target}?ticket=${text}`)).statusCode;
    expect(await status(`/api/v1/releases/${other}/artifact`, ticket as string)).toBe(401);
    const [expiry, mac] = (ticket as string).split("-");
    expect(await status(path as string, `${Number(expiry) + 1}-${mac}`)).toBe(401);
    rest.clock.nowMs += 3_600_001;
    expect(await status(path as string, ticket as string)).toBe(401);
  });

  test("a yanked release is gone for devices and users, but not for admins", async () => {
    const [release] = (await rest.call("GET", "/releases", { token })).json().items;
    await patch(release.id, { status: "yanked" });
    expect((await get()).statusCode).toBe(404);
    const user = await rest.addUser("user");
    const path = `/releases/${release.id}/artifact`;
    expect((await rest.call("GET", path, { token: user })).statusCode).toBe(404);
    expect((await rest.call("GET", path, { token })).statusCode).toBe(200);
  });
});

describe("a check", () => {
  test("offers the highest version above the device's own, and never a lower or equal one", async () => {
    for (const version of ["1.2.0", "1.10.0", "1.9.0", "1.10.0-rc.1"]) {
      await publish({ ...DRAFT, version });
    }
    const answer = await check(token, "1.9.0");
    expect(Value.Check(CheckAnswer, answer)).toBe(true);
    expect(answer).toMatchObject({ update_available: true, channel: "stable", current: "1.9.0" });
    expect(answer.latest).toMatchObject({ version: "1.10.0", runtime: "espruino", key_id: KEY_ID });
    expect(await offered(token, "1.10.0-rc.1")).toBe("1.10.0");
    for (const version of ["1.10.0", "1.10.1", "2.0.0-alpha"]) {
      expect(await check(token, version)).toMatchObject({ update_available: false, latest: null });
    }
  });

  test("ignores drafts, yanked releases, and other channels and runtimes", async () => {
    await create({ ...DRAFT, version: "9.0.0" });
    await patch(await publish({ ...DRAFT, version: "8.0.0" }), { status: "yanked" });
    await publish({ ...DRAFT, channel: "beta", version: "7.0.0" });
    await publish({ ...DRAFT, runtime: "node", version: "6.0.0" });
    await publish();
    const agent = await addAgent("a", { runtime: "espruino 2v25 ESP32", version: "1.0.0" });
    expect(await offered(agent, "1.0.0")).toBe("1.4.0");
    expect(await offered(agent, "1.0.0", "&runtime=node")).toBe("6.0.0");
  });

  test("accepts all five tokens, and agents' tokens are valid nowhere else", async () => {
    await publish();
    const agent = await addAgent("a");
    const { access_token } = await rest.login();
    const { session_token } = (await rest.call("POST", "/auth/session", { token })).json();
    for (const each of [token, access_token, session_token, agent]) {
      expect(await offered(each, "1.0.0")).toBe("1.4.0");
    }
    for (const path of ["/agents", "/releases", "/account"]) {
      const answer = await rest.call("GET", path, { token: agent });
      expect([answer.statusCode, answer.json().code]).toEqual([401, "WRONG_TOKEN_KIND"]);
    }
  });

  test.each(["1.4", "latest", "01.0.0", "v1.0.0", "99999999999999999999.0.0"])(
    "the version %s is refused",
    async (version) => {
      const path = `/releases/check?channel=stable&version=${version}`;
      expect((await rest.call("GET", path, { token })).statusCode).toBe(422);
    },
  );
});

describe("a rollout", () => {
  const fleet = async (count: number): Promise<string[]> => {
    const tokens: string[] = [];
    for (let i = 0; i < count; i += 1) tokens.push(await addAgent(`a${i}`));
    return tokens;
  };
  const reached = async (tokens: readonly string[]) => {
    const versions = await Promise.all(tokens.map((agent) => offered(agent, "1.0.0")));
    return tokens.filter((_, index) => versions[index] !== null);
  };

  test("reaches a share of the devices, keeps them as it grows, and stops while paused", async () => {
    const tokens = await fleet(60);
    const id = await publish();
    await patch(id, { rollout: { percent: 30 } });
    const some = await reached(tokens);
    expect(some.length).toBeGreaterThan(5);
    expect(some.length).toBeLessThan(35);
    expect(await reached(tokens)).toEqual(some);
    await patch(id, { rollout: { percent: 60 } });
    expect(await reached(tokens)).toEqual(expect.arrayContaining(some));
    await patch(id, { rollout: { paused: true } });
    expect(await reached(tokens)).toEqual([]);
    expect(await offered(token, "1.0.0")).toBe("1.4.0"); // users see what is published
    await patch(id, { rollout: { percent: 100, paused: false } });
    expect(await reached(tokens)).toHaveLength(60);
    await patch(id, { rollout: { percent: 0 } });
    expect(await reached(tokens)).toEqual([]);
  });

  test("a device outside of it is offered a lower release above its own version", async () => {
    const agent = await addAgent("a");
    await publish({ ...DRAFT, version: "1.3.0" });
    await patch(await publish(), { rollout: { paused: true } });
    expect(await offered(agent, "1.0.0")).toBe("1.3.0");
    expect(await offered(agent, "1.3.0")).toBeNull();
  });

  test("counts devices that were offered it and logged in with it, but not downloads alone", async () => {
    const id = await publish();
    const runtime = "espruino 2v25 ESP32";
    const [one, two] = [await addAgent("one"), await addAgent("two")];
    const rollout = async () =>
      (await rest.call("GET", `/releases/${id}`, { token })).json().rollout;
    expect(await rollout()).toMatchObject({ offered: 0, confirmed: 0 });
    const { latest } = await check(one, "1.0.0");
    await check(one, "1.0.0");
    await check(two, "1.0.0");
    expect((await rest.app.inject(latest.url.replace("http://relay.example", ""))).statusCode).toBe(
      200,
    );
    expect(await rollout()).toMatchObject({ offered: 2, confirmed: 0 });
    await boots("one", runtime, "1.3.9");
    expect(await rollout()).toMatchObject({ offered: 2, confirmed: 0 });
    await boots("one", runtime, "1.4.0");
    expect(await rollout()).toMatchObject({ offered: 2, confirmed: 1 });
    await boots("one", runtime, "1.5.0"); // it did boot, whatever came after
    expect(await rollout()).toMatchObject({ offered: 2, confirmed: 1 });
    await rest.call("DELETE", "/agents/two", { token });
    expect(await rollout()).toMatchObject({ offered: 1, confirmed: 1 });
  });
});

// eclipse-hawkbit/hawkbit#446
describe("a release that boots and then fails", () => {
  const reported = "espruino 2v25 ESP32";
  const rolloutOf = async (id: string) =>
    (await rest.call("GET", `/releases/${id}`, { token })).json().rollout;

  test("is seen, and not offered again to the device that left it", async () => {
    const id = await publish();
    const agent = await addAgent("one");
    expect(await offered(agent, "1.3.0")).toBe("1.4.0");
    // Its watchdog is faster than the relay writes.
    await boots("one", reported, "1.3.0", "1.4.0", "1.3.0");
    expect(await rolloutOf(id)).toEqual({
      ...{ percent: 100, paused: false },
      ...{ offered: 1, confirmed: 1, running: 0, left: 1 },
    });
    expect(await offered(agent, "1.3.0")).toBeNull();
    expect(await offered(await addAgent("two"), "1.3.0")).toBe("1.4.0");
    await publish({ ...DRAFT, version: "1.4.1" });
    expect(await offered(agent, "1.3.0")).toBe("1.4.1");
  });

  test("pauses its staged rollout, once more than one in twenty have left", async () => {
    const id = await publish();
    const names = Array.from({ length: 41 }, (_, index) => `a${index}`);
    for (const name of names) {
      expect(await offered(await addAgent(name), "1.3.0")).toBe("1.4.0");
      await boots(name, reported, "1.4.0");
    }
    await patch(id, { rollout: { percent: 50 } });
    for (const name of names.slice(0, 2)) await boots(name, reported, "1.3.0");
    expect(await rolloutOf(id)).toMatchObject({ confirmed: 41, running: 39, left: 2 });
    expect(await rolloutOf(id)).toMatchObject({ paused: false });
    await boots("a2", reported, "1.3.0");
    expect(await rolloutOf(id)).toMatchObject({ percent: 50, paused: true, left: 3 });
    const { items } = (await rest.call("GET", `/admin/audit?subject=${id}`, { token })).json();
    const detail = { version: "1.4.0", percent: 50, paused: true, left: 3, confirmed: 41 };
    expect(items).toContainEqual(
      expect.objectContaining({ actor: null, detail: expect.objectContaining(detail) }),
    );
    await patch(id, { rollout: { paused: false } });
    expect(await rolloutOf(id)).toMatchObject({ paused: false });
  });

  test("pauses nothing that was offered to all, whose devices could only wait", async () => {
    const id = await publish();
    await offered(await addAgent("one"), "1.3.0");
    await boots("one", reported, "1.4.0", "1.3.0");
    expect(await rolloutOf(id)).toMatchObject({ paused: false, left: 1 });
  });
});

test("a relay without release keys accepts no upload, and says how to configure one", async () => {
  await rest.close();
  rest = await startRest();
  token = (await rest.login()).user.api_token;
  const bytes = Buffer.from("x");
  const answer = await upload(await create(), bytes, signatureOf(DRAFT, bytes));
  expect(answer.json()).toMatchObject({ status: 422, code: "UNTRUSTED_SIGNATURE" });
  expect(answer.json().errors).toMatchObject([{ path: "/release-signature", in: "headers" }]);
  expect(answer.json().detail).toContain("--release-keys");
});
