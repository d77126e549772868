/** Plays the faults of a live run: on the fleet, on the networks of clients, and on the relay. */
import { randomBytes } from "node:crypto";
import { makeToken } from "@blindrelay/protocol";
import type { LivenessOracle } from "../oracle/liveness.ts";
import type { PlannedFault } from "../scenario/plan.ts";
import type { Called } from "./clients.ts";
import type { FleetChildren } from "./fleet-children.ts";
import type { ClientNetworks } from "./networks.ts";
import type { LiveRelay } from "./relay.ts";
import { eachAtOnce, rotateAgent } from "./rest.ts";

export interface LiveFaultsOptions {
  relay: LiveRelay;
  fleet: FleetChildren;
  /** Their restarts and new secrets are noted. */
  devices: readonly Called[];
  networks: ClientNetworks;
  liveness: LivenessOracle;
  /** The time in the plan. */
  elapsedMs(): number;
  /** Aborted if a fault cannot be played. */
  stopping: AbortController;
}

export class LiveFaults {
  /** Devices with a revoked token, and when the revocation was acknowledged. */
  readonly revoked = new Map<number, number>();
  private readonly options: LiveFaultsOptions;
  private readonly timers: NodeJS.Timeout[] = [];
  /** The newest relay tokens of devices whose tokens were rotated. */
  private readonly relayTokens = new Map<number, string>();
  private rotations: Promise<void> = Promise.resolve();

  constructor(options: LiveFaultsOptions) {
    this.options = options;
  }

  start(faults: readonly PlannedFault[]): void {
    for (const fault of faults) this.schedule(fault);
  }

  /** Begins and ends no further fault. */
  stop(): void {
    for (const timer of this.timers) clearTimeout(timer);
  }

  private schedule(fault: PlannedFault): void {
    const { liveness, elapsedMs } = this.options;
    let begun = Promise.resolve();
    this.timers.push(
      setTimeout(() => {
        liveness.faultBegins(elapsedMs() * 1000);
        begun = this.play(fault, true);
      }, fault.atUs / 1000),
      setTimeout(async () => {
        // A relay that starts again may need longer than the plan gives it.
        await begun;
        await this.play(fault, false);
        liveness.faultEnds(elapsedMs() * 1000);
      }, fault.endUs / 1000),
    );
  }

  private async play(fault: PlannedFault, on: boolean): Promise<void> {
    const { spec, devices: agents, clients } = fault;
    const { fleet, networks, relay, stopping } = this.options;
    try {
      if (spec.kind.startsWith("net.")) {
        const targets = agents.map((agent) => ({ agent }));
        fleet.take({ do: "play", targets, fault: spec, on });
        for (const client of clients) networks.play(client, spec, on);
      } else if (spec.kind === "device.reboot") this.reboot(fault, on);
      else if (spec.kind === "operator.rotate") await this.rotate(fault, on);
      else if (on) await relay.restart(fault);
    } catch (error) {
      if (stopping.signal.aborted) return;
      const { message } = error as Error;
      stopping.abort(new Error(`the fault ${spec.kind} could not be played: ${message}`));
    }
  }

  private reboot({ devices: agents, spec }: PlannedFault, on: boolean): void {
    const { fleet, devices } = this.options;
    for (const n of agents) (devices[n] as Called).restarts += 1;
    if (on || spec.storage !== "lose") {
      const targets = agents.map((agent) => ({ agent }));
      fleet.take({ do: on ? "power off" : "power on", targets });
      return;
    }
    const targets = agents.map((agent) => {
      // A boot count must never start over under the previous secret.
      const agentToken = makeToken("e2e", randomBytes(32));
      (devices[agent] as Called).agentToken = agentToken;
      return { agent, changed: { agentToken } };
    });
    fleet.take({ do: "power on", targets });
  }

  /**
   * Its beginning revokes the tokens, its end gives the devices their newest ones, because another
   * rotation may have begun since. So rotations run one after another.
   */
  private async rotate({ devices: agents }: PlannedFault, on: boolean): Promise<void> {
    const { fleet, devices, relay, stopping } = this.options;
    if (on) {
      this.rotations = this.rotations.then(() =>
        eachAtOnce(agents.length, async (i) => {
          const n = agents[i] as number;
          const { id } = devices[n] as Called;
          const token = await rotateAgent(relay, relay.accountToken, id, stopping.signal);
          this.relayTokens.set(n, token);
          this.revoked.set(n, performance.now());
        }),
      );
      return this.rotations;
    }
    await this.rotations;
    for (const n of agents) {
      this.revoked.delete(n);
      (devices[n] as Called).restarts += 1;
    }
    const targets = agents.map((agent) => {
      const relayToken = this.relayTokens.get(agent) as string;
      return { agent, changed: { relayToken } };
    });
    fleet.take({ do: "power off", targets });
    fleet.take({ do: "power on", targets });
  }
}
