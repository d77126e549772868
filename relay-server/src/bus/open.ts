/** Opens the configured bus; loads its client only if there is one. */
import { randomBytes } from "node:crypto";
import { MAX_MESSAGE_BYTES } from "@blindrelay/protocol";
import type { Logger } from "pino";
import type { Config } from "../config.ts";
import { contained } from "../contain.ts";
import type { Cluster } from "./cluster.ts";

export interface OpenBus {
  readonly cluster: Cluster;
  /** The name of this process among the nodes. */
  readonly node: string;
  close(): Promise<void>;
}

/** Null: a single relay. Rejects with a Failure if its settings are inconsistent. */
export const openBus = async (
  config: Config,
  nowMs: () => number,
  log: Logger,
): Promise<OpenBus | null> => {
  const { bus, busPrefix, busCa, busCert, busKey, busCreds, maxMessageBytes } = config;
  if (bus === "local") return null;
  const [{ Cluster }, { MAX_HEAD_BYTES }, { openNats }] = await Promise.all([
    import("./cluster.ts"),
    import("./head.ts"),
    import("./nats.ts"),
  ]);
  const node = randomBytes(9).toString("base64url");
  const server = { url: bus, ca: busCa, cert: busCert, key: busKey, creds: busCreds };
  // The nodes' own messages do not get shorter with the limit for clients.
  const minBytes = Math.max(maxMessageBytes, MAX_MESSAGE_BYTES) + MAX_HEAD_BYTES;
  const transport = await openNats({ ...server, name: `blindrelay ${node}`, minBytes }, log);
  const after = (ms: number, fn: () => void) => {
    const timer = setTimeout(contained("bus", "a timer of the bus failed", fn), ms);
    return () => clearTimeout(timer);
  };
  const parts = { transport, node, prefix: busPrefix, maxMessageBytes, nowMs, log, after };
  const cluster = new Cluster(parts);
  return { cluster, node, close: () => transport.close() };
};
