/**
 * One bridged serial port: its agent runs while the port is open. When the port is lost, the
 * agent's link ends, so the agent shows as offline; when the port returns, the agent starts again
 * with a new boot count, as after any restart.
 */
import {
  type AgentStatus,
  ConfigError,
  type RunningAgent,
  StateError,
  startAgent,
  systemTimer,
} from "@blindrelay/agent-sdk/node";
import type { Log, TimerPort } from "@blindrelay/agent-sdk/ports";
import { Failure } from "@blindrelay/protocol/command-line";
import type { Identity } from "../account/identity.ts";
import { openFailure } from "../repl/port.ts";
import { openerFor } from "../serial/open.ts";
import type { OpenPort } from "../serial/port.ts";
import { PortSupervisor, type PortUser } from "../serial/supervise.ts";
import type { PortPlan } from "./config.ts";
import { linesProgram } from "./lines.ts";
import { type PortProgram, rawProgram } from "./raw.ts";
import { RawPort } from "./raw-port.ts";
import { carrySealed } from "./sealed.ts";

/** What is reported to a person or a supervising program. */
export type BridgeNews =
  | { readonly event: "port"; readonly name: string; readonly port: string; readonly state: "open" }
  | {
      readonly event: "port";
      readonly name: string;
      readonly port: string;
      readonly state: "lost" | "absent";
      readonly reason: string;
      readonly retry_ms: number;
    }
  | {
      readonly event: "agent";
      readonly name: string;
      readonly agent_id: string;
      readonly state: "online" | "offline";
      readonly code: string | null;
      /** What a person can do about it; null if nothing is wrong. */
      readonly advice: string | null;
    };

export interface BridgeOptions {
  readonly plan: PortPlan;
  /** The relay's WebSocket address. */
  readonly url: string;
  readonly log: Log;
  news(news: BridgeNews): void;
  /** Only a person can help; the port stays closed. */
  failed(failure: unknown): void;
}

/** Before the first login these mean that the credentials are wrong. */
const CREDENTIALS = ["INVALID_TOKEN", "WRONG_TOKEN_KIND", "REVOKED", "BAD_MESSAGE"];

const asFailure = (error: unknown): unknown => {
  if (error instanceof StateError) return new Failure("device", error.message, error);
  if (error instanceof ConfigError) return new Failure("refused", error.message, error);
  return error;
};

export class Bridge {
  private readonly options: BridgeOptions;
  private readonly timer: TimerPort = systemTimer();
  private readonly supervisor: PortSupervisor;
  /** Of mode raw: who uses the port, over its openings. */
  private readonly line: RawPort;
  private wasOnline = false;
  /** The agent's last reported state: each is reported once, not at every attempt. */
  private told = "";

  constructor(options: BridgeOptions) {
    this.options = options;
    const { plan } = options;
    this.line = new RawPort(plan.port, plan.access, this.timer);
    this.supervisor = new PortSupervisor({
      open: openerFor(plan.address, plan.lines),
      settings: plan.settings,
      writeTimeoutMs: plan.writeTimeoutMs,
      byteDelayMs: plan.byteDelayMs,
      timer: this.timer,
      use: (port) => this.use(port),
      report: (state, reason, waitMs) => {
        const base = { event: "port", name: plan.name, port: plan.port } as const;
        if (state === "open") options.news({ ...base, state });
        else {
          const told = state === "absent" ? openFailure(plan.port, reason).message : reason;
          options.news({ ...base, state, reason: told, retry_ms: waitMs });
        }
      },
      failed: (error) => options.failed(asFailure(error)),
    });
  }

  start(): void {
    this.supervisor.start();
  }

  stop(): Promise<void> {
    return this.supervisor.stop();
  }

  private async use(port: OpenPort): Promise<PortUser> {
    const { plan, url, log } = this.options;
    const { mode } = plan;
    if (mode.kind === "sealed") return carrySealed(port, { url, timer: this.timer, log });
    const made =
      mode.kind === "raw"
        ? rawProgram(port, plan.settings, {
            line: this.line,
            names: [plan.port, plan.name],
            timer: this.timer,
          })
        : linesProgram(port, mode.mapping, this.timer);
    const agent = await this.startAgent(mode.identity, mode.stateDir, made);
    made.begin?.();
    return {
      data: made.user.data,
      end: async (reason) => {
        await made.user.end(reason);
        // The failed calls' answers are written in the next turn, before the link ends.
        await new Promise((resolve) => setImmediate(resolve));
        await agent.stop();
      },
    };
  }

  private async startAgent(
    identity: Identity,
    stateDir: string,
    made: PortProgram,
  ): Promise<RunningAgent> {
    const { plan, url, log } = this.options;
    const agent = await startAgent({
      url,
      agentId: identity.agentId,
      relayToken: identity.relayToken,
      agentToken: identity.agentToken,
      packetVersion: identity.version,
      deviceKey: identity.deviceSecret ?? undefined,
      stateDir,
      name: plan.name,
      program: made.program,
      log,
    });
    agent.onState((status) => this.follow(identity.agentId, status));
    return agent;
  }

  private follow(agentId: string, { state, code, advice }: AgentStatus): void {
    const { plan, failed } = this.options;
    const tellOnce = (online: boolean): void => {
      const said = `${online} ${code}`;
      if (said === this.told) return;
      this.told = said;
      const { name } = plan;
      const state = online ? "online" : "offline";
      this.options.news({ event: "agent", name, agent_id: agentId, state, code, advice });
    };
    if (state === "online") {
      this.wasOnline = true;
      tellOnce(true);
      return;
    }
    const refused = code !== null && CREDENTIALS.includes(code) && !this.wasOnline;
    if (state === "refused" || (state === "waiting" && refused)) {
      failed(new Failure("refused", `${plan.name}: ${advice ?? "the relay refuses this agent"}`));
    } else if (state === "waiting" || state === "stopped") {
      tellOnce(false);
    }
  }
}
