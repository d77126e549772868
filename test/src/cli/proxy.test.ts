/**
 * The command in a network that only an HTTP proxy leads out of: REST and WebSocket go through it,
 * and its credentials are shown nowhere.
 */
import { createServer, type Server } from "node:http";
import { type AddressInfo, connect, type Socket } from "node:net";
import { afterAll, beforeAll, expect, it } from "vitest";
import { House, PASSWORD } from "./processes.ts";

const house = new House();
/** What the proxy was asked for, and with which credentials. */
const asked: string[] = [];
const sockets = new Set<Socket>();
let proxy: Server;
let env: Record<string, string>;

/** The only one that knows where `relay.example` is. */
const makeProxy = (): Server => {
  const server = createServer((_request, response) => response.writeHead(405).end());
  server.on("connect", ({ url, headers }, socket: Socket, head) => {
    asked.push(`${url} ${headers["proxy-authorization"] ?? "nobody"}`);
    if (headers["proxy-authorization"] !== `Basic ${btoa("ada:hidden pw")}`) {
      socket.end("HTTP/1.1 407 Proxy Authentication Required\r\n\r\n");
      return;
    }
    const way = connect(Number(new URL(house.url).port), "127.0.0.1", () => {
      socket.write("HTTP/1.1 200 OK\r\n\r\n");
      way.write(head);
      way.pipe(socket).pipe(way);
    });
    for (const end of [way, socket]) {
      sockets.add(end);
      end.on("error", () => undefined).on("close", () => sockets.delete(end));
    }
  });
  return server;
};

beforeAll(async () => {
  await house.open();
  proxy = makeProxy();
  await new Promise<void>((resolve) => proxy.listen(0, "127.0.0.1", resolve));
  const { port } = proxy.address() as AddressInfo;
  env = { HTTP_PROXY: `http://ada:hidden%20pw@127.0.0.1:${port}` };
});

afterAll(async () => {
  await house.close();
  for (const socket of sockets) socket.destroy();
  proxy.close();
});

// dam-agents/dam#2763, slackapi/node-slack-sdk#268
it("login, an agent, a call and the doctor go through the proxy of the environment", async () => {
  const url = "http://relay.example";
  const login = ["login", "--url", url, "--username", "ada", "--password-stdin"];
  const said = [await house.cli(login, env, `${PASSWORD}\n`)];
  said.push(await house.cli(["agent", "add", "Pump", "--id", "pump-7"], env));
  const program = house.write("pump.mjs", 'export default (a) => a.handle("echo", (p) => p);');
  const agent = house.start(["agent", "run", program, "--agent", "pump-7", "--json"], env);
  expect(await agent.json()).toMatchObject({ event: "online" });
  const before = asked.length;
  const called = await house.cli(["call", "pump-7", "echo", '{"a":1}'], env);
  expect([called.code, called.stdout]).toEqual([0, '{"a":1}\n']);
  expect(asked.length).toBe(before + 1);
  const doctor = await house.cli(["doctor", "pump-7"], env);
  expect(doctor.stdout).toMatch(/^- {3}proxy +127\.0\.0\.1:\d+, as the environment says$/m);
  expect(doctor.stdout).toMatch(/^ok {2}link/m);
  said.push(called, doctor, await agent.stop());
  // The doctor warns of tokens without TLS.
  expect(said.map(({ code }) => code)).toEqual([0, 0, 0, 1, 0]);
  expect(new Set(asked)).toEqual(new Set([`relay.example:80 Basic ${btoa("ada:hidden pw")}`]));
  expect(JSON.stringify(said)).not.toMatch(/hidden/);
});

it("NO_PROXY and a proxy that refuses are told with their fix, by REST and link alike", async () => {
  const direct = await house.cli(["agent", "list"], { ...env, NO_PROXY: "example" });
  expect([direct.code, direct.stderr]).toEqual([4, expect.stringMatching(/ENOTFOUND|EAI_AGAIN/)]);
  const stranger = { HTTP_PROXY: (env.HTTP_PROXY ?? "").replace("hidden", "secret") };
  for (const words of [
    ["agent", "list"],
    ["call", "pump-7", "echo"],
  ]) {
    const { code, stderr } = await house.cli(words, stranger);
    expect([code, stderr]).toEqual([
      4,
      expect.stringMatching(/the proxy 127\.0\.0\.1:\d+ answered 407/),
    ]);
    expect(stderr).toContain("; fix: let the proxy pass this host");
    expect(stderr).not.toContain("secret");
  }
});

it("this machine's own relay is reached without it", async () => {
  const before = asked.length;
  const token = (await house.cli(["auth", "token"], env)).stdout.trim();
  const { code } = await house.cli(["agent", "list"], {
    ...env,
    BLINDRELAY_URL: house.url,
    BLINDRELAY_ACCOUNT_TOKEN: token,
  });
  expect([code, asked.length]).toEqual([0, before]);
});
