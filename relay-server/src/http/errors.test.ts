/** Every failed request gets a problem document. */
import { connect } from "node:net";
import { text } from "node:stream/consumers";
import { ERRORS, type ErrorCode } from "@blindrelay/protocol";
import { Problem } from "@blindrelay/protocol/schema/rest";
import type { LightMyRequestResponse } from "fastify";
import { Value } from "typebox/value";
import { afterAll, beforeAll, expect, test } from "vitest";
import { createLog } from "../log.ts";
import { buildApp } from "./app.ts";
import { type Rest, startRest } from "./testing/test-rest.ts";

let rest: Rest;
let token: string;
beforeAll(async () => {
  rest = await startRest();
  token = (await rest.login()).user.api_token;
});
afterAll(() => rest.close());

const expectProblem = (answer: LightMyRequestResponse, status: number, code: string) => {
  expect(answer.headers["content-type"]).toBe("application/problem+json");
  const problem = answer.json();
  expect(Value.Check(Problem, problem)).toBe(true);
  expect([answer.statusCode, problem.status, problem.code]).toEqual([status, status, code]);
  expect(ERRORS[problem.code as ErrorCode].http).toBe(status);
  expect(problem.request_id).toBe(answer.headers["x-request-id"]);
};

const JSON_TYPE = { "content-type": "application/json" };

test.each([
  ["no JSON", "{"],
  ["two documents", "{}{}"],
  ["bytes that are no UTF-8", Buffer.from('{"name":"\xff"}', "latin1")],
  // middleapi/orpc#1961
  ["a prototype", '{"__proto__": {"name": "x"}}'],
  ["a constructor's prototype", '{"constructor": {"prototype": {}}}'],
])("a body with %s is 400", async (_what, body) => {
  const answer = await rest.call("POST", "/agents", { token, body, headers: JSON_TYPE });
  expectProblem(answer, 400, "BAD_REQUEST");
});

test.each([
  ["a text with U+0000", '{"name":"a\\u0000b"}', "/name"],
  ["one that the schema does not know", '{"name":"x","more":{"a/b":["\\u0000"]}}', "/more/a~1b/0"],
  ["a name with U+0000", '{"name":"x","metadata":{"\\u0000":1}}', "/metadata/\\u0000"],
  ["an infinite number", '{"name":"x","metadata":{"a":1e400}}', ""],
  ["a number that would be zero", '{"name":"x","metadata":{"a":1e-400}}', ""],
  ["a number that loses digits", '{"name":"x","metadata":{"a":12345678901234567891}}', ""],
  ["a number of 60 KB", `{"name":"x","metadata":{"a":${"1".repeat(60_000)}}}`, ""],
  ["a small one of 60 KB", `{"name":"x","metadata":{"a":1.${"0".repeat(60_000)}}}`, ""],
  [
    "U+0000 far below",
    `{"name":"x","metadata":${"[".repeat(9000)}"\\u0000"${"]".repeat(9000)}}`,
    null,
  ],
])("a body with %s is 422, and leaves its Idempotency-Key free", async (_what, body, path) => {
  const headers = { ...JSON_TYPE, "idempotency-key": "one-key" };
  const answer = await rest.call("POST", "/agents", { token, body, headers });
  expectProblem(answer, 422, "VALIDATION_FAILED");
  if (path !== null) expect(answer.json().errors).toMatchObject([{ path, in: "body" }]);
  expect(await rest.context.store.db.selectFrom("idempotency").selectAll().execute()).toEqual([]);
});

test("the notes of a release without U+0000 may quote it, and honest numbers are kept", async () => {
  const metadata = [
    0, -0, 1.0, 0.1, 1e21, 1.5e-7, 123456789012345, 5e-324, -1.7976931348623157e308,
  ];
  const text = JSON.stringify({ name: "\\u0000 1e400", metadata: { metadata } });
  const written = text.replace("[0,", "[0.0,1E+2,100.50,-0,");
  const made = await rest.call("POST", "/agents", { token, body: written, headers: JSON_TYPE });
  expect(made.statusCode).toBe(201);
  expect(made.json().metadata.metadata).toEqual([
    0,
    100,
    100.5,
    0,
    ...metadata.slice(1).map((n) => n + 0),
  ]);
});

