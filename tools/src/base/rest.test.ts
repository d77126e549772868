/** The message and the exit code, whatever is found instead of the relay. */
import { once } from "node:events";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { Readable } from "node:stream";
import { EXIT, Failure } from "@blindrelay/protocol/command-line";
import { delay, HttpResponse, http } from "msw";
import { setupServer } from "msw/node";
import { afterAll, afterEach, beforeAll, expect, it } from "vitest";
import { Rest, type RestFailure } from "./rest.ts";

const BASE = "https://relay.example";
const ANY = `${BASE}/api/v1/*`;
const TOKEN = "acct_of-no-meaning";

const server = setupServer();
beforeAll(() => server.listen({ onUnhandledFrame: "bypass" }));
afterEach(() => server.resetHandlers());
afterAll(() => server.close());

const listen = async (play: Server): Promise<number> => {
  play.listen(0, "127.0.0.1");
  await once(play, "listening");
  return (play.address() as AddressInfo).port;
};

const problem = (status: number, fields: object, headers: Record<string, string> = {}) =>
  HttpResponse.json(
    { type: "about:blank", title: "Title", status, ...fields },
    { status, headers: { "content-type": "application/problem+json", ...headers } },
  );

const answered = (answer: () => Response | Promise<Response>): void =>
  server.use(http.all(ANY, answer));

const failureOf = async (asked: Promise<unknown>): Promise<Failure> => {
  const error = await asked.then(
    () => null,
    (reason: unknown) => reason,
  );
  expect(error).toBeInstanceOf(Failure);
  expect((error as Failure).message).not.toContain(TOKEN);
  return error as Failure;
};

const ask = (token: string | null = TOKEN, base = BASE) =>
  failureOf(new Rest(base, token).ask("AgentPage", "GET", "/agents"));

it("what the relay says of an error begins no line of its own", async () => {
  answered(() => problem(400, { code: "BAD_REQUEST", detail: "No.\nblindrelay: it is done" }));
  expect((await ask()).message).toBe("No.\ufffdblindrelay: it is done");
});

it("an internal error of the relay is reported with its request_id", async () => {
  answered(() =>
    problem(500, { code: "INTERNAL", detail: "Something failed here.", request_id: "req-9" }),
  );
  const failure = await ask();
  expect([failure.exitCode, failure.message]).toEqual([
    EXIT.unreachable,
    "Something failed here. (request req-9)",
  ]);
});

