/**
 * Starts and stops one relay: opens its store and bus, listens with the parts that assemble.ts
 * builds, runs the timers, and drains. Nothing here decides anything.
 */
import { once } from "node:events";
import type { Server } from "node:http";
import type { AddressInfo } from "node:net";
import { dirname } from "node:path";
import { Failure, messageOf } from "@blindrelay/protocol/command-line";
import type { Logger } from "pino";
import { assemble, complaint, type Parts } from "./assemble.ts";
import { type Clocks, clockWatch, systemClocks } from "./base/clock.ts";
import { contained } from "./base/contain.ts";
import { networkProblem } from "./base/disk-problem.ts";
import { openBus } from "./bus/open.ts";
import { openAlone, storePath } from "./control/data-dir.ts";
import type { Hub } from "./core/hub.ts";
import { descriptorWatch, maxOpenFiles } from "./descriptors.ts";
import { type AddressReader, addressReader } from "./http/base/client-address.ts";
import { createLog } from "./log.ts";
import { openPaths } from "./ops/check.ts";
import { listenForCommands } from "./ops/node-socket.ts";
import { openTls, type Tls } from "./ops/tls.ts";
import { rebalancer } from "./rebalance.ts";
import { type ReleaseKeys, releaseKeys } from "./releases/keys.ts";
import { type Config, readConfig } from "./settings/config.ts";
import { KEY_ROTATED } from "./store/key-rotation.ts";
import { applyRetention, RETENTION_EVERY_MS } from "./store/retention.ts";
import { readSetting } from "./store/settings.ts";

/** How often the hub's pending writes are written, and changes by commands are noticed. */
const FLUSH_MS = 1000;
/** How often the database is asked for the time: its clock, or this machine, may have stopped. */
const COMPARE_MS = 60_000;
/** How often a certificate that ends soon is logged. */
const CERTIFICATE_MS = 86_400_000;
/** Long enough for 10,000 links at the hub's pace, and shorter than a supervisor's timeout. */
const DRAIN_TIMEOUT_MS = 15_000;
/** The same for a cluster node, which keeps each link until its peer has moved. */
const MOVE_TIMEOUT_MS = 27_000;

export interface RunningServer {
  /** `http://host:port` of REST and `/wss`; `https://` with a certificate. */
  readonly url: string;
  /** `http://host:port/metrics`. */
  readonly metricsUrl: string;
  readonly hub: Hub;
  /** Settles if the relay cannot continue and has begun to stop. */
  readonly failed: Promise<Failure>;
  /** Reloads the certificate's files, if there are any. */
  reloadTls(): void;
  /**
   * Drains: links get `RESTARTING` and are closed with 1012, then everything ends. Idempotent.
   */
  stop(): Promise<void>;
}

/** What a server needs in addition to its configuration; tests pass their own. */
export interface ServerPorts {
  readonly log?: Logger;
  /** Replaces the machine's clocks. */
  readonly clocks?: Clocks;
  /** Replaces the key file. */
  readonly masterKey?: string | undefined;
}

/**
 * Starts a relay on the result of `initStore`. `settings`: see config.ts; at least `data`. Rejects
 * with a Failure that says what to do.
 */
export const startServer = async (
  settings: Partial<Config>,
  ports: ServerPorts = {},
): Promise<RunningServer> => {
  const config = readConfig(settings);
  const log = ports.log ?? createLog(config.logLevel);
  const machine = ports.clocks ?? systemClocks();
  const addressOf = addresses(config, log);
  const keys = trustedKeys(config);
  const { masterKey } = ports;
  const { promise: broken, resolve: giveUp } = Promise.withResolvers<unknown>();
  const opened = new AsyncDisposableStack();
  let close = () => opened.disposeAsync();
  try {
    const tls = opened.adopt(certificate(config, log, machine.wallMs), (each) => each?.stop());
    const data = await openAlone({ ...config, masterKey, clocks: machine });
    opened.defer(data.store.close);
    const isEmbedded = config.store === "sqlite";
    const network = isEmbedded ? networkProblem(dirname(storePath(config.data))) : null;
    if (network !== null) log.warn(`${network.what}: ${network.fix}`);
    const open = openPaths(config.data, isEmbedded, masterKey);
    for (const path of open.others) {
      log.warn({ path }, `others may enter or read ${path}: chmod go= ${path}`);
    }
    for (const path of open.group) {
      log.warn({ path }, `a group may enter or read ${path}; if not meant: chmod g= ${path}`);
    }
    const bus = await openBus(config, machine.steadyMs, log);
    opened.defer(async () => bus?.close());
    const clocks = { steadyMs: machine.steadyMs, wallMs: data.clock.nowMs };
    const inputs = { config, log, clocks, addressOf, keys, tls, data, bus, opened };
    const parts = await assemble({ ...inputs, broken: giveUp });
    close = parts.end;
    // Fastify knows nothing of the TLS in front of it.
    const listenTextResolver = (address: string) =>
      `Server listening at ${tls === null ? address : address.replace("http:", "https:")}`;
    const { host, port } = config;
    await listening("", parts.app.listen({ host, port, listenTextResolver }));
    parts.metrics.listen(config.metricsPort, config.metricsHost);
    await listening("metrics-", once(parts.metrics, "listening"));
    return await run(parts, broken);
  } catch (error) {
    await close();
    throw error;
  }
};

