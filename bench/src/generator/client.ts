/** The benchmark's interface to the generator's process: one command at a time, in order. */
import { type ChildProcess, spawn } from "node:child_process";
import { fileURLToPath } from "node:url";
import { stopChild, watch, whenEnded } from "@blindrelay/simulator/testing";
import type { Answer, Command, Load, PairPlan, PeerPlan, SliceResult } from "./messages.ts";

const MAIN = fileURLToPath(new URL("./main.ts", import.meta.url));
const STOP_GRACE_MS = 1_000;

export class Generator {
  private readonly child: ChildProcess;
  private readonly ended: Promise<never>;

  constructor() {
    this.child = watch(
      spawn(process.execPath, [MAIN], { stdio: ["ignore", "inherit", "inherit", "ipc"] }),
    );
    this.ended = whenEnded(this.child).then((how) => {
      throw new Error(`the load generator ended: ${how}`);
    });
    this.ended.catch(() => {});
  }

  async connectPairs(group: string, pairs: readonly PairPlan[]): Promise<void> {
    await this.ask({ kind: "pairs", group, pairs });
  }

  /** Opens more connections, which send nothing after their hello. */
  async connectIdle(group: string, peers: readonly PeerPlan[]): Promise<void> {
    await this.ask({ kind: "idle", group, peers });
  }

  /** Replaces the connections of clients that will soon reach their message limit. */
  async renew(group: string): Promise<void> {
    await this.ask({ kind: "renew", group });
  }

  async slice(group: string, load: Load, ms: number): Promise<SliceResult> {
    return (await this.ask({ kind: "slice", group, load, ms })) as SliceResult;
  }

  async close(group: string): Promise<void> {
    await this.ask({ kind: "close", group });
  }

  stop(): Promise<void> {
    return stopChild(this.child, () => this.child.kill("SIGTERM"), STOP_GRACE_MS);
  }

  private async ask(command: Command): Promise<SliceResult | null> {
    const answered = new Promise<Answer>((resolve) => this.child.once("message", resolve));
    this.child.send(command);
    const answer = await Promise.race([answered, this.ended]);
    if (!answer.ok) throw new Error(answer.error);
    return answer.result;
  }
}
