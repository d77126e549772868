/** The REST client on its two edges, against real servers; what commands make of it: tools. */
import { once } from "node:events";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { text } from "node:stream/consumers";
import { afterEach, describe, expect, it } from "vitest";
import { Rest as BrowserRest, type RestOptions } from "./index.ts";
import { Rest as NodeRest } from "./node.ts";
import type { Rest, RestError } from "./rest.ts";

const USER = {
  id: "1",
  username: "ada",
  role: "admin",
  totp_enabled: false,
  created_at: "2026-11-21T09:41:07.250Z",
};
const agent = (agent_id: string) => ({
  agent_id,
  name: agent_id,
  online: true,
  last_seen: null,
  runtime: null,
  firmware_version: null,
  created_at: USER.created_at,
  labels: {},
  metadata: {},
});

let server: Server;
afterEach(() => {
  server.closeAllConnections();
  server.close();
});

const serve = async (
  answer: (request: IncomingMessage, response: ServerResponse) => void,
): Promise<string> => {
  server = createServer(answer);
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
};

const json = (response: ServerResponse, status: number, value: unknown, headers = {}): void => {
  response.writeHead(status, { "content-type": "application/json", ...headers });
  response.end(JSON.stringify(value));
};

const failure = (work: Promise<unknown>): Promise<RestError> =>
  work.then(
    () => expect.unreachable(),
    (error) => error,
  );

const EDGES: readonly (readonly [string, (options: RestOptions) => Rest])[] = [
  ["node:http", (options) => new NodeRest(options)],
  ["fetch", (options) => new BrowserRest(options)],
];

