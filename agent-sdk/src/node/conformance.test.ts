import { randomBytes } from "node:crypto";
import { mkdtempSync, rmSync } from "node:fs";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { nodeSuite } from "@blindrelay/protocol/suites/node";
import { afterAll } from "vitest";
import { WebSocketServer } from "ws";
import type { LinkPort } from "../ports.ts";
import {
  linkConformance,
  storageConformance,
  timerConformance,
} from "../testing/conformance/index.ts";
import { relaySides } from "../testing/relay-sides.ts";
import { folderStorage, systemTimer, webSocketLinks } from "./index.ts";
import { movingLinks } from "./moving-links.ts";

const folder = mkdtempSync(join(tmpdir(), "blindrelay-agent-"));
afterAll(() => rmSync(folder, { recursive: true }));

/** The test's own time limit ends a wait that never succeeds. */
const until = async (done: () => boolean): Promise<void> => {
  while (!done()) await new Promise((resolve) => setTimeout(resolve, 1));
};

storageConformance("folder", nodeSuite(), () => {
  const own = mkdtempSync(join(folder, "state-"));
  return { storage: folderStorage(own), reopen: () => folderStorage(own) };
});

timerConformance("system", () => ({ timer: systemTimer(), until }));

const overWebSockets = (port: LinkPort) => async () => {
  const server = new WebSocketServer({ port: 0, host: "127.0.0.1" });
  await new Promise((resolve) => server.once("listening", resolve));
  const relays = relaySides(server);
  return {
    port,
    url: `ws://127.0.0.1:${(server.address() as AddressInfo).port}/wss`,
    deadUrl: "ws://127.0.0.1:1/wss",
    relays,
    until,
    async end() {
      for (const socket of server.clients) socket.terminate();
      await new Promise((resolve) => server.close(resolve));
    },
  };
};

linkConformance("ws", overWebSockets(webSocketLinks()));

const ports = { link: webSocketLinks(), timer: systemTimer(), random: randomBytes, log: () => {} };
const login = { agentId: "pump", relayToken: "agt_x", runtime: "test" };
linkConformance("ws that moves", overWebSockets(movingLinks({ ...login, ports })));
