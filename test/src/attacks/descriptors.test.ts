/** A relay with few file descriptors, and more connections than these. */
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import type { Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { holdsWithin } from "../overload/edge/conversation.ts";
import { RawLink } from "../overload/raw-link.ts";
import { rawSocket } from "../overload/raw-socket.ts";
import { type RelayProcess, startRelayProcess } from "../overload/relay-process.ts";

const DESCRIPTORS = 256;
const CONNECTIONS = 600;

let folder: string;
let relay: RelayProcess;
beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), "blindrelay-descriptors-"));
  const node = join(folder, "node");
  const script = `#!/bin/sh\nulimit -n ${DESCRIPTORS}\nexec "${process.execPath}" "$@"\n`;
  writeFileSync(node, script, { mode: 0o755 });
  relay = await startRelayProcess(["--log-level", "info"], { node });
});
afterEach(async () => {
  await relay.stop();
  rmSync(folder, { recursive: true });
});

const logIn = (): Promise<RawLink> => {
  const auth = { client_type: "client", api_token: relay.account };
  return RawLink.open({ port: relay.port, localAddress: "127.0.0.9", auth });
};

/** Adds an agent over a connection that is open already. */
const write = async (socket: Socket, name: string): Promise<string> => {
  const body = JSON.stringify({ name });
  const head = `POST /api/v1/agents HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${relay.account}\r\n`;
  const type = `Content-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n`;
  socket.write(head + type + body);
  const [answer] = await once(socket, "data");
  return String(answer).slice(0, 12);
};

const said = (text: string) => relay.log.filter((line) => line.includes(text)).length;

test(`${CONNECTIONS} connections on ${DESCRIPTORS} descriptors: who is there is served, the log says why others are not, and all recovers`, async () => {
  const writer = rawSocket({ port: relay.port, localAddress: "127.0.0.9" });
  expect(await write(writer, "before")).toBe("HTTP/1.1 201");
  const open = new Set<Socket>();
  for (let made = 0; made < CONNECTIONS; made++) {
    const socket = rawSocket({ port: relay.port });
    open.add(socket);
    // Half a head: the relay may still be sent the rest.
    socket.once("close", () => open.delete(socket)).resume();
    socket.write("GET / HTTP/1.1\r\n");
  }
  expect(await holdsWithin(10_000, () => open.size < DESCRIPTORS)).toBe(true);
  expect(open.size).toBeGreaterThan(DESCRIPTORS / 2);
  expect(await write(writer, "meanwhile")).toBe("HTTP/1.1 201");
  expect(await holdsWithin(10_000, () => said("file descriptors are left") > 0)).toBe(true);
  const newcomer = rawSocket({ port: relay.port, localAddress: "127.0.0.9" }).resume();
  await once(newcomer, "close");

  for (const socket of open) socket.destroy();
  expect(await holdsWithin(10_000, () => said("enough file descriptors again") > 0)).toBe(true);
  (await logIn()).close();
  expect(await write(writer, "afterwards")).toBe("HTTP/1.1 201");
  writer.destroy();
  expect(said("file descriptors are left")).toBe(1);
  expect(relay.log.filter((line) => /"level":60|"err"/.test(line))).toEqual([]);
});