describe.each(EDGES)("over %s", (_name, make) => {
  it("logs in without a token, and asks with the one it was given", async () => {
    const seen: unknown[] = [];
    const url = await serve(async (request, response) => {
      const { method, url: path, headers } = request;
      seen.push([method, path, headers.authorization, await text(request)]);
      const user = { ...USER, api_token: null };
      const login = { access_token: "login_x", token_type: "Bearer", expires_in: 3600, user };
      json(response, 200, path?.endsWith("login") ? login : USER);
    });
    const given = { username: "ada", password: "é", totp_code: "123456" };
    const { access_token } = await make({ url }).logIn(given);
    const rest = make({ url: `${url}/wss`.replace("http", "ws"), token: access_token });
    expect((await rest.ask("User", "GET", "/account")).username).toBe("ada");
    expect(Math.abs((rest.relayTime ?? 0) - Date.now())).toBeLessThan(60_000);
    expect(seen).toEqual([
      ["POST", "/api/v1/auth/login", undefined, JSON.stringify(given)],
      ["GET", "/api/v1/account", "Bearer login_x", ""],
    ]);
  });

  it("an answer's name that is no schema's is the program's fault, and not the relay's", async () => {
    const rest = make({ url: await serve((_request, response) => json(response, 200, USER)) });
    const error = await failure(rest.ask("Users" as "User", "GET", "/account"));
    expect(error).toBeInstanceOf(TypeError);
    expect(error.message).toContain("is called Users");
  });

  it("asks for each page once, in whatever order a relay names them", async () => {
    let asked = 0;
    const url = await serve((_request, response) => {
      json(response, 200, { items: [], next_cursor: "ABC"[++asked % 3] });
    });
    await expect(make({ url }).list("AgentPage", "/agents")).rejects.toThrow("does not end");
    expect(asked).toBe(4);
  });

  it("reads a list page by page, no further than its reader, and with the query each time", async () => {
    const asked: (string | undefined)[] = [];
    const url = await serve(({ url: path }, response) => {
      asked.push(path);
      const page = asked.length;
      json(response, 200, {
        items: [agent(`a-${page}`)],
        next_cursor: page < 3 ? `&${page}` : null,
      });
    });
    const rest = make({ url });
    const all = await rest.list("AgentPage", "/agents", { online: true, name: undefined });
    expect(all.map(({ agent_id }) => agent_id)).toEqual(["a-1", "a-2", "a-3"]);
    expect(asked).toEqual([
      "/api/v1/agents?online=true",
      "/api/v1/agents?online=true&cursor=%261",
      "/api/v1/agents?online=true&cursor=%262",
    ]);
    asked.length = 0;
    for await (const { agent_id } of rest.items("AgentPage", "/agents")) {
      expect(agent_id).toBe("a-1");
      break;
    }
    expect(asked).toHaveLength(1);
  });

  it("refuses what is too deep to be written again, and reads as many levels as a relay keeps", async () => {
    let levels = 4096;
    const url = await serve((_request, response) => {
      const nested = `${"[".repeat(levels)}${"]".repeat(levels)}`;
      // A busy machine may need longer for one answer than the server keeps a connection.
      response.setHeader("connection", "close");
      response.end(
        JSON.stringify({ ...agent("a"), metadata: { x: 1 } }).replace(":1}", `:${nested}}`),
      );
    });
    const rest = make({ url });
    expect(JSON.stringify(await rest.ask("Agent", "GET", "/agents/a"), null, 2)).toContain("[");
    levels = 200_000;
    const refused = await failure(rest.ask("Agent", "GET", "/agents/a"));
    expect([refused.code, refused.status]).toEqual(["NOT_A_RELAY", 200]);
  });

  it("waits for a busy relay; for one whose store is away only if that cannot do it twice", async () => {
    let asked = 0;
    let code = "RATE_LIMITED";
    const url = await serve((_request, response) => {
      asked++;
      if (asked === 3) json(response, 200, USER);
      else json(response, 503, { code, detail: "Away." }, { "retry-after": "0" });
    });
    const rest = make({ url });
    await rest.ask("User", "POST", "/x");
    asked = 0;
    code = "UNAVAILABLE";
    await rest.ask("User", "GET", "/x");
    expect(asked).toBe(3);
    asked = 0;
    expect((await failure(rest.ask("User", "POST", "/x"))).code).toBe("UNAVAILABLE");
    expect(asked).toBe(1);
  });

  it("says once how long to wait", async () => {
    let detail = "Locked for 9 s more.";
    const url = await serve((_request, response) =>
      json(response, 429, { code: "LOCKED_OUT", detail }, { "retry-after": "9" }),
    );
    const told = async () => (await failure(make({ url }).ask("User", "GET", "/x"))).message;
    expect(await told()).toBe("Locked for 9 s more.");
    detail = "Locked.";
    expect(await told()).toBe("Locked. (try again in 9 s)");
  });

  it("ends with the caller's signal, while asking and while waiting", async () => {
    const url = await serve((_request, response) =>
      json(response, 429, { code: "RATE_LIMITED" }, { "retry-after": "9" }),
    );
    for (const signal of [AbortSignal.abort("enough"), AbortSignal.timeout(300)]) {
      const reason = await failure(make({ url, signal }).ask("User", "GET", "/x"));
      expect(signal.aborted).toBe(true);
      expect(reason).toBe(signal.reason);
    }
  });

  it("reports what a relay would not answer, and sends the token no further", async () => {
    const asked: (string | undefined)[] = [];
    const url = await serve(({ url: path }, response) => {
      asked.push(path);
      if (path?.endsWith("/moved")) response.writeHead(307, { location: "/api/v1/else" }).end();
      else if (path?.endsWith("/large")) response.end("x".repeat(70_000));
      else json(response, 200, { ...USER, username: 7 });
    });
    const rest = make({ url, token: "acct_x", limits: { answerBytes: 65_536 } });
    const moved = await failure(rest.ask("User", "GET", "/moved"));
    expect([moved.code, moved.message]).toEqual(["NOT_A_RELAY", expect.stringContaining("fix: ")]);
    const large = await failure(rest.ask("User", "GET", "/large"));
    expect([large.code, large.status]).toEqual(["NOT_A_RELAY", 200]);
    const other = await failure(rest.ask("User", "GET", "/other"));
    expect([other.code, other.message]).toEqual([
      "NOT_A_RELAY",
      expect.stringContaining("/username"),
    ]);
    expect(asked).toEqual(["/api/v1/moved", "/api/v1/large", "/api/v1/other"]);
  });

  const SWITCH = "HTTP/1.1 101 Switching Protocols\r\nconnection: Upgrade\r\nupgrade: x\r\n\r\n";
  it.each([
    ["nothing", "", false],
    ["nothing, and ends", "", true],
    ["no HTTP", "lamp\r\n\r\n", false],
    ["half a head", "HTTP/1.1 200 OK\r\nx: ", false],
    ["half a body", 'HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\n{"id"', true],
    ["a chunk of no size", "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nlamp\r\n", false],
    ["only what comes before an answer", "HTTP/1.1 103 Early Hints\r\n\r\n".repeat(9), false],
    ["an upgrade that nobody asked for", SWITCH, false],
    ["an upgrade with more behind it", `${SWITCH}lamp`, false],
    ["an upgrade, and ends", SWITCH, true],
    ["an upgrade without its headers", "HTTP/1.1 101 Switching Protocols\r\n\r\n", false],
  ])("fails in time where %s comes", async (_what, bytes, isEnd) => {
    const url = await serve(({ socket }) => {
      socket.write(bytes);
      if (isEnd) socket.destroySoon();
    });
    const failed = await failure(make({ url, limits: { answerMs: 300 } }).ask("User", "GET", "/x"));
    expect(["NOT_A_RELAY", "TIMED_OUT", "UNREACHABLE"]).toContain(failed.code);
  });

  it("uploads a Blob", async () => {
    let body = "";
    const url = await serve(async (request, response) => {
      body = await text(request);
      json(response, 200, USER);
    });
    await make({ url }).upload("User", "/x", new Blob(["firm", "ware"]), {});
    expect(body).toBe("firmware");
  });
});

