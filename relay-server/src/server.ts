/**
 * One relay, put together: store, hub, REST and WebSocket on one port, metrics on another, and the
 * timers that make them live. Nothing here decides anything.
 */
import { once } from "node:events";
import type { Server } from "node:http";
import type { AddressInfo } from "node:net";
import { monitorEventLoopDelay } from "node:perf_hooks";
import type { Logger } from "pino";
import pkg from "../package.json" with { type: "json" };
import { type Clocks, clockWatch, systemClocks } from "./clock.ts";
import { type Config, readConfig } from "./config.ts";
import { controlContext, type Links } from "./control/context.ts";
import { openAlone } from "./control/data-dir.ts";
import { storeLookups } from "./control/hub-lookups.ts";
import { storeWriteBehind } from "./control/write-behind.ts";
import type { Hub } from "./core/hub.ts";
import { Lockout } from "./core/lockout.ts";
import { Failure } from "./failure.ts";
import { type AddressReader, addressReader } from "./http/address.ts";
import { buildApp } from "./http/app.ts";
import { closeApp } from "./http/close.ts";
import type { Figures } from "./http/context.ts";
import { createLog } from "./log.ts";
import { metricsServer, relayMetrics } from "./metrics.ts";
import { exposedPaths } from "./ops/check.ts";
import { openTls } from "./ops/tls.ts";
import { type ReleaseKeys, releaseKeys } from "./releases/keys.ts";
import { listNotices } from "./store/notices.ts";
import type { Db } from "./store/open.ts";
import { applyRetention } from "./store/retention.ts";
import { readSetting } from "./store/settings.ts";
import type { NoticeRow } from "./store/tables.ts";
import { disabledUsers } from "./store/users.ts";
import { runHub } from "./ws/hub-driver.ts";
import { attachUpgrade } from "./ws/upgrade.ts";

/** How often what the hub left behind is written, and what commands did is noticed. */
const FLUSH_MS = 1000;
/** How often the store is looked through for what was kept long enough. */
const FORGET_MS = 3_600_000;
/** Long enough for 10,000 links at the hub's pace, short enough for a supervisor's patience. */
const DRAIN_TIMEOUT_MS = 15_000;

export interface RunningServer {
  /** `http://host:port` of REST and `/wss`; `https://` with a certificate. */
  readonly url: string;
  /** `http://host:port/metrics`. */
  readonly metricsUrl: string;
  readonly hub: Hub;
  /** Settles where the relay cannot go on, and has begun to stop. */
  readonly failed: Promise<Failure>;
  /** Reads the certificate's files again, where there are any. */
  reloadTls(): void;
  /**
   * Drains: links are told to come back and closed with 1012, then everything ends. Once is enough.
   */
  stop(): Promise<void>;
}

/** What a server is started with, beyond its configuration; a test brings its own. */
export interface ServerPorts {
  readonly log?: Logger;
  /** Instead of the machine's. */
  readonly clocks?: Clocks;
  /** Instead of the key file. */
  readonly masterKey?: string | undefined;
}

/**
 * Starts a relay on what `initStore` made. `settings` as in config.ts, `data` at least.
 * Rejects with a Failure that says what to do.
 */
