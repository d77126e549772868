/**
 * An agent with its bridged serial ports: one, or several of mode raw. It runs while one of them is
 * open. When the last one is lost, the agent's link ends, so the agent shows as offline; when a
 * port returns, the agent starts again with a new boot count, as after any restart.
 */

import { randomBytes } from "node:crypto";
import {
  type OpenPort,
  type PortUser,
  RawLine,
  RawPort,
  RawProgram,
} from "@blindrelay/agent-sdk/bridge";
import {
  type Agent,
  type AgentStatus,
  ConfigError,
  type RunningAgent,
  StateError,
  startAgent,
  systemTimer,
} from "@blindrelay/agent-sdk/node";
import type { Log, TimerPort } from "@blindrelay/agent-sdk/ports";
import { Failure } from "@blindrelay/protocol/command-line";
import { openFailure } from "../repl/port.ts";
import { openerFor } from "../serial/open.ts";
import { PortSupervisor } from "../serial/supervise.ts";
import type { PortMode, PortPlan } from "./config.ts";
import { linesProgram } from "./lines.ts";
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

interface BridgeOptions {
  /** The ports of one agent, or one of mode sealed. */
  readonly plans: readonly PortPlan[];
  /** The relay's WebSocket address. */
  readonly url: string;
  readonly log: Log;
  news(news: BridgeNews): void;
  /** Once: only a person can help; the ports stay closed. */
  failed(failure: unknown): void;
}

type Program = (agent: Agent) => void;

/** Before the first login these mean that the credentials are wrong. */
const CREDENTIALS = ["INVALID_TOKEN", "WRONG_TOKEN_KIND", "REVOKED", "BAD_MESSAGE"];

/** The disk may be full for a while, or another process have the folder. */
const PASSING: readonly string[] = ["medium", "locked"];

const asFailure = (error: unknown): unknown => {
  if (error instanceof StateError) return new Failure("device", error.message, error);
  if (error instanceof ConfigError) return new Failure("refused", error.message, error);
  return error;
};

/** Runs an agent while anybody needs it. */
class NeededAgent {
  private readonly startOne: (program: Program) => Promise<RunningAgent>;
  private running: RunningAgent | null = null;
  /** It has run: whatever is wrong now was right before. */
  hasRun = false;
  private needs = 0;
  /** Starts and stops, one after the other. */
  private turn: Promise<void> = Promise.resolve();

  constructor(startOne: (program: Program) => Promise<RunningAgent>) {
    this.startOne = startOne;
  }

  /** Resolves when it runs, with this program or that of the first who needed it. */
  need(program: Program): Promise<void> {
    this.needs++;
    return this.next(async () => {
      try {
        this.running ??= await this.startOne(program);
        this.hasRun = true;
      } catch (error) {
        this.needs--;
        throw error;
      }
    });
  }

  /** Resolves when it has stopped, if nobody else needs it. */
  release(): Promise<void> {
    this.needs--;
    return this.next(async () => {
      const { running } = this;
      if (this.needs > 0 || running === null) return;
      this.running = null;
      await running.stop();
    });
  }

  private next(run: () => Promise<void>): Promise<void> {
    const done = this.turn.then(run);
    this.turn = done.catch(() => undefined);
    return done;
  }
}

export class Bridge {
  /** For people: the port's, or the agent's if it has several. */
  readonly name: string;
  private readonly options: BridgeOptions;
  private readonly timer: TimerPort = systemTimer();
  private readonly supervisors: readonly PortSupervisor[];
  private readonly agent: NeededAgent;
  private wasOnline = false;
  private isGivenUp = false;
  /** The agent's last reported state: each is reported once, not at every attempt. */
  private told = "";

  constructor(options: BridgeOptions) {
    this.options = options;
    const [plan, ...more] = options.plans as [PortPlan, ...PortPlan[]];
    const { mode } = plan;
    this.name = mode.kind === "sealed" || more.length === 0 ? plan.name : mode.identity.agentId;
    this.agent = new NeededAgent((program) => this.startAgent(mode, program));
    this.supervisors = this.usersOf(options.plans).map(([plan, use]) => this.supervise(plan, use));
  }

