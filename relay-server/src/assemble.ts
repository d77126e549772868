/**
 * Builds the parts of a relay over one store: hub, control plane, REST and metrics. Nothing listens
 * yet, and nothing here decides anything.
 */
import { monitorEventLoopDelay } from "node:perf_hooks";
import type { Logger } from "pino";
import pkg from "../package.json" with { type: "json" };
import type { Clocks } from "./base/clock.ts";
import { logFaults } from "./base/contain.ts";
import type { OpenBus } from "./bus/open.ts";
import { actOn } from "./control/act-on-notice.ts";
import { controlContext, type Links } from "./control/context.ts";
import type { openAlone } from "./control/data-dir.ts";
import { NoticeReader } from "./control/notice-reader.ts";
import { storeLookups } from "./control/token-check.ts";
import { storeWriteBehind } from "./control/write-behind.ts";
import type { Hub } from "./core/hub.ts";
import { Lockout } from "./core/limits/lockout.ts";
import { buildApp } from "./http/app.ts";
import type { AddressReader } from "./http/base/client-address.ts";
import type { Figures } from "./http/base/context.ts";
import { closeApp } from "./http/close.ts";
import { isOpen, type Life } from "./life.ts";
import { metricsServer, relayMetrics } from "./metrics.ts";
import type { Tls } from "./ops/tls.ts";
import type { ReleaseKeys } from "./releases/keys.ts";
import type { Config } from "./settings/config.ts";
import { sharedLook } from "./shared-look.ts";
import { type Notice, noticesIn } from "./store/notices.ts";
import { type ErrorLog, OutageLog } from "./store/outage-log.ts";
import { reserveRequests } from "./store/sessions.ts";
import { runHub } from "./ws/hub-driver.ts";
import { writeLinks } from "./ws/link.ts";
import { attachUpgrade } from "./ws/upgrade.ts";

interface RelayInputs {
  readonly config: Config;
  readonly log: Logger;
  /** `wallMs`: of the store's clock. */
  readonly clocks: Clocks;
  readonly addressOf: AddressReader;
  readonly keys: ReleaseKeys;
  readonly tls: Tls | null;
  readonly data: Awaited<ReturnType<typeof openAlone>>;
  readonly bus: OpenBus | null;
  /** What is to be closed if the relay does not start. */
  readonly opened: AsyncDisposableStack;
  /** Called if the relay cannot continue. */
  readonly broken: (error: unknown) => void;
}

export type Parts = Awaited<ReturnType<typeof assemble>>;

