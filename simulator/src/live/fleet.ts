/**
 * Many agents in one process: agent-sdk's core as on every board, over a lightweight link, each
 * with its own storage that is provisioned and counted up like a real device's. Connects at a
 * bounded rate, so that the start of a fleet is not a flood.
 */
import { randomBytes } from "node:crypto";
import {
  type Agent,
  AgentCore,
  type AgentPorts,
  type AgentStatus,
  type BootCountResult,
  giveStorage,
  keepingLog,
  openLog,
  type Program,
  provisionBootCount,
  raiseBootCount,
  SMALL_AGENT_LIMITS,
  SMALL_LOG_BYTES,
  serveLog,
} from "@blindrelay/agent-sdk";
import { MemoryStorage } from "@blindrelay/agent-sdk/memory";
import { SDK_VERSION } from "@blindrelay/agent-sdk/node";
import type { LinkPort } from "@blindrelay/agent-sdk/ports";
import type { Suite, Version } from "@blindrelay/protocol/crypto";
import { nodeX25519 } from "@blindrelay/protocol/suites/node-x25519";
import { forwardSessions, seedOf } from "../base/forward-sessions.ts";
import type { Changed } from "./outages.ts";

/** One device and its two secrets. */
export interface Identity {
  id: string;
  name: string;
  relayToken: string;
  agentToken: string;
}

export interface FleetMember extends Identity {
  program: Program | ((agent: Agent) => Promise<void>);
  /** The packet version; defaults to "1". */
  version?: Version;
  /** When it is switched on, after the fleet's start; defaults to 0. */
  startMs?: number;
  /** Those of a board, instead of Node's. */
  limits?: "board";
  /** A separate network, instead of the fleet's. */
  link?: LinkPort;
  /** Whether it may be switched off and on. */
  restarts?: boolean;
}

export interface LiveFleetOptions {
  /** The relay's `/wss` address. */
  url: string;
  /** New connections a second, at most. */
  connectionsPerSecond: number;
  /** Agents that are connecting and not yet logged in, at most. */
  connectingAtOnce: number;
  ports: AgentPorts;
  /** Counts handler runs by agent, across all its starts; null: they are not counted. */
  executions?: Map<string, number> | null;
}

const TICK_MS = 10;

/** Mixed in but never relied on; a separate one for each device would take 120 bytes of memory. */
const DEVICE_RANDOM = randomBytes(16);

/** Why a member is not online. */
export interface Missing {
  id: string;
  /** The relay's code, or the link's state. */
  code: string;
  advice: string;
}

export class Fleet {
  private readonly options: LiveFleetOptions;
  private readonly cores = new Map<string, AgentCore>();
  private readonly restarting = new Map<string, Restarting>();
  private readonly waiting: WaitingAgent[] = [];
  private online = 0;
  private reached = 0;
  private logins = 0;
  private connecting = 0;
  private tick: unknown = null;
  private startedAt = 0;
  private started = 0;

  /**
   * Creates every agent without connecting. Throws an Error for a member that cannot be
   * provisioned.
   */
  constructor(options: LiveFleetOptions, members: Iterable<FleetMember>) {
    this.options = options;
    for (const member of members) {
      const storage = new MemoryStorage();
      const { suite } = options.ports;
      const core = makeCore(options, member, storage, firstBoot(storage, suite, member));
      const life = { hasReached: false };
      this.watch(core, life);
      this.cores.set(member.id, core);
      if (member.restarts) this.restarting.set(member.id, { member, storage, life });
      this.waiting.push({ core, startMs: member.startMs ?? 0 });
    }
    this.waiting.reverse().sort((a, b) => b.startMs - a.startMs);
  }

  /** Agents that are logged in. */
  get connected(): number {
    return this.online;
  }

  /** Agents that have logged in at least once. */
  get everConnected(): number {
    return this.reached;
  }

  /** Logins so far, of all agents. */
  get loggedIn(): number {
    return this.logins;
  }

  get size(): number {
    return this.cores.size;
  }

  /** Connects all, in the order of members. Agents that lose their link reconnect by themselves. */
  start(): void {
    this.startedAt = this.options.ports.timer.now();
    this.connectDue();
  }

  /**
   * Stops one agent, like a loss of power; false if none with that id runs. Its links are ended by
   * the caller.
   */
  powerOff(id: string): boolean {
    const core = this.cores.get(id);
    this.cores.delete(id);
    core?.stop();
    return core !== undefined;
  }

  /**
   * Starts an agent again, with its previous storage or, with a new `agentToken`, with an empty
   * one. Throws if it cannot be provisioned.
   */
  powerOn(id: string, changed: Changed = {}): void {
    const known = this.restarting.get(id);
    if (known === undefined || this.cores.has(id)) return;
    const { suite } = this.options.ports;
    known.member = { ...known.member, ...changed };
    const isEmpty = changed.agentToken !== undefined;
    if (isEmpty) known.storage = new MemoryStorage();
    const raised = (isEmpty ? firstBoot : nextBoot)(known.storage, suite, known.member);
    const core = makeCore(this.options, known.member, known.storage, raised);
    this.watch(core, known.life);
    this.cores.set(id, core);
    core.start();
  }

