/** What every route works with: the server's type, and its context. */
import type { IncomingMessage, Server, ServerResponse } from "node:http";
import type { TypeBoxTypeProvider } from "@fastify/type-provider-typebox";
import type { FastifyBaseLogger, FastifyInstance } from "fastify";
import type { NodeFigures } from "../bus/cluster.ts";
import type { ControlContext } from "../control/context.ts";
import type { HubStats } from "../core/hub.ts";
import type { ErrorLog } from "../outage-log.ts";
import type { ReleaseKeys } from "../releases/keys.ts";
import type { AddressReader } from "./client-address.ts";

export type App = FastifyInstance<
  Server,
  IncomingMessage,
  ServerResponse,
  FastifyBaseLogger,
  TypeBoxTypeProvider
>;

/** What the routes work with, beyond the control plane itself. */
export interface HttpContext extends ControlContext {
  readonly addressOf: AddressReader;
  /** `http://host:port` as people reach it, or null: as the request did. */
  readonly publicUrl: string | null;
  /** Origins whose pages browsers let use this API. */
  readonly corsOrigins: readonly string[];
  readonly version: string;
  /** Whose releases are taken. */
  readonly releaseKeys: ReleaseKeys;
  /** Of one artifact. */
  readonly maxReleaseBytes: number;
  readonly figures: () => Figures;
  /** For errors of the store. */
  readonly outages: ErrorLog;
  /** Hands the operating system the messages that wait for the end of this turn. */
  readonly writeLinks: () => void;
  /** Resolves when the store has what the hub left behind, as far as it can be written. */
  readonly settle: () => Promise<void>;
  /** Whether the relay takes new work; false while it drains. */
  readonly isReady: () => Promise<boolean>;
}

/** What the process around the control plane knows. */
export interface Figures {
  readonly hub: HubStats;
  /** Of the other nodes of a cluster. */
  readonly others: readonly NodeFigures[];
  readonly startedAtMs: number;
  readonly eventLoopDelay: {
    readonly meanMs: number;
    readonly p99Ms: number;
    readonly maxMs: number;
  };
}
