/**
 * Waits for a process's output; and runs a process on a terminal of its own, with a person who
 * types.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";

const RUN = fileURLToPath(new URL("on-terminal.sh", import.meta.url));

/**
 * Longer than any step takes on a busy machine; a timeout shows the output received instead.
 */
const WAIT_MS = 240_000;

/** The output of a process so far, from both streams, and a wait for more of it. */
export class Said {
  text = "";
  ended = false;
  private readonly waitMs: number;
  private wake: () => void = () => undefined;

  constructor(child: ChildProcess, waitMs = WAIT_MS) {
    this.waitMs = waitMs;
    for (const stream of [child.stdout, child.stderr]) {
      stream?.setEncoding("utf8").on("data", (text: string) => {
        this.text += text;
        this.wake();
      });
    }
    child.on("close", () => {
      this.ended = true;
      this.wake();
    });
  }

  /** Resolves to what `find` found; rejects with all output if it cannot come any more. */
  async until<Found>(find: (text: string) => Found | null, what: () => string): Promise<Found> {
    let late = false;
    const timer = setTimeout(() => {
      late = true;
      this.wake();
    }, this.waitMs);
    try {
      for (;;) {
        const found = find(this.text);
        if (found !== null) return found;
        if (this.ended || late) {
          throw new Error(`${what()} did not come. What came:\n${this.text}`);
        }
        await new Promise<void>((resolve) => {
          this.wake = resolve;
        });
      }
    } finally {
      clearTimeout(timer);
    }
  }
}

/** Needs socat. */
export class Terminal {
  readonly said: Said;
  private readonly child: ChildProcess;
  private at = 0;

  /** `command`: words without spaces, quotes, colons and commas. */
  constructor(command: readonly string[], env: Readonly<Record<string, string>>, cwd?: string) {
    const address = `EXEC:sh ${RUN} ${command.join(" ")},pty,setsid,ctty,stderr`;
    this.child = spawn("socat", ["-", address], {
      env: { ...env },
      stdio: ["pipe", "pipe", "pipe"],
      ...(cwd === undefined ? {} : { cwd }),
    });
    this.child.stdin?.on("error", () => undefined); // A command that ended does not read its input.
    this.said = new Said(this.child);
  }

  /** Waits for the next text that matches. */
  async sees(pattern: RegExp, what = String(pattern)): Promise<void> {
    this.at = await this.said.until(
      (all) => {
        const found = pattern.exec(all.slice(this.at));
        return found === null ? null : this.at + found.index + found[0].length;
      },
      () => what,
    );
  }

  type(keys: string): void {
    this.child.stdin?.write(keys);
  }

  /** The command's exit code, once it has ended. */
  async ended(): Promise<number | null> {
    if (!this.said.ended) await once(this.child, "close");
    const [, code] = /exited with status (\d+)/.exec(this.said.text) ?? [];
    return code === undefined ? null : Number(code);
  }

  kill(): void {
    this.child.kill("SIGKILL");
  }
}
