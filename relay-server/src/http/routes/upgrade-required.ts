/**
 * Answers a plain GET of the WebSocket path with 426 (section 3). An upgrade gets here only if an
 * earlier request of its connection has no response yet, or if it asks for none; ws/ handles the
 * others first.
 */
import { WSS_PATH } from "@blindrelay/protocol";
import { Type } from "typebox";
import type { App } from "../base/context.ts";
import { HttpProblem } from "../base/problem.ts";

/** Without it, `Upgrade` asks for nothing (RFC 9110, section 7.8). */
const ASKS_TO_UPGRADE = /(^|,)[\t ]*upgrade[\t ]*(,|$)/i;
const NO_CONNECTION_UPGRADE =
  "The request has no `Connection: Upgrade`; proxies take it out unless set up for WebSocket.";

export const upgradeRoute = (app: App): void => {
  app.get(
    WSS_PATH,
    {
      config: { problems: ["UPGRADE_REQUIRED"] },
      schema: {
        summary: "The link of agents and clients: a WebSocket",
        description: "The messages are described in /api/asyncapi.json.",
        response: { 101: Type.Null({ description: "To a request that asks for the upgrade." }) },
      },
    },
    ({ headers }) => {
      const offered = headers.upgrade?.toLowerCase() === "websocket";
      if (offered && ASKS_TO_UPGRADE.test(headers.connection ?? "")) {
        throw new HttpProblem("BAD_REQUEST", "Send an upgrade when earlier requests are answered.");
      }
      throw new HttpProblem(
        "UPGRADE_REQUIRED",
        offered ? NO_CONNECTION_UPGRADE : "Connect here with a WebSocket client.",
        {
          // Node adds no `close` of its own to this header, even if the request asks for it.
          headers: { upgrade: "websocket", connection: "Upgrade, close" },
        },
      );
    },
  );
};