export const assemble = async (inputs: RelayInputs) => {
  const { config, log, clocks, addressOf, tls, data, bus, opened, broken } = inputs;
  const { store } = data;
  const { steadyMs } = clocks;
  const outages = new OutageLog(log, steadyMs);
  const stopLogging = logFaults(log);
  opened.defer(stopLogging);
  const writeBehind = storeWriteBehind(store, bus?.node ?? null);
  const lockout = new Lockout();
  const limits = linkLimits(config);
  const running = runHub({
    lookups: storeLookups(store),
    writeBehind,
    lockout,
    limits,
    clocks,
    log: outages,
    broken,
    ...(bus === null
      ? {}
      : { bus: bus.cluster, reserve: (hash: string) => reserveRequests(store.db, hash) }),
  });
  opened.defer(running.stop);
  const { hub } = running;
  const act = (notice: Notice) => {
    log.info({ kind: notice.kind, subject: notice.subject }, "acting on a notice");
    actOn(notice, hub, context, steadyMs());
  };
  const notices = await NoticeReader.open({
    source: noticesIn(store.db),
    act,
    onChanged: (lost) => log.fatal({ seq: lost.seq, at: lost.at }, STORE_WENT_BACK),
    nowMs: steadyMs,
    wallMs: clocks.wallMs,
  });
  const context = controlContext({
    ...data,
    lockout,
    links: linksOf(hub, notices, bus),
    nowMs: clocks.wallMs,
    steadyMs,
    quotas: config,
  });
  const figures = figuresOf(hub, bus, steadyMs());
  opened.defer(() => void figures.stop());
  const life: Life = { draining: false, rebalancing: false };
  const isReady = sharedLook(() => store.isReady(), steadyMs);
  bus?.cluster.attach(hub, {
    notices,
    lockout,
    usernameLockout: context.usernameLockout,
    isReady: () => !life.draining && !life.rebalancing,
  });
  const settle = () =>
    writeBehind
      .flush()
      .catch(complaint(outages, "cannot write request counts and last-seen times"));
  const app = buildApp(
    {
      ...context,
      addressOf,
      publicUrl: config.publicUrl ?? null,
      corsOrigins: config.corsOrigin,
      version: pkg.version,
      releaseKeys: inputs.keys,
      maxReleaseBytes: config.maxReleaseBytes,
      outages,
      figures: figures.read,
      writeLinks,
      settle,
      isReady: async () =>
        isOpen(life, () => bus?.cluster.hasReadyNode() ?? false) && (await isReady()),
    },
    log,
    tls?.serve,
  );
  opened.defer(() => closeApp(app));
  await app.ready();
  attachUpgrade(app.server, running, {
    addressOf,
    linked: (socket) => app.connections.release(socket),
    isAnswering: app.isAnswering,
    ...limits,
  });
  const engines = {
    store: { isReady, damage: store.damage, pool: store.pool, clock: data.clock },
    notices,
    bus: bus?.cluster ?? null,
    pending: () => app.connections.size,
    certificateEnd: () => (tls?.endMs() ?? Number.POSITIVE_INFINITY) / 1000,
  };
  const registry = relayMetrics(() => hub.stats(), context, running.timings, engines);
  const metrics = metricsServer(registry, log);
  const end = async () => {
    tls?.stop();
    figures.stop();
    running.stop();
    await closeApp(app);
    metrics.close();
    metrics.closeAllConnections();
    await bus?.cluster.holdings.handedOver();
    bus?.cluster.leaveAll();
    await bus?.close();
    await settle(); // otherwise the log says what was lost
    outages.flush();
    await store.close();
    stopLogging();
  };
  return { ...inputs, outages, running, hub, notices, app, metrics, life, settle, end };
};

export const complaint = (log: ErrorLog, what: string) => (error: unknown) =>
  log.error({ err: error }, what);

const linkLimits = (config: Config) => ({
  maxMessageBytes: config.maxMessageBytes,
  outboxBytes: config.outboxBytes,
  ratePerSecond: config.ratePerSecond,
  rateBurst: config.rateBurst,
  waitingPerAddress: config.waitingPerAddress,
  clientsPerUser: config.clientsPerUser,
});

const linksOf = (hub: Hub, notices: NoticeReader, bus: OpenBus | null): Links => ({
  // The store is up to a second behind what the clients here were told.
  isOnline: (agentId, node, userId) =>
    hub.isOnlineAnywhere(userId, agentId) ??
    (node !== null && (bus?.cluster.membership.isLive(node) ?? false)),
  act: (posted) => {
    for (const notice of posted) notices.take(notice);
    bus?.cluster.post(posted);
  },
});

/** Sessions and logins that it had acknowledged are lost, and only people can tell why. */
const STORE_WENT_BACK =
  "the store has lost changes that it had confirmed, as after a failover to a standby that had fallen behind: all notices were read anew";

/** The event loop's delay is measured from here to `stop`, afresh after each reading. */
const figuresOf = (hub: Hub, bus: OpenBus | null, startedAtMs: number) => {
  const delay = monitorEventLoopDelay();
  delay.enable();
  // The histogram is in nanoseconds; before its first sample the mean is NaN.
  const ms = (nanoseconds: number) => (Number.isFinite(nanoseconds) ? nanoseconds / 1e6 : 0);
  const read = (): Figures => {
    const eventLoopDelay = {
      meanMs: ms(delay.mean),
      p99Ms: ms(delay.percentile(99)),
      maxMs: ms(delay.max),
    };
    delay.reset();
    return {
      hub: hub.stats(),
      others: bus?.cluster.membership.figures() ?? [],
      startedAtMs,
      eventLoopDelay,
    };
  };
  return { read, stop: () => delay.disable() };
};
