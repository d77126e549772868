/** The client on Node 20 and newer: `connect`. */
import { randomBytes } from "node:crypto";
import { systemTimer } from "@blindrelay/protocol/elapsed-clock";
import { linksOver, type ProxySetting } from "@blindrelay/protocol/net/node";
import { loadNodeSuite } from "@blindrelay/protocol/suites/node";
import { nodeX25519 as x25519 } from "@blindrelay/protocol/suites/node-x25519";
import { WebSocket } from "ws";
import { Client, type ConnectOptions, type ListMatching } from "../client.ts";
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

/** The REST client is loaded with the first selector, which most programs never use. */
const listing =
  ({ url, accountToken, sessionToken, proxy }: NodeConnectOptions): ListMatching =>
  async (where) => {
    const { Rest } = await import("../rest/node.ts");
    const token = accountToken ?? sessionToken ?? null;
    const rest = new Rest({ url, token, ...(proxy === undefined ? {} : { proxy }) });
    const found = await rest.list("AgentPage", "/agents", { where });
    return found.map(({ agent_id }) => agent_id);
  };

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
  const link = linksOver(WebSocket, options.proxy);
  const ports = { link, timer: systemTimer(), random, suite, x25519, log };
  return new Client(options, ports, listing(options)).start();
};