  start(): void {
    for (const supervisor of this.supervisors) supervisor.start();
  }

  async stop(): Promise<void> {
    await Promise.all(this.supervisors.map((supervisor) => supervisor.stop()));
  }

  private supervise(plan: PortPlan, use: (port: OpenPort) => Promise<PortUser>): PortSupervisor {
    const { news } = this.options;
    return new PortSupervisor({
      open: openerFor(plan.address, plan.lines),
      settings: plan.settings,
      writeTimeoutMs: plan.writeTimeoutMs,
      byteDelayMs: plan.byteDelayMs,
      timer: this.timer,
      use,
      mayPass: (error) =>
        this.agent.hasRun && error instanceof StateError && PASSING.includes(error.problem),
      report: (state, reason, waitMs) => {
        const base = { event: "port", name: plan.name, port: plan.port } as const;
        if (state === "open") news({ ...base, state });
        else {
          const told = state === "absent" ? openFailure(plan.port, reason).message : reason;
          news({ ...base, state, reason: told, retry_ms: waitMs });
        }
      },
      failed: (error) => this.giveUp(asFailure(error)),
    });
  }

  /** Each port and what becomes of it when it is open. */
  private usersOf(plans: readonly PortPlan[]): [PortPlan, (port: OpenPort) => Promise<PortUser>][] {
    const { timer } = this;
    const { url, log } = this.options;
    const edge = { timer, random: randomBytes, date: () => new Date().toISOString() };
    // Who uses a raw port is known over its openings.
    const lines = plans.map(
      ({ port, name, access, settings }) =>
        new RawLine(new RawPort(port, access, edge), [port, name], settings, timer),
    );
    const raw = new RawProgram(lines);
    return plans.map((plan, index) => {
      const { mode } = plan;
      const use = async (port: OpenPort): Promise<PortUser> => {
        if (mode.kind === "sealed") return carrySealed(port, { url, timer, log });
        if (mode.kind === "raw") {
          await this.agent.need(raw.program);
          return this.untilEnd(raw.opened(lines[index] as RawLine, port));
        }
        const made = linesProgram(port, mode.mapping, timer);
        await this.agent.need(made.program);
        made.begin();
        return this.untilEnd(made.user);
      };
      return [plan, use];
    });
  }

  /** A port's user that needs the agent. */
  private untilEnd(user: PortUser): PortUser {
    return {
      data: (bytes) => user.data(bytes),
      end: async (reason) => {
        await user.end(reason);
        // The failed calls' answers are written in the next turn, before the link ends.
        await new Promise((resolve) => setImmediate(resolve));
        await this.agent.release();
      },
    };
  }

  private async startAgent(mode: PortMode, program: Program): Promise<RunningAgent> {
    if (mode.kind === "sealed") throw new Error("the board is the agent");
    const { url, log } = this.options;
    const { identity, stateDir } = mode;
    const { agentId, relayToken, agentToken, version, deviceSecret } = identity;
    const agent = await startAgent({
      url,
      agentId,
      relayToken,
      agentToken,
      stateDir,
      name: this.name,
      program,
      log,
      packetVersion: version,
      deviceKey: deviceSecret ?? undefined,
    });
    agent.onState((status) => this.follow(agentId, status));
    return agent;
  }

  private giveUp(failure: unknown): void {
    if (this.isGivenUp) return;
    this.isGivenUp = true;
    this.options.failed(failure);
    // The agent's other ports too.
    void this.stop();
  }

  private follow(agentId: string, { state, code, advice }: AgentStatus): void {
    const { name } = this;
    const tellOnce = (online: boolean): void => {
      const said = `${online} ${code}`;
      if (said === this.told) return;
      this.told = said;
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
      this.giveUp(new Failure("refused", `${name}: ${advice ?? "the relay refuses this agent"}`));
    } else if (state === "waiting" || state === "stopped") {
      tellOnce(false);
    }
  }
}
