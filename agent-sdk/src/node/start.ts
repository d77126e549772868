/**
 * Starts an agent on Node: lock the state folder, provision it if it was never used, raise the boot
 * count, and only then construct the core.
 */
import { createHash, randomBytes } from "node:crypto";
import { freemem } from "node:os";
import { type RestartReason, tokenProblem } from "@blindrelay/protocol";
import { deviceKeyProblem, isForward, type Suite, type Version } from "@blindrelay/protocol/crypto";
import { systemTimer } from "@blindrelay/protocol/elapsed-clock";
import type { ProxySetting } from "@blindrelay/protocol/net/node";
import { isVersionText } from "@blindrelay/protocol/releases";
import {
  type AgentSessionLimits,
  AgentSessions,
  DEFAULT_AGENT_LIMITS,
} from "@blindrelay/protocol/session";
import { loadNodeSuite } from "@blindrelay/protocol/suites/node";
import { nodeX25519 } from "@blindrelay/protocol/suites/node-x25519";
import type { Agent, Program } from "../core/agent.ts";
import { AgentCore } from "../core/agent-core.ts";
import { type BootCountResult, provisionBootCount, raiseBootCount } from "../core/bootcount.ts";
import { credentialsProblem } from "../core/credentials.ts";
import { reasonOf } from "../core/dispatch.ts";
import { forwardSessions, NO_SEED } from "../core/forward.ts";
import { giveStorage } from "../core/give-storage.ts";
import { limitsOf } from "../core/limits.ts";
import type { AgentStatus } from "../core/link.ts";
import {
  type DeviceLog,
  endLog,
  keepingLog,
  LARGE_LOG_BYTES,
  openLog,
  serveLog,
} from "../core/log.ts";
import {
  provisionSecrets,
  REPLACED,
  Rekeying,
  type StartSecrets,
  startSecrets,
} from "../core/rekey.ts";
import type { AgentIdentity } from "../core/start-options.ts";
import type { LinkPort, Log } from "../ports.ts";
import { SDK_VERSION } from "../version.ts";
import { type BootConfirmedListener, watchBoot } from "./booted.ts";
import { ConfigError, StateError } from "./errors.ts";
import { relayUrl, webSocketLinks } from "./link.ts";
import { lockState, type StateLock } from "./lock.ts";
import { logToStderr, programFrames } from "./log.ts";
import { machineNumber } from "./machine.ts";
import { movingLinks } from "./moving-links.ts";
import { claimPushKey } from "./push-key.ts";
import { type PushedStart, pushedStart, type TakesPushes } from "./pushed-start.ts";
import { checkRelease, type ReleaseSource, type Update } from "./releases.ts";
import { folderStorage, isUnused, makeStateFolder } from "./storage.ts";

/** The name of this runtime in releases. */
const RUNTIME = "node";

export interface StartOptions extends AgentIdentity {
  /** The relay: http(s) base or ws(s) address. */
  readonly url: string;
  /** Accepts an agentToken of another form, with 32 characters or more. */
  readonly foreignAgentToken?: boolean;
  /** This agent's own folder, with its boot count and a lock. Created if it is missing. */
  readonly stateDir: string;
  /** Registers handlers and timers. If it is async, the agent connects when it is done. */
  readonly program: Program | ((agent: Agent) => Promise<void>);
  /**
   * Accepts device programs over the relay from anyone who has the agentToken. A pushed program
   * replaces `program` from then on. Off by default.
   */
  readonly pushes?: TakesPushes;
  /**
   * Lets whoever has the agentToken replace it over the relay (`system.rekey`); true by default.
   */
  readonly rekey?: boolean;
  /**
   * A push key (`push_`): programs over the relay are taken only if they were proven with it. The
   * state folder keeps it, and stays guarded by it when a later start names none; another one is
   * refused.
   */
  readonly pushKey?: string;
  /** By default, warnings and errors go to standard error. */
  readonly log?: Log;
  /**
   * The HTTP proxy on the way to the relay, also to one on this machine; null: none. By default
   * HTTPS_PROXY, HTTP_PROXY, ALL_PROXY and NO_PROXY decide, and this machine is reached directly.
   */
  readonly proxy?: ProxySetting;
  /** A way to the relay other than a WebSocket, such as serialLinks, which ignores `url`. */
  readonly links?: LinkPort;
  /** Crypto other than Node's, such as one that records in tests. */
  readonly suite?: Suite;
}

