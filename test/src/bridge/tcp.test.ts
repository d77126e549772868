/**
 * A device behind TCP, named on the command line with its secrets in the environment: real sockets
 * only.
 */
import { once } from "node:events";
import { type AddressInfo, createServer, type Server, type Socket } from "node:net";
import type { Agent, CallError } from "@blindrelay/client-sdk/node";
import { afterAll, beforeAll, expect, it } from "vitest";
import type { Running } from "../cli/processes.ts";
import { BridgeHouse, newsOf } from "./world.ts";

const world = new BridgeHouse();
let server: Server;
let sockets: Socket[] = [];
let running: Running;
let agent: Agent;

beforeAll(async () => {
  await world.open();
  server = createServer((socket) => {
    sockets.push(socket);
    socket.on("error", () => undefined);
    socket.pipe(socket);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  const port = typeof address === "object" && address !== null ? address.port : 0;
  const added = await world.add("plc");
  running = world.house.start(["bridge", `tcp://127.0.0.1:${port}`, "--mode", "raw", "--json"], {
    BLINDRELAY_URL: world.house.url,
    BLINDRELAY_AGENT_ID: "plc",
    BLINDRELAY_RELAY_TOKEN: added.api_token,
    BLINDRELAY_AGENT_TOKEN: added.agent_token,
    BLINDRELAY_STATE_DIR: world.house.path("state-plc"),
  });
  await newsOf(running, "agent", "online");
  agent = (await world.client()).agent("plc", added.agent_token);
});
afterAll(async () => {
  await world.close();
  for (const socket of sockets) socket.destroy();
  server.close();
});

it("returns 300,000 bytes unchanged", async () => {
  const bytes = Uint8Array.from({ length: 300_000 }, (_, i) => (i * 31 + (i >> 9)) & 255);
  const reader = await agent.readStream("serial.read");
  const writer = await agent.writeStream("serial.write");
  const written = writer.write(bytes).then(() => writer.end());
  const got: Uint8Array[] = [];
  for (let length = 0; length < bytes.length; ) {
    const chunk = (await reader.read()) as Uint8Array;
    got.push(chunk);
    length += chunk.length;
  }
  await written;
  expect(Buffer.concat(got).equals(bytes)).toBe(true);
  expect(writer.sent).toBe(300_000);
  expect(await agent.call("serial.status")).toMatchObject({
    bytes_in: 300_000,
    bytes_out: 300_000,
  });
  reader.cancel();
});

it("reconnects when the other side hung up, and reports it", async () => {
  const reader = await agent.readStream("serial.read");
  for (const socket of sockets.splice(0)) socket.destroy();
  await expect(reader.read()).rejects.toThrow("the other side hung up");
  await newsOf(running, "port", "open");
  await newsOf(running, "agent", "online");
  const status = agent.call("serial.status", {}, { idempotent: true });
  expect(await status).toMatchObject({ bytes_in: 300_000 });
  const failure = agent.call("serial.signals", { dtr: true }).catch((error) => error);
  expect(((await failure) as CallError).remote?.message).toContain("use rfc2217://");
});

it("exits with 0 when it is stopped, and with 5 if the relay refuses its agent", async () => {
  expect((await running.stop()).code).toBe(0);
  sockets = [];
  const other = await world.add("other");
  const refused = await world.house.cli(
    ["bridge", "tcp://127.0.0.1:1", "--mode", "raw", "--state-dir", world.house.path("x")],
    {
      BLINDRELAY_URL: world.house.url,
      BLINDRELAY_AGENT_ID: "plc",
      BLINDRELAY_RELAY_TOKEN: other.agent_token,
      BLINDRELAY_AGENT_TOKEN: other.agent_token,
    },
  );
  expect([refused.code, refused.stderr]).toEqual([5, expect.stringContaining("RELAY_TOKEN")]);
  expect(refused.stderr).not.toContain(other.agent_token);
});

it("reports once that the relay is unreachable, and why, however often it tries", async () => {
  let tries = 0;
  const away = createServer((socket) => {
    tries++;
    socket.destroy();
  });
  const thrice = new Promise<void>((resolve) => {
    away.on("connection", () => {
      if (tries >= 3) resolve();
    });
  });
  away.listen(0, "127.0.0.1");
  await once(away, "listening");
  const { port } = away.address() as AddressInfo;
  await world.add("lonely");
  const device = (server.address() as AddressInfo).port;
  const { api_token: relayToken } = JSON.parse(
    (await world.house.cli(["agent", "export", "lonely", "--json"])).stdout,
  );
  const lonely = world.house.start(
    ["bridge", `tcp://127.0.0.1:${device}`, "--mode", "raw", "--agent", "lonely", "--json"],
    { BLINDRELAY_URL: `http://127.0.0.1:${port}`, BLINDRELAY_RELAY_TOKEN: relayToken },
  );
  await thrice;
  const { code, stdout } = await lonely.stop();
  away.close();
  expect(code).toBe(0);
  const offline = stdout.split("\n").filter((line) => line.includes('"offline"'));
  expect(offline).toHaveLength(1);
  expect(JSON.parse(offline[0] as string).advice).toContain("fix: ");
});