test.each([
  ["text", "text/plain"],
  ["a form", "application/x-www-form-urlencoded"],
  ["nothing known", "nonsense"],
])("a body declared as %s is 415", async (_what, type) => {
  const headers = { "content-type": type };
  const answer = await rest.call("POST", "/agents", { token, body: "name=x", headers });
  expectProblem(answer, 415, "UNSUPPORTED_MEDIA_TYPE");
});

// fastify/fastify#450
test.each([
  ["form", { "content-type": "application/x-www-form-urlencoded", "content-length": "0" }],
  ["text, in chunks", { "content-type": "text/plain", "transfer-encoding": "chunked" }],
  ["no type, in chunks", { "transfer-encoding": "chunked" }],
  ["an invalid type", { "content-type": "nonsense", "content-length": "0" }],
  ["an invalid type, in chunks", { "content-type": "nonsense", "transfer-encoding": "chunked" }],
  ["an empty type, in chunks", { "content-type": "", "transfer-encoding": "chunked" }],
])("an empty body is none for every operation, whatever its type: %s", async (_what, headers) => {
  const access = (await rest.login()).access_token;
  const ended = /logout|token.rotate|artifact/; // the login itself, and what takes a stream
  const answers: [string, number][] = [];
  for (const [path, methods] of Object.entries(rest.app.swagger().paths ?? {})) {
    for (const method of Object.keys(methods).filter((name) =>
      /post|patch|put|delete/.test(name),
    )) {
      if (ended.test(path)) continue;
      const url = path.replace("/api/v1", "").replace(/\{\w+\}/, "none");
      const answer = await rest.app.inject({
        method: method.toUpperCase() as "POST",
        url: `/api/v1${url}`,
        headers: { authorization: `Bearer ${access}`, ...headers },
      });
      answers.push([`${method} ${path}`, answer.statusCode]);
    }
  }
  expect(answers.length).toBeGreaterThan(10);
  expect(answers.filter(([, status]) => status === 415 || status === 401)).toEqual([]);
});

test.each(["/auth/session", "/agents/none/rotate-token"])(
  "a body that %s cannot read is still refused",
  async (path) => {
    const type = { "content-type": "text/plain" };
    for (const headers of [type, { ...type, "transfer-encoding": "chunked" }]) {
      const answer = await rest.call("POST", path, { token, body: "x", headers });
      expectProblem(answer, 415, "UNSUPPORTED_MEDIA_TYPE");
    }
  },
);

test("a body over 64 KiB is 413", async () => {
  const body = JSON.stringify({ name: "x".repeat(65536) });
  const answer = await rest.call("POST", "/agents", { token, body, headers: JSON_TYPE });
  expectProblem(answer, 413, "TOO_LARGE");
});

test.each(["null", "[]", "1", '"x"', "{}", ""])(
  "a body %j instead of an object is 422",
  async (body) => {
    const answer = await rest.call("POST", "/agents", { token, body, headers: JSON_TYPE });
    expectProblem(answer, 422, "VALIDATION_FAILED");
    expect(answer.json().errors.length).toBeGreaterThan(0);
  },
);

test("unknown fields are ignored, as on /wss", async () => {
  const body = { name: "x", colour: "red" };
  const answer = await rest.call("POST", "/agents", { token, body });
  expect(answer.statusCode).toBe(201);
  expect(answer.json()).not.toHaveProperty("colour");
});

test.each([
  ["/api/v1/nothing", 404],
  ["/nothing", 404],
  ["/metrics", 404],
  ["/api/v1/agents/", 404],
  [`/api/v1/agents/${"a".repeat(300)}`, 404],
])("GET %s is 404", async (path, status) => {
  const answer = await rest.app.inject({
    url: path,
    headers: { authorization: `Bearer ${token}` },
  });
  expectProblem(answer, status, "NOT_FOUND");
});

test("a path that cannot be decoded is 400", async () => {
  expectProblem(await rest.app.inject({ url: "/api/v1/agents/%zz" }), 400, "BAD_REQUEST");
});

test.each([
  ["DELETE", "/api/v1/agents", "GET, HEAD, POST"],
  ["GET", "/api/v1/auth/login", "POST"],
  ["PUT", "/api/v1/agents/x", "DELETE, GET, HEAD, PATCH"],
  ["POST", "/health", "GET, HEAD"],
  ["POST", "/wss", "GET, HEAD"],
  ["OPTIONS", "/api/v1/account", "GET, HEAD, PATCH"],
])("%s %s is 405 and lists the allowed methods", async (method, url, allow) => {
  const answer = await rest.app.inject({ method: method as "GET", url });
  expectProblem(answer, 405, "METHOD_NOT_ALLOWED");
  expect(answer.headers.allow).toBe(allow);
});

