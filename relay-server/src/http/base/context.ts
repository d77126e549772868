/** The server's type, and the context shared by all routes. */
import type { IncomingMessage, Server, ServerResponse } from "node:http";
import type { TypeBoxTypeProvider } from "@fastify/type-provider-typebox";
import type { FastifyBaseLogger, FastifyInstance } from "fastify";
import type { NodeFigures } from "../../bus/membership.ts";
import type { ControlContext } from "../../control/context.ts";
import type { HubStats } from "../../core/hub.ts";
import type { ReleaseKeys } from "../../releases/keys.ts";
import type { ErrorLog } from "../../store/outage-log.ts";
import type { AddressReader } from "./client-address.ts";

export type App = FastifyInstance<
  Server,
  IncomingMessage,
  ServerResponse,
  FastifyBaseLogger,
  TypeBoxTypeProvider
>;

/** What the routes need beyond the control plane. */
export interface HttpContext extends ControlContext {
  readonly addressOf: AddressReader;
  /** `http://host:port` as users reach it, or null: as in the request. */
  readonly publicUrl: string | null;
  /** Origins of pages that browsers allow to use this API. */
  readonly corsOrigins: readonly string[];
  readonly version: string;
  /** The keys that sign accepted releases. */
  readonly releaseKeys: ReleaseKeys;
  /** The limit for one artifact. */
  readonly maxReleaseBytes: number;
  readonly figures: () => Figures;
  /** Logs errors of the store. */
  readonly outages: ErrorLog;
  /** Writes the messages that wait for the end of this turn to their sockets. */
  readonly writeLinks: () => void;
  /** Resolves when the hub's pending writes are in the store, as far as that is possible. */
  readonly settle: () => Promise<void>;
  /** Whether the relay accepts new work; false while it drains. */
  readonly isReady: () => Promise<boolean>;
}

/** What the process around the control plane knows. */
export interface Figures {
  readonly hub: HubStats;
  /** Figures of the other nodes of a cluster. */
  readonly others: readonly NodeFigures[];
  readonly startedAtMs: number;
  readonly eventLoopDelay: {
    readonly meanMs: number;
    readonly p99Ms: number;
    readonly maxMs: number;
  };
}
