/**
 * One device of a relay in memory: the agent core with its device program, on storage that survives
 * a power cut.
 */
import {
  type Agent,
  AgentCore,
  type AgentPorts,
  giveStorage,
  keepingLog,
  LARGE_LOG_BYTES,
  openLog,
  type Program,
  provisionBootCount,
  raiseBootCount,
  serveLog,
} from "@blindrelay/agent-sdk";
import { MemoryStorage } from "@blindrelay/agent-sdk/memory";
import { makeToken } from "@blindrelay/protocol";
import type { Version } from "@blindrelay/protocol/crypto";
import { nobleX25519 } from "@blindrelay/protocol/suites/noble-x25519";
import { forwardSessions, seedOf } from "../base/forward-sessions.ts";
import { type AgentRecord, randomBytes } from "./directory.ts";

export interface FakeDeviceParts {
  readonly record: AgentRecord;
  readonly version: Version;
  readonly program: Program | ((agent: Agent) => Promise<void>);
  readonly ports: AgentPorts;
  /** Ends its link as if the network were lost. */
  cut(): void;
}

export class FakeDevice {
  readonly id: string;
  /** The end-to-end secret for `client.agent(device.id, device.secret)`. */
  readonly secret = makeToken("e2e", randomBytes(32));
  /** Logged in to the relay. */
  online = false;
  /** Starts so far. */
  boots = 0;
  private readonly parts: FakeDeviceParts;
  private readonly storage = new MemoryStorage();
  private readonly waiting = new Set<PromiseWithResolvers<void>>();
  private core: AgentCore | null = null;

  /** Created by `MemoryRelay.addDevice`. */
  constructor(parts: FakeDeviceParts) {
    this.parts = parts;
    this.id = parts.record.agentId;
    const seed = seedOf(parts.version, randomBytes);
    const made = provisionBootCount(this.storage, parts.ports.suite, this.secret, seed);
    if (!made.ok) throw new Error(made.advice);
  }

  /** The agent that its program gets: `device.agent.emit("empty", {})`. Throws while it is off. */
  get agent(): Agent {
    if (this.core === null) throw new Error(`${this.id} is off`);
    return this.core.agent;
  }

  /** Resolves once it is online; rejects if it is, or goes, off. */
  untilOnline(): Promise<void> {
    if (this.online) return Promise.resolve();
    if (this.core === null) return Promise.reject(new Error(`${this.id} is off`));
    const waiting = Promise.withResolvers<void>();
    this.waiting.add(waiting);
    return waiting.promise;
  }

  /**
   * Switches it on: its program starts without any state. Resolves once it is online; rejects with
   * the error that the program threw. Harmless while it is on.
   */
  async powerOn(): Promise<void> {
    if (this.core === null) await this.boot();
    await this.untilOnline();
  }

  /** Switches it off: its link ends, and its program's memory is lost. Harmless while it is off. */
  powerOff(): void {
    const { core } = this;
    if (core === null) return;
    this.core = null;
    this.online = false;
    this.parts.cut();
    core.stop();
    for (const { reject } of this.waiting) reject(new Error(`${this.id} was switched off`));
    this.waiting.clear();
  }

  private async boot(): Promise<void> {
    const { record, version, program, ports } = this.parts;
    const raised = raiseBootCount(this.storage, ports.suite, this.secret);
    if (!raised.ok) throw new Error(raised.advice);
    this.boots += 1;
    const kept = openLog({
      bytes: LARGE_LOG_BYTES,
      bootCount: raised.count,
      timer: ports.timer,
      storage: this.storage,
      secrets: [this.secret, record.relayToken],
    });
    const core = new AgentCore({
      url: "memory://relay/wss",
      agentId: this.id,
      relayToken: record.relayToken,
      agentToken: this.secret,
      version,
      name: record.name,
      runtime: "fake device",
      sdkVersion: "fake device",
      bootCount: raised.count,
      forward: forwardSessions(raised.seed, nobleX25519),
      deviceRandom: randomBytes(16),
      serialNumber: this.id,
      ports: { ...ports, log: keepingLog(kept, ports.log, () => "") },
    });
    serveLog(kept, core);
    this.core = core;
    core.link.onState(({ state, advice }) => {
      if (this.core !== core) return;
      this.online = state === "online";
      if (state !== "online" && state !== "refused") return;
      for (const { resolve, reject } of this.waiting) {
        if (this.online) resolve();
        else reject(new Error(`${this.id} was refused: ${advice}`));
      }
      this.waiting.clear();
    });
    giveStorage(core.agent, this.storage);
    try {
      await program(core.agent);
    } catch (error) {
      this.powerOff();
      throw error;
    }
    if (this.core === core) core.start();
  }
}
