/**
 * `/metrics` on its own port, so that a scraper needs no access to the public port. The
 * hub's counters are read on request and never pushed.
 */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { Logger } from "pino";
import {
  Counter,
  collectDefaultMetrics,
  Gauge,
  Registry as Metrics,
  type Registry,
} from "prom-client";
import { contained, faultCounts } from "./base/contain.ts";
import { registerDurations, type Timings } from "./base/duration-histogram.ts";
import type { Cluster } from "./bus/cluster.ts";
import type { ControlContext } from "./control/context.ts";
import type { NoticeReader } from "./control/notice-reader.ts";
import type { HubStats } from "./core/hub.ts";
import { openFiles } from "./descriptors.ts";
import { limitPipelining } from "./http/limits/pipelining.ts";
import { limitIdleness } from "./http/limits/slow-bodies.ts";
import type { StoreClock } from "./store/clock.ts";
import type { Store } from "./store/open.ts";

const PATH = "/metrics";

/** prom-client's own metrics that would list all sockets at each scrape. */
const LISTS = ["handles", "requests", "resources"].flatMap((what) => [
  `nodejs_active_${what}`,
  `nodejs_active_${what}_total`,
]);

/**
 * prom-client lists the folder of open files, which takes 10 ms for 10,000. Linux 6.2 and newer
 * reports their number as the folder's size; otherwise prom-client's method remains.
 */
const countOpenFiles = (registry: Registry): void => {
  if (openFiles() === 0) return;
  registry.removeSingleMetric("process_open_fds");
  new Gauge({
    name: "process_open_fds",
    help: "Number of open file descriptors.",
    registers: [registry],
    collect() {
      this.set(openFiles());
    },
  });
};

/** The same figures for all callers in one turn, as in a scrape. */
const oncePerTurn = (read: () => HubStats): (() => HubStats) => {
  let figures: HubStats | null = null;
  return () => {
    if (figures === null) {
      figures = read();
      const forget = contained("timer", "figures were not forgotten", () => {
        figures = null;
      });
      queueMicrotask(forget);
    }
    return figures;
  };
};

/** What a relay shares with others; `nodes`: how many were heard from recently. */
interface Engines {
  readonly store: Pick<Store, "damage" | "isReady" | "pool"> & {
    readonly clock: Pick<StoreClock, "aheadMs">;
  };
  readonly notices: Pick<NoticeReader, "changes">;
  /** Null: a single relay. */
  readonly bus: Cluster | null;
  /** Connections without a link. */
  readonly pending: () => number;
  /** When the certificate ends, in seconds of Unix time; infinite: there is none. */
  readonly certificateEnd: () => number;
}

