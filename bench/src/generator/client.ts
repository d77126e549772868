/** The benchmark's interface to the generator's process: one command at a time, in order. */
import { type ChildProcess, spawn } from "node:child_process";
import { fileURLToPath } from "node:url";
import { stopChild, watch, whenEnded } from "@blindrelay/simulator/testing";
import type { Answer, Command, SliceCommand, SliceResult } from "./messages.ts";

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

  stop(): Promise<void> {
    return stopChild(this.child, () => this.child.kill("SIGTERM"), STOP_GRACE_MS);
  }

  /** Has a command done. */
  async ask(command: SliceCommand): Promise<SliceResult>;
  async ask(command: Command): Promise<SliceResult | null>;
  async ask(command: Command): Promise<SliceResult | null> {
    const answered = new Promise<Answer>((resolve) => this.child.once("message", resolve));
    this.child.send(command);
    const answer = await Promise.race([answered, this.ended]);
    if (!answer.ok) throw new Error(answer.error);
    return answer.result;
  }
}