  /** Stops all agents and closes every link. */
  stop(): void {
    this.options.ports.timer.clear(this.tick);
    this.waiting.length = 0;
    for (const id of this.cores.keys()) this.powerOff(id);
  }

  /** Agents that are not logged in. */
  missing(): Missing[] {
    const missing: Missing[] = [];
    for (const [id, core] of this.cores) {
      const { state, code, advice } = core.link.status;
      if (state !== "online") missing.push({ id, code: code ?? state, advice: advice ?? "" });
    }
    return missing;
  }

  private watch(core: AgentCore, life: Life): void {
    let state: AgentStatus["state"] = "idle";
    core.link.onState((status) => {
      if (isConnecting(state)) this.connecting -= 1;
      if (state === "online") this.online -= 1;
      state = status.state;
      if (isConnecting(state)) this.connecting += 1;
      if (state !== "online") return;
      this.online += 1;
      this.logins += 1;
      if (!life.hasReached) this.reached += 1;
      life.hasReached = true;
    });
  }

  private connectDue(): void {
    const elapsedMs = this.options.ports.timer.now() - this.startedAt;
    const { connectionsPerSecond, connectingAtOnce } = this.options;
    const due = Math.ceil(((elapsedMs + TICK_MS) * connectionsPerSecond) / 1000);
    while (this.started < due && this.connecting < connectingAtOnce) {
      const next = this.waiting.at(-1);
      if (next === undefined || next.startMs > elapsedMs) break;
      const { core } = next;
      this.waiting.pop();
      this.started += 1;
      // A stopped agent cannot be restarted, and another may have been started in its place.
      if (this.cores.get(core.agent.id) === core) core.start();
    }
    if (this.waiting.length === 0) return;
    this.tick = this.options.ports.timer.set(TICK_MS, () => this.connectDue());
  }
}

function isConnecting(state: AgentStatus["state"]): boolean {
  return state === "connecting" || state === "authenticating";
}

type Raised = Extract<BootCountResult, { ok: true }>;

interface WaitingAgent {
  core: AgentCore;
  startMs: number;
}

/** Of a member, over all its starts: whether it was online at some time. */
interface Life {
  hasReached: boolean;
}

/** What a member needs to be started again. */
interface Restarting {
  member: FleetMember;
  storage: MemoryStorage;
  life: Life;
}

function makeCore(
  options: LiveFleetOptions,
  member: FleetMember,
  storage: MemoryStorage,
  { count: bootCount, seed }: Raised,
): AgentCore {
  const { ports } = options;
  const kept = openLog({
    bytes: SMALL_LOG_BYTES,
    bootCount,
    timer: ports.timer,
    storage,
    secrets: [member.agentToken, member.relayToken],
  });
  const core = new AgentCore({
    url: options.url,
    agentId: member.id,
    relayToken: member.relayToken,
    agentToken: member.agentToken,
    version: member.version ?? "1",
    name: member.name,
    runtime: `simulator, node ${process.versions.node}`,
    sdkVersion: SDK_VERSION,
    bootCount,
    forward: forwardSessions(seed, nodeX25519),
    deviceRandom: DEVICE_RANDOM,
    serialNumber: member.id,
    ...(member.limits === undefined ? {} : { limits: SMALL_AGENT_LIMITS }),
    ports: {
      ...ports,
      link: member.link ?? ports.link,
      log: keepingLog(kept, ports.log, () => ""),
    },
  });
  serveLog(kept, core);
  if (options.executions) countRuns(core.agent, options.executions);
  giveStorage(core.agent, storage);
  member.program(core.agent);
  return core;
}

/** Counts the calls of the agent's handlers, before they run. */
function countRuns(agent: Agent, executions: Map<string, number>): void {
  const handle = agent.handle.bind(agent);
  agent.handle = (method, handler) =>
    handle(method, (params, context) => {
      executions.set(agent.id, (executions.get(agent.id) ?? 0) + 1);
      return handler(params, context);
    });
}

/**
 * The first start of a fresh device: provision, then count up. The storage is lost with the
 * process, and so is the secret.
 */
function firstBoot(storage: MemoryStorage, suite: Suite, member: FleetMember): Raised {
  const seed = seedOf(member.version ?? "1", randomBytes);
  const provisioned = provisionBootCount(storage, suite, member.agentToken, seed);
  if (!provisioned.ok) throw new Error(provisioned.advice);
  return nextBoot(storage, suite, member);
}

function nextBoot(storage: MemoryStorage, suite: Suite, { agentToken }: FleetMember): Raised {
  const raised = raiseBootCount(storage, suite, agentToken);
  if (!raised.ok) throw new Error(raised.advice);
  return raised;
}