export const startServer = async (
  settings: Partial<Config>,
  ports: ServerPorts = {},
): Promise<RunningServer> => {
  const config = readConfig(settings);
  const log = ports.log ?? createLog(config.logLevel);
  const clocks = ports.clocks ?? systemClocks();
  const { steadyMs, wallMs } = clocks;
  const addressOf = addresses(config, log);
  const keys = trustedKeys(config);
  const { tlsCert, tlsKey } = config;
  const tls =
    tlsCert === undefined || tlsKey === undefined
      ? null
      : openTls({ cert: tlsCert, key: tlsKey }, log);
  const data = await openAlone({ ...config, masterKey: ports.masterKey }).catch(
    (error: unknown) => {
      tls?.stop();
      throw error;
    },
  );
  const { store } = data;
  for (const path of exposedPaths(config.data, config.store === "sqlite", ports.masterKey)) {
    log.warn({ path }, `others may enter or read ${path}: chmod go= ${path}`);
  }

  const writeBehind = storeWriteBehind(store);
  const lockout = new Lockout();
  const { maxMessageBytes, outboxBytes, ratePerSecond, rateBurst } = config;
  const { waitingPerAddress, clientsPerUser } = config;
  const running = runHub({
    lookups: storeLookups(store),
    writeBehind,
    lockout,
    limits: {
      maxMessageBytes,
      outboxBytes,
      ratePerSecond,
      rateBurst,
      waitingPerAddress,
      clientsPerUser,
    },
    clocks,
    log,
  });
  const { hub } = running;
  const context = controlContext({
    ...data,
    lockout,
    links: links(hub, steadyMs),
    nowMs: wallMs,
    steadyMs,
    quotas: config,
  });
  const startedAtMs = steadyMs();
  const loopDelay = monitorEventLoopDelay();
  loopDelay.enable();
  let draining = false;
  const complain = (what: string) => (error: unknown) => log.error({ err: error }, what);
  const settle = () =>
    writeBehind.flush().catch(complain("cannot write request counts and last-seen times"));
  const isReady = async () => !draining && (await store.isReady());
  const app = buildApp(
    {
      ...context,
      addressOf,
      publicUrl: config.publicUrl ?? null,
      corsOrigins: config.corsOrigin,
      version: pkg.version,
      releaseKeys: keys,
      maxReleaseBytes: config.maxReleaseBytes,
      figures: () => figures(hub, startedAtMs, loopDelay),
      settle,
      isReady,
    },
    log,
    tls?.serve,
  );
  await app.ready();
  attachUpgrade(app.server, running, { addressOf, maxMessageBytes });
  const metrics = metricsServer(
    relayMetrics(() => hub.stats(), context, running.timings),
    log,
  );

  const end = async () => {
    tls?.stop();
    loopDelay.disable();
    running.stop();
    await closeApp(app);
    metrics.close();
    metrics.closeAllConnections();
    await settle(); // or the log says what was lost
    await store.close();
  };
  try {
    await listening("", app.listen({ host: config.host, port: config.port }));
    metrics.listen(config.metricsPort, config.metricsHost);
    await listening("metrics-", once(metrics, "listening"));
  } catch (error) {
    await end();
    throw error;
  }

  let fail: (failure: Failure) => void = () => undefined;
  const failed = new Promise<Failure>((resolve) => {
    fail = resolve;
  });
  const watch = clockWatch(clocks);
  const endThem = endDisabled(hub, store.db, steadyMs);
  const readNotices = await noticeReader(store.db, (notice) => {
    log.info({ kind: notice.kind, subject: notice.subject }, "a command asks");
    if (notice.kind === "end_clients") hub.endClients(notice.subject, "REVOKED", steadyMs());
    else {
      lockout.forgive(notice.subject);
      context.names.forgive(notice.subject);
    }
  });
  const timers = [
    setInterval(() => readNotices().catch(complain("cannot look for notices")), FLUSH_MS),
    setInterval(() => endThem().catch(complain("cannot look for disabled users")), FLUSH_MS),
    setInterval(() => watchKey().catch(complain("cannot look at the key's check")), FLUSH_MS),
    setInterval(settle, FLUSH_MS),
    setInterval(() => watch.look() && log.warn(CLOCK_JUMPED), FLUSH_MS),
    setInterval(
      () =>
        watch.isTrusted() &&
        applyRetention(store.patient, wallMs()).catch(complain("cannot tidy the store")),
      FORGET_MS,
    ),
  ];
  const stop = async () => {
    draining = true;
    log.info("draining");
    await running.drain(DRAIN_TIMEOUT_MS);
    for (const timer of timers) clearInterval(timer);
    await end();
    log.info("stopped");
  };
  let stopped: Promise<void> | null = null;
  const watchKey = async () => {
    if (draining || (await readSetting(store.db, "master_key_check")) === data.secrets.check()) {
      return;
    }
    log.fatal(KEY_ROTATED);
    fail(new Failure("refused", KEY_ROTATED));
    stopped ??= stop();
    await stopped;
  };
  return {
    url: urlOf(app.server, tls === null ? "http" : "https"),
    metricsUrl: `${urlOf(metrics, "http")}/metrics`,
    hub,
    failed,
    reloadTls: () => tls?.reload(),
    stop: () => {
      stopped ??= stop();
      return stopped;
    },
  };
};