/** The registry over a hub and the failure counters that it shares with REST. */
export const relayMetrics = (
  readStats: () => HubStats,
  { lockout, usernameLockout }: Pick<ControlContext, "lockout" | "usernameLockout">,
  timings: Timings,
  engines: Engines,
): Registry => {
  const stats = oncePerTurn(readStats);
  const registry = new Metrics();
  collectDefaultMetrics({ register: registry }); // process, heap and event-loop delay
  for (const name of LISTS) registry.removeSingleMetric(name);
  countOpenFiles(registry);
  const gauge = (name: string, help: string, read: () => number | Promise<number>) =>
    new Gauge({
      name: `blindrelay_${name}`,
      help,
      registers: [registry],
      async collect() {
        this.set(await read());
      },
    });
  const counter = (name: string, help: string, read: () => number) =>
    new Counter({
      name: `blindrelay_${name}_total`,
      help,
      registers: [registry],
      collect() {
        this.reset();
        this.inc(read());
      },
    });
  const labelled = (
    type: typeof Gauge<string> | typeof Counter<string>,
    name: string,
    help: string,
    label: string,
    read: () => Iterable<readonly [string, number]>,
  ) =>
    new type({
      name: `blindrelay_${name}`,
      help,
      labelNames: [label],
      registers: [registry],
      collect() {
        this.reset();
        for (const [value, count] of read()) this.inc({ [label]: value }, count);
      },
    });

  labelled(Gauge, "connections", "Open connections by client type.", "type", () =>
    Object.entries(stats().connections),
  );
  gauge("agents_online", "Agents with an authenticated link.", () => stats().agentsOnline);
  gauge("queue_bytes", "Bytes waiting for slow receivers.", () => stats().queueBytes);
  gauge("bindings", "Live bindings of sids to connections.", () => stats().bindings);
  labelled(Counter, "forwarded_total", "Messages forwarded, by receiver.", "to", () => [
    ["agent", stats().counters.forwardedToAgents],
    ["client", stats().counters.forwardedToClients],
  ]);
  counter("forwarded_bytes", "Bytes forwarded.", () => stats().counters.forwardedBytes);
  labelled(
    Counter,
    "dropped_total",
    "Messages not forwarded, by reason.",
    "reason",
    () => stats().counters.dropped,
  );
  counter("auth_successes", "Successful auths on /wss.", () => stats().counters.authSuccesses);
  counter("auth_failures", "Failed auths on /wss.", () => stats().counters.authFailures);
  counter(
    "counted_failures",
    "Failures that counted towards a lockout, REST and /wss together.",
    () => lockout.failures,
  );
  counter("lockouts", "Addresses locked out.", () => lockout.lockouts);
  counter(
    "name_lockouts",
    "User names locked out, except from addresses that they have logged in from.",
    () => usernameLockout.lockouts,
  );
  labelled(Counter, "closed_total", "Links that the relay closed for a limit.", "reason", () => {
    const { closedForFraming, closedForMissedPings, closedForRate, closedForSlowness } =
      stats().counters;
    return [
      ["framing", closedForFraming],
      ["missed_pings", closedForMissedPings],
      ["rate", closedForRate],
      ["slow", closedForSlowness],
    ];
  });
  counter(
    "takeovers",
    "Agents that replaced their own older link.",
    () => stats().counters.takeovers,
  );
  registerDurations(registry, "blindrelay_handshake_seconds", "From a peer's auth to its answer.", [
    { labels: { outcome: "accepted" }, durations: timings.accepted },
    { labels: { outcome: "refused" }, durations: timings.refused },
  ]);
  registerDurations(
    registry,
    "blindrelay_routing_seconds",
    "From bytes that were read until their messages are queued or refused, of one read in 16.",
    [{ labels: {}, durations: timings.routed }],
  );
  labelled(Counter, "faults_total", "Errors contained where they occurred.", "in", faultCounts);
  const { store, notices, bus, pending, certificateEnd } = engines;
  gauge("pending_connections", "Connections without a link: handshakes and requests.", pending);
  gauge(
    "certificate_not_after_seconds",
    "When the certificate ends, in Unix time; infinite without one.",
    certificateEnd,
  );
  gauge("store_ready", "Whether the store can be read and written.", async () =>
    Number(await store.isReady()),
  );
  gauge("store_damaged", "Whether the store was found to be damaged since the start.", () =>
    Number(store.damage() !== null),
  );
  counter(
    "store_went_back",
    "Times that the store had lost changes which it had confirmed.",
    () => notices.changes,
  );
  if (store.pool() !== null) {
    gauge(
      "clock_ahead_seconds",
      "How far this machine's clock is ahead of PostgreSQL's.",
      () => store.clock.aheadMs() / 1000,
    );
    labelled(Gauge, "store_connections", "Connections to PostgreSQL.", "state", () => {
      const { used = 0, idle = 0 } = store.pool() ?? {};
      return Object.entries({ used, idle });
    });
    gauge(
      "store_waiting",
      "Queries that wait for a connection to PostgreSQL.",
      () => store.pool()?.waiting ?? 0,
    );
  }
  if (bus !== null) {
    gauge("bus_up", "Whether the bus is connected.", () => Number(bus.traffic().isUp));
    gauge("bus_nodes", "Other nodes, heard of within 5 s.", () => bus.membership.figures().length);
    gauge(
      "bus_backlog_bytes",
      "Bytes that the bus has not confirmed.",
      () => bus.traffic().backlogBytes,
    );
    gauge("bus_guests", "Clients of other nodes that call agents here.", () => stats().guests);
    gauge(
      "bus_claims",
      "Logins of agents that wait for another node's answer.",
      () => bus.traffic().claims,
    );
    counter(
      "bus_malformed",
      "Malformed messages on the bus, which were dropped.",
      () => bus.traffic().malformed,
    );
    labelled(Counter, "bus_messages_total", "Messages on the bus.", "direction", () => {
      const { sent, received } = bus.traffic();
      return Object.entries({ sent, received });
    });
  }
  return registry;
};

/**
 * A server for the registry, not listening yet. A metric that cannot be collected is a 500, and
 * logged.
 */
export const metricsServer = (registry: Registry, log: Pick<Logger, "error">): Server => {
  const answer = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    if (request.url?.split("?")[0] !== PATH) {
      response.writeHead(404, { "content-type": "text/plain" }).end("try /metrics\n");
      return;
    }
    try {
      const text = await registry.metrics();
      response.writeHead(200, { "content-type": registry.contentType }).end(text);
    } catch (error) {
      log.error({ err: error }, "the metrics could not be collected");
      response.writeHead(500, { "content-type": "text/plain" }).end("the relay's log says why\n");
    }
  };
  const end = ({ socket }: IncomingMessage): void => void socket.destroy();
  const server = createServer(contained("request", "a scrape failed", answer, end));
  limitPipelining(server);
  limitIdleness(server);
  return server;
};
