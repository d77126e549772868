/**
 * An agent of startAgent on real sockets, with a minimal relay and a client with a real session.
 */
import { mkdtempSync, rmSync } from "node:fs";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { makeToken } from "@blindrelay/protocol";
import { jsonBytes, readJson } from "@blindrelay/protocol/crypto";
import { ClientSession, DEFAULT_CLIENT_TIMINGS } from "@blindrelay/protocol/session";
import { nodeSuite } from "@blindrelay/protocol/suites/node";
import { type FakeLink, FakeRelay } from "@blindrelay/protocol/testing/fake-relay";
import { afterAll, afterEach, beforeEach, expect, it } from "vitest";
import { type WebSocket, WebSocketServer } from "ws";
import { ConfigError, type RunningAgent, type StartOptions, startAgent } from "./index.ts";

const root = mkdtempSync(join(tmpdir(), "blindrelay-start-"));
afterAll(() => rmSync(root, { recursive: true, force: true }));

const RELAY_TOKEN = makeToken("agent", new Uint8Array(32).fill(1));

// biome-ignore lint/suspicious/noExplicitAny: whatever JSON the agent sends.
type Json = any;

/** Waits for values one after another. */
class Inbox<T> {
  private readonly items: T[] = [];
  private readonly waiting: ((item: T) => void)[] = [];

  put(item: T): void {
    const next = this.waiting.shift();
    if (next) next(item);
    else this.items.push(item);
  }

  next(): Promise<T> {
    const item = this.items.shift();
    return item === undefined
      ? new Promise((resolve) => this.waiting.push(resolve))
      : Promise.resolve(item);
  }
}

interface Connection {
  readonly socket: WebSocket;
  readonly link: FakeLink;
  readonly path: string;
  readonly messages: Inbox<Json>;
}

let server: WebSocketServer;
let connections: Inbox<Connection>;
let running: RunningAgent[];

beforeEach(async () => {
  running = [];
  connections = new Inbox();
  server = new WebSocketServer({ port: 0, host: "127.0.0.1" });
  server.on("connection", (socket, request) => {
    const messages = new Inbox<Json>();
    // Does not accept anybody by itself: the test decides when.
    const link = new FakeRelay({
      auth: () => {},
      message: (_link, _message, text) => messages.put(JSON.parse(text)),
    }).attach(socket);
    socket.on("message", (data) => link.receive(data.toString()));
    connections.put({ socket, link, path: request.url ?? "", messages });
  });
  await new Promise((resolve) => server.once("listening", resolve));
});

afterEach(async () => {
  for (const agent of running) await agent.stop();
  for (const socket of server.clients) socket.terminate();
  await new Promise((resolve) => server.close(resolve));
});

const optionsFor = (agentToken: string): StartOptions => ({
  url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
  agentId: "lamp-1",
  relayToken: RELAY_TOKEN,
  agentToken,
  stateDir: mkdtempSync(join(root, "state-")),
  program: (agent) => {
    agent.handle("echo", async (params) => params);
  },
  log: () => {},
});

const accept = async (connection: Connection): Promise<void> => {
  expect(await connection.messages.next()).toMatchObject({ type: "auth", agent_id: "lamp-1" });
  connection.link.accept("sess_1");
};

const start = async (byte: number): Promise<{ options: StartOptions; connection: Connection }> => {
  const options = optionsFor(makeToken("e2e", new Uint8Array(32).fill(byte)));
  const agent = await startAgent(options);
  running.push(agent);
  const connection = await connections.next();
  await accept(connection);
  await agent.online();
  return { options, connection };
};

