/** The client on Node 20 and newer: `connect`. */
import { randomBytes } from "node:crypto";
import { loadNodeSuite } from "@blindrelay/protocol/suites/node";
import { Client, type ConnectOptions } from "../client.ts";
import { hedgedRandom, systemTimer } from "../edge-ports.ts";
import type { Log } from "../ports.ts";
import { wsLinkPort } from "./link.ts";

export * from "../index.ts";

const silent: Log = () => undefined;

/**
 * Connects to a relay and authenticates. Rejects with a CallError at the first failure
 * (UNREACHABLE, REFUSED); once connected, the client reconnects by itself until `close`.
 *
 *     const client = await connect({ url: "https://relay.example", accountToken });
 *     await client.agent("pump-7", agentToken).call("valve.open", { percent: 40 });
 */
export const connect = async (options: ConnectOptions): Promise<Client> => {
  const log = options.log ?? silent;
  const suite = await loadNodeSuite();
  const random = hedgedRandom(randomBytes, suite);
  const ports = { link: wsLinkPort, timer: systemTimer(), random, suite, log };
  return new Client(options, ports).start();
};
