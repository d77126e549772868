import { once } from "node:events";
import type { AddressInfo } from "node:net";
import { MAX_MESSAGE_BYTES } from "@blindrelay/protocol";
import { nodeSuite } from "@blindrelay/protocol/suites/node";
import { expect, it } from "vitest";
import { WebSocketServer } from "ws";
import { MemoryPreference } from "../engines/preference.ts";
import { systemTimer } from "../node/index.ts";
import {
  linkConformance,
  storageConformance,
  timerConformance,
} from "../testing/conformance/index.ts";
import { ecmaWebSocket } from "../testing/ecma-websocket.ts";
import { fakeTime, fakeTimer, valuesOf } from "../testing/moddable-sdk.ts";
import { relaySides } from "../testing/relay-sides.ts";
import { wsWire } from "../testing/ws-wire.ts";
import { ecmaLinks } from "./link.ts";
import { valueStorage } from "./storage.ts";
import { moddableTimer } from "./timer.ts";

/** The test's own time limit ends a wait that never succeeds. */
const until = async (done: () => boolean): Promise<void> => {
  while (!done()) await new Promise((resolve) => setTimeout(resolve, 1));
};

const timer = () => moddableTimer(fakeTimer, fakeTime());

timerConformance("moddable", () => ({ timer: timer(), until }));

storageConformance("preference", nodeSuite(), () => {
  const preference = new MemoryPreference();
  return {
    storage: valueStorage(valuesOf(preference)),
    reopen: () => valueStorage(valuesOf(preference)),
  };
});

const io = ecmaWebSocket(wsWire, systemTimer());

linkConformance("ECMA-419", async () => {
  const server = new WebSocketServer({ port: 0, host: "127.0.0.1" });
  await once(server, "listening");
  const relays = relaySides(server);
  return {
    port: ecmaLinks({ ws: { io }, wss: null, timer: timer(), maxMessage: MAX_MESSAGE_BYTES }),
    url: `ws://127.0.0.1:${(server.address() as AddressInfo).port}/wss`,
    deadUrl: "ws://127.0.0.1:1/wss",
    relays,
    until,
    async end() {
      for (const socket of server.clients) socket.terminate();
      server.close();
      await once(server, "close");
    },
  };
});

it("a project without TLS reports a wss address as closed, with the reason", async () => {
  const reasons: string[] = [];
  const port = ecmaLinks({ ws: { io }, wss: null, timer: timer(), maxMessage: MAX_MESSAGE_BYTES });
  port.connect("wss://relay.example", {
    opened: () => reasons.push("opened"),
    received: () => {},
    closed: (_code, reason) => reasons.push(reason),
  });
  await until(() => reasons.length > 0);
  expect(reasons).toEqual(["this project has no wss network"]);
});