/** Starts the timers of a relay that is listening. */
const run = async (parts: Parts, broken: Promise<unknown>): Promise<RunningServer> => {
  const { log, life, tls, data, hub } = parts;
  const { promise: failed, resolve } = Promise.withResolvers<Failure>();
  let hasFailed = false;
  const fail = (failure: Failure) => {
    hasFailed = true;
    resolve(failure);
  };
  broken.then((error) => {
    log.fatal({ err: error }, HUB_BROKEN);
    fail(new Failure("fault", `${HUB_BROKEN}: ${messageOf(error)}`, error));
  });
  const watchKey = async () => {
    if (life.draining) return;
    if ((await readSetting(data.store.db, "master_key_check")) === data.secrets.check()) return;
    log.fatal(KEY_ROTATED);
    fail(new Failure("refused", KEY_ROTATED));
    await stop();
  };
  const timers = startTimers(parts, watchKey);
  const { bus } = parts;
  const commands = bus && (await listenForCommands(parts.config.data, rebalancer(parts, bus), log));
  const drainAndEnd = async () => {
    commands?.close();
    const waits = bus?.cluster.expectsNode() && !bus.cluster.hasReadyNode() && !hasFailed;
    if (waits) log.info("no other node is ready: serving on for a while before draining");
    const close = () => {
      life.draining = true;
      log.info("draining");
    };
    const door = { close, delayMs: parts.config.drainDelay * 1000, atOnce: hasFailed };
    await parts.running.drain(bus === null ? DRAIN_TIMEOUT_MS : MOVE_TIMEOUT_MS, door);
    for (const timer of timers) clearInterval(timer);
    await parts.end();
    log.info("stopped");
  };
  let stopped: Promise<void> | null = null;
  const stop = () => {
    stopped ??= drainAndEnd();
    return stopped;
  };
  return {
    url: urlOf(parts.app.server, tls === null ? "http" : "https"),
    metricsUrl: `${urlOf(parts.metrics, "http")}/metrics`,
    hub,
    failed,
    reloadTls: () => tls?.reload(),
    stop,
  };
};

/** Periodic work while the relay runs. */
const startTimers = (parts: Parts, watchKey: () => Promise<void>): NodeJS.Timeout[] => {
  const { log, outages, clocks, data, bus, notices, settle, tls } = parts;
  const { patient } = data.store;
  const watch = clockWatch(clocks);
  const max = maxOpenFiles();
  const lookAtDescriptors = descriptorWatch(max, clocks.steadyMs);
  const sayDescriptors = () => {
    const finding = lookAtDescriptors();
    if (finding === "scarce") log.error({ max }, DESCRIPTORS_SCARCE);
    if (finding === "enough") log.warn({ max }, "there are enough file descriptors again");
  };
  const every = (ms: number, what: string, work: () => unknown) =>
    setInterval(contained("timer", what, work), ms);
  const asking = (ms: number, what: string, work: () => Promise<unknown>) =>
    every(ms, what, () => work().catch(complaint(outages, what)));
  return [
    asking(COMPARE_MS, "cannot compare the clocks", comparison(parts)),
    asking(FLUSH_MS, "cannot read the notices", () => notices.look()),
    ...(bus === null ? [] : [every(FLUSH_MS, "the bus's clock failed", () => bus.cluster.tick())]),
    asking(FLUSH_MS, "cannot check the master key", watchKey),
    every(FLUSH_MS, "cannot settle", settle),
    every(FLUSH_MS, "cannot look after an outage", () => outages.look(data.store)),
    every(FLUSH_MS, "cannot look at the clock", () => watch.look() && log.warn(CLOCK_JUMPED)),
    every(FLUSH_MS, "cannot count the open files", sayDescriptors),
    every(CERTIFICATE_MS, "cannot look at the certificate", () => tls?.look()),
    asking(RETENTION_EVERY_MS, "cannot delete expired data", async () => {
      if (watch.isTrusted()) await applyRetention(patient, clocks.wallMs());
    }),
  ];
};

/** Asks the database for the time, and logs when this machine's clock is found to be wrong. */
const comparison = ({ data: { clock }, log }: Parts) => {
  let wasApart = false;
  const say = () => {
    const isApart = clock.isApart();
    if (isApart && !wasApart) log.warn({ seconds_ahead: clock.aheadMs() / 1000 }, CLOCK_APART);
    if (!isApart && wasApart) log.warn("this machine's clock is the database's again");
    wasApart = isApart;
  };
  say();
  return () => clock.look().then(say);
};

const certificate = (config: Config, log: Logger, nowMs: () => number): Tls | null => {
  const { tlsCert, tlsKey } = config;
  if (tlsCert === undefined || tlsKey === undefined) return null;
  return openTls({ cert: tlsCert, key: tlsKey }, log, nowMs);
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

/** Contained faults end a connection or a request; nothing contains this one. */
const HUB_BROKEN = "a bug in blindrelay: the hub has failed for 5 seconds; this relay ends";

const CLOCK_APART =
  "this machine's clock is not the database's, which is used instead: set the clocks by NTP";

const CLOCK_JUMPED = "the clock jumped: no expired data is deleted for a day";

const DESCRIPTORS_SCARCE =
  "hardly any file descriptors are left: new connections are closed without an answer. Raise the limit (LimitNOFILE, ulimit -n)";

/** node's error codes for an address that cannot be listened on: another port would not help. */
const WRONG_HOST = ["ENOTFOUND", "EAI_AGAIN", "EADDRNOTAVAIL"];

/** `which`: the prefix of the listener's flags. */
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
