/** Opens the bus that the configuration names; its client is loaded only where there is one. */
import { randomBytes } from "node:crypto";
import type { Logger } from "pino";
import type { Config } from "../config.ts";
import type { Cluster } from "./cluster.ts";
import { type BusTraffic, counted } from "./counted.ts";

export interface OpenBus {
  readonly cluster: Cluster;
  /** The name of this process among the nodes. */
  readonly node: string;
  traffic(): BusTraffic;
  close(): Promise<void>;
}

/** Null: a relay that is alone. Rejects with a Failure where the server cannot be reached. */
export const openBus = async (
  { bus, busPrefix, maxMessageBytes }: Config,
  nowMs: () => number,
  log: Logger,
): Promise<OpenBus | null> => {
  if (bus === "local") return null;
  const [{ Cluster }, { MAX_HEAD_BYTES }, { openNats }] = await Promise.all([
    import("./cluster.ts"),
    import("./head.ts"),
    import("./nats.ts"),
  ]);
  const node = randomBytes(9).toString("base64url");
  const minBytes = maxMessageBytes + MAX_HEAD_BYTES;
  const { transport, traffic } = counted(await openNats(bus, `blindrelay ${node}`, minBytes, log));
  const after = (ms: number, fn: () => void) => {
    const timer = setTimeout(fn, ms);
    return () => clearTimeout(timer);
  };
  const cluster = new Cluster({ transport, node, prefix: busPrefix, nowMs, log, after });
  return { cluster, node, traffic, close: () => transport.close() };
};