it.each([
  ["an error page", 502, "<h1>Bad Gateway</h1>", "text/html; charset=utf-8"],
  ["a page in place of an answer", 200, "<title>Log in to the guest network</title>", "text/html"],
  [
    "JSON of another server",
    404,
    '{"detail":[{"loc":["x"]}],"errors":{"a":1}}',
    "application/json",
  ],
  ["an answer that broke off", 200, '{"items":[{"agent_id":"pu', "application/json"],
  ["nothing at all", 200, "", "application/json"],
])("%s is reported as not from a relay", async (_what, status, body, type) => {
  answered(() => new HttpResponse(body, { status, headers: { "content-type": type } }));
  const failure = await ask();
  expect(failure.exitCode).toBe(EXIT.unreachable);
  expect(failure.message).toContain(`answered ${status} with ${type.split(";")[0]}`);
  expect(failure.message).toMatch(/; fix: is (this a relay's address|the relay behind)/);
});

it("an expired token is reported with its fix, a wrong password without", async () => {
  answered(() => problem(401, { code: "INVALID_TOKEN", detail: "This token has expired." }));
  const failure = await ask();
  expect([failure.exitCode, (failure as RestFailure).code]).toEqual([
    EXIT.refused,
    "INVALID_TOKEN",
  ]);
  expect(failure.message).toMatch(/^This token has expired; fix: blindrelay login /);
  expect((await ask(null)).message).toBe("This token has expired.");
  answered(() => problem(401, { code: "INVALID_TOKEN", detail: "Invalid token" }));
  expect((await ask()).message).toMatch(/^Invalid token; fix: blindrelay login /);
});

it.each([
  ["600", "Locked out. (try again in 600 s)"],
  // elizaOS/eliza#22162
  ["Sat, 21 Nov 2026 15:00:00 GMT", "Locked out. (try again after Sat, 21 Nov 2026 15:00:00 GMT)"],
])("Retry-After %s is reported as a time", async (after, message) => {
  answered(() =>
    problem(429, { code: "RATE_LIMITED", detail: "Locked out." }, { "retry-after": after }),
  );
  const failure = await ask();
  expect([failure.exitCode, failure.message]).toEqual([EXIT.refused, message]);
});

it("a problem in a body is reported with its place", async () => {
  const errors = [{ path: "/name", in: "body", message: "must not be empty" }];
  answered(() => problem(422, { code: "VALIDATION_FAILED", detail: "Wrong shape.", errors }));
  const failure = await failureOf(
    new Rest(BASE, TOKEN).ask("AgentCreated", "POST", "/agents", { name: "" }),
  );
  expect([failure.exitCode, failure.message]).toEqual([
    EXIT.usage,
    "Wrong shape.; /name: must not be empty",
  ]);
});

it("a signature that the relay does not accept is a refusal, not a usage error", async () => {
  answered(() => problem(422, { code: "UNTRUSTED_SIGNATURE", detail: "No key fits." }));
  expect((await failureOf(new Rest(BASE, TOKEN).tell("POST", "/x"))).exitCode).toBe(EXIT.refused);
});

it("a redirection is reported, and the token is not sent along", async () => {
  const followed: string[] = [];
  server.use(
    http.all("https://elsewhere.example/*", ({ request }) => {
      followed.push(request.url);
      return HttpResponse.json({ items: [] });
    }),
  );
  answered(() => HttpResponse.redirect("https://elsewhere.example/api/v1/agents", 301));
  const failure = await ask();
  expect(failure.exitCode).toBe(EXIT.unreachable);
  expect(failure.message).toContain("points to https://elsewhere.example/api/v1/agents");
  expect(followed).toEqual([]);
});

it("a response that does not arrive or is incomplete fails at its deadline with 6", async () => {
  const limits = { answerMs: 50, uploadMs: 60 };
  const rest = new Rest(BASE, TOKEN, limits);
  answered(async () => {
    await delay("infinite");
    return HttpResponse.json({});
  });
  const slow = await failureOf(rest.ask("AgentPage", "GET", "/agents"));
  expect([slow.exitCode, slow.message]).toEqual([
    EXIT.timeout,
    `the relay ${BASE} did not answer in 0.05 s`,
  ]);
  const upload = await failureOf(
    rest.upload("Release", "/releases/1/artifact", Readable.from(["x"]), {}),
  );
  expect(upload.exitCode).toBe(EXIT.timeout);
  expect(upload.message).toContain("in 0.06 s");
});

it("a response that begins and never ends is given up at its deadline too", async () => {
  const begun = createServer((_request, response) => response.write("["));
  const port = await listen(begun);
  const rest = new Rest(`http://127.0.0.1:${port}`, TOKEN, { answerMs: 200, uploadMs: 200 });
  expect((await failureOf(rest.ask("AgentPage", "GET", "/agents"))).exitCode).toBe(EXIT.timeout);
  begun.closeAllConnections();
  begun.close();
});

it("an unreachable relay is reported with address and reason, one with two addresses too", async () => {
  const closed = createServer();
  const port = await listen(closed);
  closed.close();
  await once(closed, "close");
  for (const host of ["127.0.0.1", "localhost"]) {
    const failure = await ask(TOKEN, `http://${host}:${port}`);
    expect(failure.exitCode).toBe(EXIT.unreachable);
    expect(failure.message).toMatch(
      new RegExp(`http://${host}:${port} cannot be reached: .*ECONNREFUSED`),
    );
  }
});

const PAGE = { items: [], next_cursor: null };

it("a response is parsed, and 204 has none", async () => {
  answered(() => HttpResponse.json(PAGE));
  expect(await new Rest(BASE, TOKEN).ask("AgentPage", "GET", "/agents")).toEqual(PAGE);
  answered(() => new HttpResponse(null, { status: 204 }));
  expect(await new Rest(BASE, TOKEN).tell("DELETE", "/agents/x")).toBeUndefined();
});

it.each([
  ["another value", [], "the whole"],
  ["no token", { agent_id: "pump-7", rotated_at: "2026-11-21T09:41:07.250Z" }, "api_token"],
  ["a token of another type", { agent_id: "pump-7", api_token: 7, rotated_at: "" }, "/"],
])("a success with %s is not taken for one", async (_what, answer, place) => {
  answered(() => HttpResponse.json(answer as object));
  const asked = new Rest(BASE, TOKEN).ask(
    "RotateAgentAnswer",
    "POST",
    "/agents/pump-7/rotate-token",
  );
  const failure = await failureOf(asked);
  expect(failure.exitCode).toBe(EXIT.unreachable);
  expect(failure.message).toContain("answered unlike a relay");
  expect(failure.message).toContain(place);
});

it("a page in place of an empty answer is not taken for success", async () => {
  answered(() => new HttpResponse("<title>Log in</title>", { status: 200 }));
  expect((await failureOf(new Rest(BASE, TOKEN).tell("DELETE", "/agents/x"))).exitCode).toBe(
    EXIT.unreachable,
  );
});

it.each([
  ["has no cursor", () => ({ items: [] })],
  ["names the same page for ever", () => ({ items: [], next_cursor: "again" })],
  ["names new pages for ever", (n: number) => ({ items: [], next_cursor: `page ${n}` })],
])("a list that %s ends", async (_what, page) => {
  let asked = 0;
  answered(() => HttpResponse.json(page(++asked)));
  const rest = new Rest(BASE, TOKEN, { pages: 20 });
  expect((await failureOf(rest.list("AgentPage", "/agents"))).exitCode).toBe(EXIT.unreachable);
  expect(asked).toBeLessThanOrEqual(20);
});

it("an answer larger than any of a relay is not read to its end", async () => {
  let sent = 0;
  const endless = createServer((_request, response) => {
    const chunk = "x".repeat(16_384);
    const more = () => {
      sent += chunk.length;
      if (!response.destroyed && response.write(chunk)) setImmediate(more);
    };
    response.on("drain", more);
    more();
  });
  const base = `http://127.0.0.1:${await listen(endless)}`;
  const failure = await failureOf(
    new Rest(base, TOKEN, { answerBytes: 65_536 }).ask("AgentPage", "GET", "/agents"),
  );
  expect(failure.message).toContain("more than 65536 bytes");
  endless.closeAllConnections();
  endless.close();
  expect(sent).toBeLessThan(64 * 1024 * 1024);
});

it("a busy relay that names a short wait is asked again", async () => {
  let asked = 0;
  answered(() => {
    asked++;
    if (asked > 2) return HttpResponse.json(PAGE);
    return problem(429, { code: "RATE_LIMITED", detail: "Busy." }, { "retry-after": "0" });
  });
  expect(await new Rest(BASE, TOKEN).ask("AgentPage", "GET", "/agents")).toEqual(PAGE);
  expect(asked).toBe(3);
});