export interface RunningAgent {
  readonly core: AgentCore;
  /** Resolves at the first login; rejects if the agent gives up or is stopped first. */
  online(): Promise<void>;
  /** Calls `fn` at every change of the link's state. */
  onState(fn: (status: AgentStatus) => void): void;
  /**
   * Calls `fn` once, at the first login of a `firmwareVersion` that is new in this state folder:
   * the moment to confirm a new image.
   */
  onBootConfirmed(fn: BootConfirmedListener): void;
  /**
   * Asks the relay for a release above `firmwareVersion` that a pinned key has signed; null if
   * there is none. Fetch it with `downloadRelease`. The state folder keeps the last list number.
   * Rejects with a ReleaseError or a ConfigError.
   */
  checkRelease(
    source: Pick<ReleaseSource, "channel" | "publicKeys" | "threshold" | "now">,
  ): Promise<Update | null>;
  /**
   * Closes the link and releases the state folder. May be repeated. `reason` and `text`, of what
   * failed, are what the next start answers to `system.log`; "stop" by default.
   */
  stop(reason?: RestartReason, text?: string): Promise<void>;
}

const NEW_STATE =
  "a new state folder: boot counts begin at 1, as is right for a new agent. Keep the folder; an agent that ran before with another one needs that one, or a new agent_token";

type Boot = Extract<BootCountResult, { ok: true }>;

const bootOf = (result: BootCountResult): Boot => {
  if (result.ok) return result;
  throw new StateError(result.problem, result.advice);
};

/** Runs `fn` under the folder's lock, and keeps the lock only if it succeeds. */
const underLock = async <T>(stateDir: string, fn: (lock: StateLock) => Promise<T>): Promise<T> => {
  try {
    makeStateFolder(stateDir);
  } catch (error) {
    throw new StateError("medium", `the state folder cannot be made: ${stateDir}`, error);
  }
  const lock = await lockState(stateDir);
  try {
    return await fn(lock);
  } catch (error) {
    await lock.release();
    throw error;
  }
};

const drawSeed = (version: Version): Uint8Array | null =>
  isForward(version) ? randomBytes(32) : null;

/**
 * Binds a state folder to another agent_token; its boot counts continue, and other files are kept.
 * `packetVersion`: of the agent that will use it; "1" unless given.
 * Throws a StateError if the folder belongs to the token already, or if it is locked or not
 * writable.
 */
export const provision = async (
  stateDir: string,
  options: { readonly agentToken: string; readonly packetVersion?: Version },
): Promise<void> => {
  const seed = drawSeed(options.packetVersion ?? "1");
  const suite = await loadNodeSuite();
  await underLock(stateDir, async (lock) => {
    // First: a cut between the two leaves a folder that can be provisioned again.
    if (!provisionSecrets(folderStorage(stateDir), suite, options.agentToken)) {
      const text = "this folder had that agent_token before it was replaced over the air";
      throw new StateError("usedToken", `${text}: make a new one`);
    }
    bootOf(provisionBootCount(folderStorage(stateDir), suite, options.agentToken, seed));
    await lock.release();
  });
};