it("on Node a GET is asked again where the server closed a kept connection meanwhile, a POST is not", async () => {
  const asked: string[] = [];
  const used = new WeakSet();
  const url = await serve(({ method, socket }, response) => {
    asked.push(`${method}`);
    // As a server that has just waited long enough for another request.
    if (used.has(socket)) return void socket.destroy();
    used.add(socket);
    json(response, 200, USER);
  });
  const rest = new NodeRest({ url });
  for (let n = 0; n < 2; n++) await rest.ask("User", "GET", "/x");
  expect(asked).toEqual(["GET", "GET", "GET"]);
  expect((await failure(rest.ask("User", "POST", "/x"))).code).toBe("UNREACHABLE");
  expect(asked.slice(3)).toEqual(["POST"]);
});

it("on Node an upload is read as it is sent, and stops with an early refusal", async () => {
  let made = 0;
  const url = await serve((_request, response) => {
    json(response, 409, { code: "CONFLICT", detail: "No draft." }, { connection: "close" });
  });
  const endless = async function* () {
    for (;;) {
      made++;
      yield new Uint8Array(65_536);
    }
  };
  const error = await failure(new NodeRest({ url }).upload("Release", "/x", endless(), {}));
  expect(["CONFLICT", "UNREACHABLE"]).toContain(error.code);
  expect(made).toBeLessThan(10_000);
});

it("on Node a request ends with its signal on the way through a proxy too, and so does the tunnel", async () => {
  const proxy = await serve(() => expect.unreachable());
  const asked = once(server, "connect");
  const caller = new AbortController();
  const rest = new NodeRest({ url: "http://relay.example", proxy, signal: caller.signal });
  const reason = failure(rest.ask("User", "GET", "/x"));
  const [, tunnel] = await asked;
  const closed = once(tunnel, "end");
  tunnel.resume();
  caller.abort("enough");
  expect(await reason).toBe("enough");
  await closed;
}, 10_000);
