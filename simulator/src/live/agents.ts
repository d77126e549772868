/** The agents of a live run: created at the relay before it, and removed from an external one. */
import { randomBytes } from "node:crypto";
import { RestError } from "@blindrelay/client-sdk/rest";
import { makeToken } from "@blindrelay/protocol";
import { Failure } from "@blindrelay/protocol/command-line";
import { abortedAfter } from "../base/aborted.ts";
import type { Progress } from "../report/progress.ts";
import type { Plan, PlannedDevice } from "../scenario/plan.ts";
import type { Scenario } from "../scenario/schema.ts";
import type { Called } from "./clients.ts";
import type { OrderedAgent } from "./fleet-messages.ts";
import { isTarget, shapeOfDevice } from "./networks.ts";
import type { LiveRelay } from "./relay.ts";
import { eachAtOnce, makeAgent, removeAgent } from "./rest.ts";

const CLEAN_UP_LIMIT_MS = 60_000;
/** For requests in progress at the end: each may still create an agent, which must be removed. */
const ANSWER_WAIT_MS = 5_000;

export interface LiveAgentsOptions {
  scenario: Scenario;
  plan: Plan;
  relay: LiveRelay;
  progress: Progress;
  /** The end of the run. */
  signal: AbortSignal;
}

export class LiveAgents {
  /** In the order of the plan. */
  readonly devices: Called[] = [];
  /** Ids of those created so far. */
  readonly ids: string[] = [];
  private readonly options: LiveAgentsOptions;

  constructor(options: LiveAgentsOptions) {
    this.options = options;
  }

  /** Creates all; resolves with the fleet's order. */
  async make(restToken: string): Promise<OrderedAgent[]> {
    const { scenario, plan, relay, progress, signal } = this.options;
    const isExternal = relay.externalUrl !== undefined;
    // On an external relay, other agents' ids must not be taken.
    const prefix = isExternal ? `sim-${randomBytes(3).toString("hex")}-` : "";
    const order: OrderedAgent[] = [];
    const programs = programsOf(plan);
    const late = isExternal ? abortedAfter(signal, ANSWER_WAIT_MS) : signal;
    progress.start("agents made", plan.devices.length, () => this.ids.length);
    await eachAtOnce(plan.devices.length, async (n) => {
      const planned = plan.devices[n] as PlannedDevice;
      const id = `${prefix}${planned.id}`;
      signal.throwIfAborted();
      const relayToken = await makeAgent(relay, restToken, id, planned.id, late);
      this.ids.push(id);
      const agentToken = makeToken("e2e", randomBytes(32));
      const { kind, version } = planned;
      this.devices[n] = { id, name: planned.id, kind, version, restarts: 0, agentToken };
      const shape = shapeOfDevice(scenario, plan, n);
      order[n] = {
        id,
        name: planned.id,
        relayToken,
        agentToken,
        program: programs.indexOf(programOf(planned)),
        version,
        startMs: planned.startUs / 1000,
        restarts: isTarget(plan, n, /^(device\.|operator\.)/),
        ...(planned.engine === undefined ? {} : { engine: planned.engine }),
        ...(planned.limits === undefined ? {} : { limits: planned.limits }),
        ...(shape === null ? {} : { shape }),
      };
    }).catch((error) => {
      throw this.explain(error);
    });
    return order;
  }

  /** Reports what cannot be removed. */
  async remove(): Promise<void> {
    const { ids } = this;
    const { relay, progress } = this.options;
    if (ids.length === 0) return;
    const signal = AbortSignal.timeout(CLEAN_UP_LIMIT_MS);
    let left = ids.length;
    progress.start("agents removed", ids.length, () => ids.length - left);
    await eachAtOnce(ids.length, async (i) => {
      await removeAgent(relay, relay.accountToken, ids[i] as string, signal);
      left -= 1;
    }).catch((error) => {
      progress.say(`${left} agents are left at the relay: ${error.message}`);
    });
    progress.stop();
  }

  /** The error with the exit code for an external relay that refuses, or cannot be reached. */
  private explain(error: Error): Error {
    const { relay, signal } = this.options;
    const { externalUrl: url } = relay;
    if (url === undefined || signal.aborted) return error;
    if (error instanceof RestError && [401, 403].includes(error.status)) {
      return new Failure("refused", `${url} refused the request: ${error.message}`);
    }
    const isAway = ["UNREACHABLE", "TIMED_OUT", "NOT_A_RELAY"].includes((error as RestError).code);
    return isAway ? new Failure("unreachable", error.message) : error;
  }
}

/** The device programs of a plan, in the order that an agent's `program` refers to. */
export function programsOf({ devices }: Plan): string[] {
  return [...new Set(devices.map(programOf))];
}

function programOf({ kind, program }: PlannedDevice): string {
  return program ?? `kind:${kind}`;
}