/** The secrets of this start, on a locked folder. */
const claimSecrets = (
  { stateDir, agentToken }: StartOptions,
  suite: Suite,
  log: Log,
): StartSecrets => {
  let secrets: StartSecrets | null;
  try {
    secrets = startSecrets(folderStorage(stateDir), suite, agentToken, Date.now());
  } catch (error) {
    throw new StateError("medium", `the state folder cannot be written: ${stateDir}`, error);
  }
  if (secrets === null) {
    const text = "the state folder belongs to another agent_token";
    throw new StateError("otherToken", `${text}: use that one, or provision with a new one`);
  }
  if (secrets.isReplaced) log("warn", REPLACED);
  return secrets;
};

/**
 * The count of this start, on a locked folder. An unused folder is provisioned first, with a
 * warning: a lost folder looks like a new one, and only a person can tell which it is.
 */
const claimBootCount = (
  { stateDir, packetVersion = "1" }: StartOptions,
  { token, earlier }: StartSecrets,
  suite: Suite,
  log: Log,
): Boot => {
  const storage = folderStorage(stateDir);
  if (isUnused(stateDir)) {
    bootOf(provisionBootCount(storage, suite, token, drawSeed(packetVersion)));
    log("warn", NEW_STATE, { stateDir });
  }
  const result = raiseBootCount(storage, suite, token, earlier);
  if (!result.ok && result.problem === "missing") {
    throw new StateError(
      "foreign",
      `this folder holds other files and no boot count; give the agent an empty one, or provision this one with a new agent_token: ${stateDir}`,
    );
  }
  const boot = bootOf(result);
  if (isForward(packetVersion) && boot.seed === undefined) throw new StateError("noSeed", NO_SEED);
  return boot;
};

const running = (
  core: AgentCore,
  kept: DeviceLog,
  lock: StateLock,
  options: StartOptions,
  pushed: PushedStart | null,
): RunningAgent => {
  const { url, relayToken: token, firmwareVersion: version, stateDir, proxy } = options;
  const onBootConfirmed = watchBoot(core, folderStorage(stateDir), version);
  const online = new Promise<void>((resolve, reject) => {
    core.link.onState((status) => {
      if (status.state === "online") resolve();
      if (status.state === "refused") reject(new Error(status.advice ?? "the agent gave up"));
      if (status.state === "stopped") reject(new Error("the agent was stopped"));
    });
  });
  // A program that never awaits it must not end with an unhandled rejection.
  online.catch(() => {});
  return {
    core,
    online: () => online,
    onState: (fn) => core.link.onState(fn),
    onBootConfirmed,
    async checkRelease(source) {
      if (version === undefined) throw new ConfigError("checkRelease needs a firmwareVersion");
      const storage = folderStorage(stateDir);
      return checkRelease({ ...source, url, token, proxy, runtime: RUNTIME, version, storage });
    },
    async stop(reason = "stop", text = "") {
      pushed?.stop();
      if (core.link.state !== "stopped") endLog(kept, reason, text);
      core.stop();
      await lock.release();
    },
  };
};

/**
 * Starts a device program as an agent. Throws a ConfigError for invalid values and a StateError if
 * the folder does not let this agent start, both before anything is sent. An unreachable or
 * refusing relay is not an error: the agent retries, and reports it through onState.
 */