const addresses = (config: Config, log: Logger): AddressReader => {
  try {
    return addressReader(config.trustedProxies, (address) =>
      log.warn(
        { address },
        "ignored X-Forwarded-For from an address that is not in trustedProxies",
      ),
    );
  } catch (error) {
    throw new Failure("usage", `--trusted-proxies: ${(error as Error).message}`);
  }
};

const trustedKeys = (config: Config): ReleaseKeys => {
  try {
    return releaseKeys(config.releaseKeys);
  } catch (error) {
    throw new Failure("usage", `--release-keys: ${(error as Error).message}`, error);
  }
};

/** The histogram is in nanoseconds, and begins anew with each reading. */
const figures = (
  hub: Hub,
  startedAtMs: number,
  delay: ReturnType<typeof monitorEventLoopDelay>,
): Figures => {
  // Before its first sample the histogram's mean is NaN.
  const ms = (nanoseconds: number) => (Number.isFinite(nanoseconds) ? nanoseconds / 1e6 : 0);
  const eventLoopDelay = {
    meanMs: ms(delay.mean),
    p99Ms: ms(delay.percentile(99)),
    maxMs: ms(delay.max),
  };
  delay.reset();
  return { hub: hub.stats(), startedAtMs, eventLoopDelay };
};

/** Why a relay cannot go on: what it would derive now is not what the next one derives. */
const KEY_ROTATED = "the master key was rotated while this relay ran: start it again";

const CLOCK_JUMPED = "the machine's clock jumped: nothing is forgotten by it for a day";

/** Ends the links of users that a command disabled while the relay runs. */
const endDisabled = (hub: Hub, db: Db, nowMs: () => number): (() => Promise<void>) => {
  let known = new Set<string>();
  return async () => {
    const disabled = new Set(await disabledUsers(db));
    for (const userId of disabled) if (!known.has(userId)) hub.endUser(userId, "REVOKED", nowMs());
    known = disabled;
  };
};

/** Hands each notice that was posted since the start to `act`, once. */
const noticeReader = async (
  db: Db,
  act: (notice: NoticeRow) => void,
): Promise<() => Promise<void>> => {
  let known = new Set((await listNotices(db)).map(({ id }) => id));
  return async () => {
    const notices = await listNotices(db);
    for (const notice of notices) if (!known.has(notice.id)) act(notice);
    known = new Set(notices.map(({ id }) => id));
  };
};

/** The hub's commands as the control plane knows them. */
const links = (hub: Hub, nowMs: () => number): Links => ({
  isOnline: (agentId) => hub.isOnline(agentId),
  endAgent: (agentId) => hub.endAgent(agentId, "REVOKED", nowMs()),
  forgetAgent: (agentId) => hub.forgetAgent(agentId, "REVOKED", nowMs()),
  endClients: (userId) => hub.endClients(userId, "REVOKED", nowMs()),
  endUser: (userId) => hub.endUser(userId, "REVOKED", nowMs()),
  endSession: (sessionHash) => hub.endSession(sessionHash, "REVOKED", nowMs()),
});

/**
 * What node says where it is the address that cannot be listened on, and no other port would help.
 */
const WRONG_HOST = ["ENOTFOUND", "EAI_AGAIN", "EADDRNOTAVAIL"];

/** `which`: how the flags of the listener begin. */
const listening = async (which: "" | "metrics-", started: Promise<unknown>): Promise<void> => {
  try {
    await started;
  } catch (error) {
    const { message: cause, code = "" } = error as NodeJS.ErrnoException;
    const fix = WRONG_HOST.includes(code)
      ? `give an address of this machine as --${which}host`
      : `choose another --${which}port, or 0`;
    const message = `cannot listen: ${cause}; ${fix}`;
    throw new Failure("unreachable", message, error);
  }
};

const urlOf = (server: Server, scheme: "http" | "https"): string => {
  const { address, family, port } = server.address() as AddressInfo;
  return `${scheme}://${family === "IPv6" ? `[${address}]` : address}:${port}`;
};