it("logs in at /wss, answers sealed calls and pings, and reconnects after a lost link", async () => {
  const { options, connection } = await start(1);
  expect(connection.path).toBe("/wss");

  const session = new ClientSession({
    suite: nodeSuite(),
    random: (length) => crypto.getRandomValues(new Uint8Array(length)),
    agentId: options.agentId,
    agentToken: options.agentToken,
    version: "1",
    timings: DEFAULT_CLIENT_TIMINGS,
  });
  const exchange = async (over: Connection, packet: string) => {
    over.socket.send(packet);
    return session.receive(JSON.stringify(await over.messages.next()), 0);
  };
  const [opening] = session.open(0);
  if (opening?.kind !== "send") throw new Error("no opening");
  const [ping] = await exchange(connection, opening.text);
  if (ping?.kind !== "send") throw new Error("no ping");
  expect((await exchange(connection, ping.text))[0]?.kind).toBe("opened");

  const call = async (over: Connection, id: number): Promise<unknown> => {
    const request = { jsonrpc: "2.0", id, method: "echo", params: { text: "grüße" } };
    const [answer] = await exchange(over, session.seal(jsonBytes(request)) as string);
    return answer?.kind === "message" ? readJson(answer.plaintext) : answer;
  };
  expect(await call(connection, 2)).toEqual({ jsonrpc: "2.0", id: 2, result: { text: "grüße" } });
  connection.link.ping();
  expect(await connection.messages.next()).toEqual({ type: "pong" });

  connection.socket.terminate();
  const again = await connections.next();
  expect(await again.messages.next()).toMatchObject({ session_token: "sess_1" });
  again.link.accept("sess_1", 1);
  expect(await call(again, 3)).toMatchObject({ id: 3 });
});

it("reports that it starts with the first boot count, on a new folder and on one that vanished", async () => {
  const said: string[] = [];
  const options: StartOptions = {
    ...optionsFor(makeToken("e2e", new Uint8Array(32).fill(9))),
    log: (level, message) => level === "warn" && said.push(message),
  };
  const startAndStop = async () => (await startAgent(options)).stop();
  await startAndStop();
  expect(said).toEqual([expect.stringContaining("a new agent_token")]);
  await startAndStop();
  expect(said).toHaveLength(1);
  rmSync(options.stateDir, { recursive: true });
  await startAndStop();
  expect(said).toHaveLength(2);
});

it("is closed with 1000 when stopped", async () => {
  const { connection } = await start(2);
  const closed = new Promise((resolve) => connection.socket.once("close", resolve));
  await running[0]?.stop();
  expect(await closed).toBe(1000);
});

it("rejects online() if the relay will never accept it", async () => {
  const agent = await startAgent(optionsFor(makeToken("e2e", new Uint8Array(32).fill(3))));
  running.push(agent);
  const connection = await connections.next();
  await connection.messages.next();
  connection.link.refuse("WRONG_TOKEN_KIND");
  await expect(agent.online()).rejects.toThrow("agt_");
  expect(agent.core.link.state).toBe("refused");
});

it("survives a relay that refuses it with a long code", async () => {
  const agent = await startAgent(optionsFor(makeToken("e2e", new Uint8Array(32).fill(4))));
  running.push(agent);
  const connection = await connections.next();
  await connection.messages.next();
  const closed = new Promise((resolve) => connection.socket.once("close", resolve));
  const code = "X".repeat(200); // a close reason can have at most 123 bytes
  connection.link.refuse(code);
  expect(await closed).toBe(4000);
  expect(agent.core.link.status).toMatchObject({ state: "waiting", code });
});

it.each([
  [{ url: "ftp://relay" }, "http"],
  [{ url: "relay" }, "url"],
  [{ relayToken: "agt_x" }, "relayToken"],
  [{ agentToken: RELAY_TOKEN }, "end-to-end"],
])("refuses %j before it touches anything", async (wrong, text) => {
  const options = { ...optionsFor(makeToken("e2e", new Uint8Array(32))), ...wrong };
  const error = await startAgent(options).catch((thrown: unknown) => thrown);
  expect(error).toBeInstanceOf(ConfigError);
  expect((error as Error).message).toContain(text);
});