export const startAgent = async (options: StartOptions): Promise<RunningAgent> => {
  const problem = credentialsProblem(options);
  if (problem !== null) throw new ConfigError(problem);
  const { packetVersion = "1", deviceKey, pushKey } = options;
  const keyProblem = deviceKeyProblem(packetVersion, deviceKey);
  if (keyProblem !== null) throw new ConfigError(`deviceKey: ${keyProblem}`);
  const pushProblem = pushKey === undefined ? null : tokenProblem(pushKey, "push");
  if (pushProblem !== null) throw new ConfigError(`pushKey: ${pushProblem}`);
  const { firmwareVersion = "0.0.0" } = options;
  if (!isVersionText(firmwareVersion)) {
    // Otherwise the first check for a release would fail, long after the version was confirmed.
    throw new ConfigError("firmwareVersion: a version by SemVer, such as 1.4.0");
  }
  let url: string;
  try {
    url = relayUrl(options.url);
  } catch (error) {
    throw new ConfigError(`url: ${(error as Error).message}`);
  }
  let limits: AgentSessionLimits;
  try {
    limits = limitsOf(DEFAULT_AGENT_LIMITS, options.limits);
  } catch (error) {
    throw new ConfigError((error as Error).message);
  }
  const suite = options.suite ?? (await loadNodeSuite());
  const identity = {
    agentId: options.agentId,
    relayToken: options.relayToken,
    runtime: `${RUNTIME} ${process.versions.node}`,
  };
  const edge = {
    link: options.links ?? webSocketLinks(options.proxy),
    timer: systemTimer(),
    random: (length: number) => randomBytes(length),
    suite,
  };
  return underLock(options.stateDir, async (lock) => {
    const toUser = options.log ?? logToStderr;
    const storage = folderStorage(options.stateDir);
    const secrets = claimSecrets(options, suite, toUser);
    const boot = claimBootCount(options, secrets, suite, toUser);
    const key = claimPushKey(storage, pushKey);
    const kept = openLog({
      bytes: LARGE_LOG_BYTES,
      bootCount: boot.count,
      timer: edge.timer,
      storage,
      secrets: [
        options.agentToken,
        secrets.token,
        secrets.trial ?? "",
        options.relayToken,
        deviceKey ?? "",
        key ?? "",
      ],
    });
    const log = keepingLog(kept, toUser, programFrames);
    const ports = { ...edge, log };
    const { pushes } = options;
    const ending = (text: string): void => endLog(kept, "push", text);
    const pushed =
      pushes === undefined ? null : pushedStart(options.stateDir, pushes, key, suite, log, ending);
    const firmwareVersion = pushed?.version ?? options.firmwareVersion;
    const login = { ...identity, firmwareVersion };
    const ofSessions = {
      suite,
      agentId: options.agentId,
      version: packetVersion,
      deviceRandom: randomBytes(16),
      serialNumber: machineNumber(),
      limits,
    };
    const forward = (seed: Uint8Array | undefined) =>
      forwardSessions(packetVersion, { x25519: nodeX25519, seed: seed?.slice(), deviceKey });
    const core = new AgentCore({
      ...login,
      ...ofSessions,
      url,
      agentToken: secrets.token,
      foreignAgentToken: options.foreignAgentToken,
      forward: forward(boot.seed),
      name: options.name,
      sdkVersion: SDK_VERSION,
      bootCount: boot.count,
      freeMemory: freemem,
      // Another transport may use a line that carries only one link.
      ports:
        options.links === undefined ? { ...ports, link: movingLinks({ ...login, ports }) } : ports,
    });
    giveStorage(core.agent, storage);
    if (options.rekey !== false) {
      const rekeying = new Rekeying({
        core,
        agentId: options.agentId,
        suite,
        storage,
        pushKey: key,
        secrets,
        makeSessions: (agentToken, { count: bootCount, seed }) => {
          const all = { ...ofSessions, agentToken, bootCount };
          return forward(seed)?.(all) ?? new AgentSessions(all);
        },
        now: Date.now,
        replaced: () => log("warn", REPLACED),
        sha256: (text) => createHash("sha256").update(text).digest("hex"),
      });
      if (secrets.trial !== null) rekeying.begin(secrets.trial, boot, secrets.trialMs);
    }
    boot.seed?.fill(0);
    serveLog(kept, core);
    pushed?.takePushes(core);
    try {
      await (pushed?.program ?? options.program)(core.agent);
    } catch (error) {
      pushed?.stop();
      endLog(kept, "throw", reasonOf(error));
      core.stop();
      throw error;
    }
    const agent = running(core, kept, lock, { ...options, firmwareVersion }, pushed);
    core.start();
    return agent;
  });
};
