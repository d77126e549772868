/** The client on Node 20 and newer: `connect`. */
import { randomBytes } from "node:crypto";
import { systemTimer } from "@blindrelay/protocol/elapsed-clock";
import { type ProxySetting, webSocketLinks } from "@blindrelay/protocol/net/node";
import { loadNodeSuite } from "@blindrelay/protocol/suites/node";
import { WebSocket } from "ws";
import { Client, type ConnectOptions } from "../client.ts";
import { hedgedRandom } from "../edge-ports.ts";
import type { Log } from "../ports.ts";

export * from "../index.ts";

export interface NodeConnectOptions extends ConnectOptions {
  /**
   * The HTTP proxy on the way to the relay, also to one on this machine; null: none. By default
   * HTTPS_PROXY, HTTP_PROXY, ALL_PROXY and NO_PROXY decide, and this machine is reached directly.
   */
  readonly proxy?: ProxySetting;
}

const silent: Log = () => undefined;

/**
 * Connects to a relay and authenticates. Rejects with a CallError at the first failure
 * (UNREACHABLE, REFUSED); once connected, the client reconnects by itself until `close`.
 *
 *     const client = await connect({ url: "https://relay.example", accountToken });
 *     await client.agent("pump-7", agentToken).call("valve.open", { percent: 40 });
 */
export const connect = async (options: NodeConnectOptions): Promise<Client> => {
  const log = options.log ?? silent;
  const suite = await loadNodeSuite();
  const random = hedgedRandom(randomBytes, suite);
  const link = webSocketLinks(WebSocket, options.proxy);
  return new Client(options, { link, timer: systemTimer(), random, suite, log }).start();
};
