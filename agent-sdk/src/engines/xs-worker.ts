/**
 * Talks to one process of the XS engine (xsnap's worker): netstrings to its descriptor 3, from its
 * descriptor 4. A message's first byte says what it is: `e` evaluate, `?` command (either way), `/`
 * answer to the engine's command, `.` done, `!` thrown, `w` write a snapshot.
 *
 * Everything but the end is synchronous, over named pipes: so an agent in XS can stand wherever one
 * in this process can, also under a virtual clock. Always give a computation limit, or an endless
 * loop in the script is an endless loop here.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { closeSync, mkdtempSync, readSync, rmSync, writeSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { makePipe } from "./pipe.ts";

/** What one crank (a command with all promise jobs it leaves) cost. */
export interface Meter {
  /** Steps of the interpreter. */
  readonly compute: number;
  /** Slots in use, garbage included. */
  readonly currentHeapCount: number;
}

interface Crank {
  readonly reply: Buffer;
  readonly meter: Meter;
}

interface XsWorkerOptions {
  /** Of findXsEngine. */
  readonly engine: string;
  /** Steps that one crank may take; over it the engine ends with XS_TOO_MUCH_COMPUTATION. */
  readonly maxCompute: number;
  /**
   * Of data (heap and anonymous mappings), for the whole process; Linux holds it to that; over it
   * the engine ends with XS_NOT_ENOUGH_MEMORY.
   */
  readonly maxMemoryKiB?: number;
  /** Answers `issueCommand` of the script; the script waits meanwhile. */
  readonly answer?: (command: Buffer) => Uint8Array;
}

/** Exit codes of the engine. */
export const XS_NOT_ENOUGH_MEMORY = 11;
export const XS_TOO_MUCH_COMPUTATION = 17;

const METER_END = 1;
const CHUNK_BYTES = 65536;

export class XsWorker {
  /** How the process ended: its exit code, or the signal's name. */
  readonly ended: Promise<number | string>;
  private readonly child: ChildProcess;
  private readonly input: number;
  private readonly output: number;
  private readonly answer: (command: Buffer) => Uint8Array;
  private received = Buffer.alloc(0);
  private closed = false;

  constructor(options: XsWorkerOptions) {
    this.answer = options.answer ?? (() => new Uint8Array(0));
    const folder = mkdtempSync(join(tmpdir(), "blindrelay-xs-"));
    const input = makePipe(join(folder, "in"), true);
    const output = makePipe(join(folder, "out"), false);
    rmSync(folder, { recursive: true });
    this.input = input.ours;
    this.output = output.ours;
    const engine = [options.engine, "xs", "-l", String(options.maxCompute)];
    const limited =
      options.maxMemoryKiB === undefined
        ? engine
        : ["/bin/sh", "-c", 'ulimit -d "$0" && exec "$@"', String(options.maxMemoryKiB), ...engine];
    this.child = spawn(limited[0] as string, limited.slice(1), {
      stdio: ["ignore", "ignore", "inherit", input.child, output.child],
    });
    closeSync(input.child);
    closeSync(output.child);
    this.ended = new Promise((resolve) => {
      this.child.once("error", () => resolve("not started"));
      this.child.once("exit", (code, signal) => resolve(code ?? signal ?? "gone"));
    });
  }

  get pid(): number {
    return this.child.pid as number;
  }

  /** Runs a script and its promise jobs. Throws what it throws, and where the engine ends. */
  evaluate(code: string): Crank {
    return this.crank("e", Buffer.from(code));
  }

  /** Calls the script's `handleCommand` with an ArrayBuffer. Throws likewise. */
  command(message: Uint8Array): Crank {
    return this.crank("?", message);
  }

  /** Collects garbage and writes the whole heap to a file. */
  snapshot(path: string): Crank {
    return this.crank("w", Buffer.from(path));
  }

  /** Ends the process. May be repeated. */
  async close(): Promise<void> {
    if (!this.closed) {
      this.closed = true;
      this.child.kill("SIGKILL");
      closeSync(this.input);
      closeSync(this.output);
    }
    await this.ended;
  }

  private crank(kind: string, body: Uint8Array): Crank {
    this.write(kind, body);
    for (;;) {
      const message = this.read();
      const what = String.fromCharCode(message[0] as number);
      if (what === "?") {
        this.write("/", this.answer(message.subarray(1)));
        continue;
      }
      if (what === "!") throw new Error(`XS: ${message.subarray(1).toString()}`);
      const split = message.indexOf(METER_END);
      const meter = JSON.parse(message.toString("latin1", 1, split)) as Meter;
      return { reply: message.subarray(split + 1), meter };
    }
  }

  private write(kind: string, body: Uint8Array): void {
    const head = Buffer.from(`${body.length + 1}:${kind}`);
    const bytes = Buffer.concat([head, body, Buffer.from(",")]);
    for (let at = 0; at < bytes.length; ) at += writeSync(this.input, bytes, at);
  }

  /** The next message; what was received lies in one buffer that is never written again. */
  private read(): Buffer {
    for (;;) {
      const colon = this.received.indexOf(":");
      const end = colon < 0 ? 0 : colon + 1 + Number(this.received.toString("latin1", 0, colon));
      if (colon >= 0 && this.received.length > end) {
        const message = this.received.subarray(colon + 1, end);
        this.received = this.received.subarray(end + 1);
        return message;
      }
      const chunk = Buffer.allocUnsafe(CHUNK_BYTES);
      const length = readSync(this.output, chunk);
      if (length === 0) throw new Error("XS has ended");
      this.received = Buffer.concat([this.received, chunk.subarray(0, length)]);
    }
  }
}
