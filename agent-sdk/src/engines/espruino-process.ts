/**
 * Drives a real Espruino (its Linux build, named by ESPRUINO_BIN): each engine has its own folder,
 * in which its flash is a file, so what is written survives from process to process.
 *
 * Every process is ended by its id with SIGKILL: Espruino ignores SIGTERM.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** Bytes of a file in one upload script: a board of 2,630 variables holds the script in RAM. */
const UPLOAD_BYTES = 6000;
const CHUNK_BYTES = 300;
const MARK = "@@";
/** `tell(value)` in a script reaches `EngineProcess.told`. */
const PRELUDE = `var tell=v=>print("${MARK}"+JSON.stringify(v));\n`;

/** The engine that an environment variable names; null if there is none. */
export const findEspruino = (variable: string): string | null => {
  const path = process.env[variable];
  return path !== undefined && existsSync(path) ? path : null;
};

export class EngineProcess {
  /** All that the process printed. */
  output = "";
  private readonly child: ChildProcess;
  private readonly values: unknown[] = [];
  private waiting: (() => void)[] = [];
  private ended = false;
  private readonly gone: Promise<void>;

  constructor(binary: string, script: string, cwd: string) {
    this.child = spawn(binary, [script], { cwd, stdio: ["pipe", "pipe", "pipe"] });
    this.child.stdin?.on("error", () => {});
    let line = "";
    this.child.stdout?.setEncoding("latin1").on("data", (text: string) => {
      this.output += text;
      line += text;
      const lines = line.split("\n");
      line = lines.pop() as string;
      for (const one of lines) this.read(one);
      this.wake();
    });
    this.gone = new Promise((resolve) => {
      const end = (): void => {
        this.ended = true;
        this.wake();
        resolve();
      };
      // Not at its exit: what it printed last may not have been read by then.
      this.child.once("close", end).once("error", end);
    });
  }

  /** The next value that the script tells. Rejects with all output where the process ends first. */
  async told<T = unknown>(): Promise<T> {
    await this.until(() => this.values.length > 0);
    return this.values.shift() as T;
  }

  /** Waits for a change of the output that makes `done` true. */
  async until(done: () => boolean): Promise<void> {
    while (!done()) {
      if (this.ended) throw new Error(`Espruino ended:\n${this.output}`);
      await new Promise<void>((resolve) => this.waiting.push(resolve));
    }
  }

  get pid(): number {
    return this.child.pid as number;
  }

  /** Types a line at its console. */
  type(line: string): void {
    this.child.stdin?.write(`${line}\n`);
  }

  /** As a power cut. */
  async kill(): Promise<void> {
    // Not by its pid: it may have ended meanwhile.
    this.child.kill("SIGKILL");
    await this.gone;
  }

  private read(line: string): void {
    const at = line.indexOf(MARK);
    if (at >= 0) this.values.push(JSON.parse(line.slice(at + MARK.length)));
  }

  private wake(): void {
    const waiting = this.waiting;
    this.waiting = [];
    for (const wake of waiting) wake();
  }
}

export class Engine {
  private readonly binary: string;
  private readonly folder = mkdtempSync(join(tmpdir(), "blindrelay-espruino-"));
  private readonly processes: EngineProcess[] = [];
  private scripts = 0;

  constructor(binary: string) {
    this.binary = binary;
  }

  /** Starts a process that runs the script and goes on until `kill`. */
  start(script: string): EngineProcess {
    const name = `script-${this.scripts}.js`;
    this.scripts++;
    writeFileSync(join(this.folder, name), PRELUDE + script, "latin1");
    const process = new EngineProcess(this.binary, name, this.folder);
    this.processes.push(process);
    return process;
  }

  /** Runs a script until it tells something, and ends it. */
  async ask<T = unknown>(script: string): Promise<T> {
    const process = this.start(script);
    const value = await process.told<T>();
    await process.kill();
    return value;
  }

  /**
   * Writes a file into Storage, in as many processes as its size asks for, and reads its length
   * back.
   */
  async install(name: string, content: string): Promise<void> {
    const bytes = Buffer.from(content, "latin1");
    for (let from = 0; from < bytes.length; from += UPLOAD_BYTES) {
      let script = "";
      const to = Math.min(bytes.length, from + UPLOAD_BYTES);
      for (let at = from; at < to; at += CHUNK_BYTES) {
        const chunk = bytes.subarray(at, Math.min(to, at + CHUNK_BYTES)).toString("base64");
        script += `require("Storage").write("${name}",atob("${chunk}"),${at},${bytes.length});\n`;
      }
      await this.ask(`${script}tell(1);`);
    }
    const length = await this.ask(`tell(require("Storage").read("${name}").length);`);
    if (length !== bytes.length) throw new Error(`${name}: ${length} of ${bytes.length} bytes`);
  }

  /** Ends what still runs, and forgets the flash. */
  async close(): Promise<void> {
    for (const process of this.processes) await process.kill();
    rmSync(this.folder, { recursive: true, force: true });
  }
}