test("a plain GET of /wss is 426", async () => {
  const answer = await rest.app.inject({ url: "/wss" });
  expectProblem(answer, 426, "UPGRADE_REQUIRED");
  // It ends, for a peer of HTTP/1.0 or with `Connection: close` waits for that.
  expect(answer.headers.connection).toBe("Upgrade, close");
  expect(answer.headers.upgrade).toBe("websocket");
});

test.each([
  ["close", 426],
  [undefined, 426],
  ["keep-alive, not-upgrade", 426],
  ["keep-alive, Upgrade", 400],
])("`Upgrade: websocket` with `Connection: %s` is %i", async (connection, status) => {
  const headers = { upgrade: "websocket", ...(connection && { connection }) };
  const answer = await rest.app.inject({ url: "/wss", headers });
  if (status === 400) expectProblem(answer, 400, "BAD_REQUEST");
  else expectProblem(answer, 426, "UPGRADE_REQUIRED");
  const { detail } = answer.json();
  expect(detail).toContain(status === 400 ? "earlier requests" : "no `Connection: Upgrade`");
});

test("credentials are checked before the body", async () => {
  const answer = await rest.call("POST", "/agents", { body: "{", headers: JSON_TYPE });
  expectProblem(answer, 401, "AUTH_REQUIRED");
  expect(answer.headers["www-authenticate"]).toBe("Bearer");
});

test.each(["Basic YTpi", "Bearer", "Bearer a b", "acct_x"])(
  "an Authorization of %j counts as missing",
  async (authorization) => {
    const answer = await rest.call("GET", "/account", { headers: { authorization } });
    expectProblem(answer, 401, "AUTH_REQUIRED");
  },
);

test("a bug is a 500 and reveals nothing but the request id", async () => {
  const broken = await startRest();
  const { access_token } = await broken.login();
  await broken.context.store.db.schema.dropTable("agents").execute();
  const answer = await broken.call("GET", "/agents", { token: access_token });
  expectProblem(answer, 500, "INTERNAL");
  expect(answer.body).not.toContain('agents"');
  expect(answer.body).not.toMatch(/sql|table/i);
  await broken.close();
});

test.each([
  ["bytes that are not HTTP", "NONSENSE\r\n\r\n", 400],
  ["no Host", "GET /health HTTP/1.1\r\nConnection: close\r\n\r\n", 400],
  [
    "an unknown expectation",
    "GET /api/v1/account HTTP/1.1\r\nHost: x\r\nExpect: x\r\nConnection: close\r\n\r\n",
    401,
  ],
])("%s: a problem document, too", async (_what, bytes, status) => {
  const other = await startRest();
  await other.app.listen({ host: "127.0.0.1", port: 0 });
  const { port } = other.app.addresses()[0] as { port: number };
  const socket = connect(port, "127.0.0.1");
  socket.write(bytes);
  const [head, body = ""] = (await text(socket)).split("\r\n\r\n");
  expect(head).toContain(`HTTP/1.1 ${status} `);
  expect(Value.Check(Problem, JSON.parse(body))).toBe(true);
  await other.close();
});

test("health says ok, and ready is 503 while the relay is not", async () => {
  for (const path of ["/health", "/health/live", "/health/ready"]) {
    const answer = await rest.app.inject({ url: path });
    expect([answer.statusCode, answer.json()]).toEqual([200, { status: "ok" }]);
  }
  const draining = await startRest();
  Object.assign(draining.context, { isReady: async () => false });
  expectProblem(await draining.app.inject({ url: "/health/ready" }), 503, "UNAVAILABLE");
  expect((await draining.app.inject({ url: "/health/live" })).statusCode).toBe(200);
  await draining.close();
});

test("a balancer that polls health every second does not fill the log", async () => {
  const lines: string[] = [];
  const log = createLog("info", { write: (line: string) => lines.push(line) });
  for (const isReady of [true, false]) {
    const app = buildApp({ ...rest.context, isReady: async () => isReady }, log);
    for (const url of ["/health/live", "/health/ready"]) await app.inject({ url });
    expect(lines).toEqual([]);
    await app.inject({ url: "/api/v1/auth/config" });
    expect(lines.splice(0)).toHaveLength(1);
    await app.close();
  }
});
