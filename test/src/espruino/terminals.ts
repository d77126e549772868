/** Two terminals joined by a cable: one is a board's UART, the other a bridge's port. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

export class Terminals {
  private readonly folder = mkdtempSync(join(tmpdir(), "blindrelay-uart-"));
  readonly board = join(this.folder, "board");
  readonly bridge = join(this.folder, "bridge");
  private readonly socat: ChildProcess;

  constructor() {
    const ends = [this.board, this.bridge].map((path) => `PTY,link=${path},raw,echo=0`);
    this.socat = spawn("socat", ends, { stdio: "ignore" });
  }

  /** Resolves when both exist. */
  async ready(): Promise<void> {
    while (!existsSync(this.board) || !existsSync(this.bridge)) {
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
  }

  async end(): Promise<void> {
    const over = once(this.socat, "exit");
    this.socat.kill("SIGKILL");
    await over;
    rmSync(this.folder, { recursive: true, force: true });
  }
}
