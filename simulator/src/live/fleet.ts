/**
 * Many agents in one process: agent-sdk's core as it runs on every board, over the light link, each
 * with a storage of its own that is provisioned and counted up as a real device's is. Connects at a
 * bounded rate, so that a fleet's start is no flood.
 */
import { randomBytes } from "node:crypto";
import {
  AgentCore,
  type AgentPorts,
  type AgentStatus,
  type Program,
  provisionBootCount,
  raiseBootCount,
} from "@blindrelay/agent-sdk";
import { MemoryStorage } from "@blindrelay/agent-sdk/memory";
import { SDK_VERSION } from "@blindrelay/agent-sdk/node";
import type { Suite } from "@blindrelay/protocol/crypto";

/** One device: who it is, its two secrets, and the program on it. */
export interface FleetMember {
  id: string;
  name: string;
  relayToken: string;
  agentToken: string;
  program: Program;
}

export interface FleetOptions {
  /** The relay's `/wss` address. */
  url: string;
  /** New connections a second, at most. */
  connectionsPerSecond: number;
  ports: AgentPorts;
}

/**
 * Agents that are connecting and not yet logged in, at most: what a relay has to answer at once.
 */
const CONNECTING_AT_ONCE = 256;
const TICK_MS = 10;

/** Why a member is not online. */
export interface Missing {
  id: string;
  /** The relay's code, or the link's state. */
  code: string;
  advice: string;
}

export class Fleet {
  private readonly options: FleetOptions;
  private readonly cores = new Map<string, AgentCore>();
  private readonly waiting: AgentCore[] = [];
  private online = 0;
  private connecting = 0;
  private tick: unknown = null;
  private startedAt = 0;
  private started = 0;

  /**
   * Makes every agent and connects none. Throws an Error for a member that cannot be provisioned.
   */
  constructor(options: FleetOptions, members: Iterable<FleetMember>) {
    this.options = options;
    for (const member of members) {
      const core = makeCore(options, member);
      let state: AgentStatus["state"] = "idle";
      core.link.onState((status) => {
        if (isConnecting(state)) this.connecting -= 1;
        if (state === "online") this.online -= 1;
        state = status.state;
        if (isConnecting(state)) this.connecting += 1;
        if (state === "online") this.online += 1;
      });
      this.cores.set(member.id, core);
      this.waiting.push(core);
    }
    this.waiting.reverse();
  }

  /** Agents logged in now. */
  get connected(): number {
    return this.online;
  }

  get size(): number {
    return this.cores.size;
  }

  /** Connects all, first member first. Agents that lose their link reconnect by themselves. */
  start(): void {
    this.startedAt = this.options.ports.timer.now();
    this.connectDue();
  }

  /** Stops one agent for good; false where there is none of that id. */
  stopAgent(id: string): boolean {
    const core = this.cores.get(id);
    if (core === undefined) return false;
    core.stop();
    this.cores.delete(id);
    return true;
  }

  /** Stops all agents and closes every link. */
  stop(): void {
    this.options.ports.timer.clear(this.tick);
    this.waiting.length = 0;
    for (const id of this.cores.keys()) this.stopAgent(id);
  }

  /** Agents that are not logged in now. */
  missing(): Missing[] {
    const missing: Missing[] = [];
    for (const [id, core] of this.cores) {
      const { state, code, advice } = core.link.status;
      if (state !== "online") missing.push({ id, code: code ?? state, advice: advice ?? "" });
    }
    return missing;
  }

  private connectDue(): void {
    const elapsedMs = this.options.ports.timer.now() - this.startedAt;
    const due = Math.ceil(((elapsedMs + TICK_MS) * this.options.connectionsPerSecond) / 1000);
    while (this.waiting.length > 0 && this.started < due && this.connecting < CONNECTING_AT_ONCE) {
      const core = this.waiting.pop() as AgentCore;
      this.started += 1;
      // A stopped agent has no way back.
      if (this.cores.has(core.agent.id)) core.start();
    }
    if (this.waiting.length === 0) return;
    this.tick = this.options.ports.timer.set(TICK_MS, () => this.connectDue());
  }
}

function isConnecting(state: AgentStatus["state"]): boolean {
  return state === "connecting" || state === "authenticating";
}

function makeCore(options: FleetOptions, member: FleetMember): AgentCore {
  const { suite } = options.ports;
  const core = new AgentCore({
    url: options.url,
    agentId: member.id,
    relayToken: member.relayToken,
    agentToken: member.agentToken,
    version: "1",
    name: member.name,
    runtime: `simulator, node ${process.versions.node}`,
    sdkVersion: SDK_VERSION,
    bootCount: firstBoot(suite, member.agentToken),
    deviceRandom: randomBytes(16),
    serialNumber: member.id,
    ports: options.ports,
  });
  member.program(core.agent);
  return core;
}

/**
 * What a fresh device does at its first start: provision, then count up. The storage dies with the
 * process, and so does the secret.
 */
function firstBoot(suite: Suite, agentToken: string): number {
  const storage = new MemoryStorage();
  const provisioned = provisionBootCount(storage, suite, agentToken);
  const raised = provisioned.ok ? raiseBootCount(storage, suite, agentToken) : provisioned;
  if (!raised.ok) throw new Error(raised.advice);
  return raised.count;
}
