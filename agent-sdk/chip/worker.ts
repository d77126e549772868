/**
 * A boot of the chip that runs js/attacked.ts, commanded over its UART. Everything but the end is
 * synchronous, over named pipes: so an agent on the chip can stand wherever one in this process
 * can, also under a virtual clock.
 */
import { type ChildProcess, spawn } from "node:child_process";
import {
  closeSync,
  mkdtempSync,
  openSync,
  readFileSync,
  readSync,
  rmSync,
  writeSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { makePipe } from "../src/engines/pipe.ts";
import { bootArguments, type Chip, imageArguments } from "./build.ts";

export interface ChipWorkerOptions {
  readonly chip: Chip;
  readonly image: string;
  readonly flash: string;
  /** After so many words written to the flash the power fails; 0: never. */
  readonly cut?: number;
  /** Instructions are counted, and are the same in each run. */
  readonly counting?: boolean;
  /** What the chip says of its own while a command runs. */
  readonly heard: (kind: string, body: string) => void;
}

const COLON = 58;
const CHUNK_BYTES = 65536;

export class ChipWorker {
  private readonly options: ChipWorkerOptions;
  private readonly folder = mkdtempSync(join(tmpdir(), "blindrelay-chip-"));
  private readonly child: ChildProcess;
  private readonly input: number;
  private readonly output: number;
  private readonly ended: Promise<void>;
  private received: Buffer = Buffer.alloc(0);
  private over = false;

  constructor(options: ChipWorkerOptions) {
    this.options = options;
    const { chip, image, flash, cut = 0, counting = false } = options;
    const input = makePipe(join(this.folder, "in"), true);
    const output = makePipe(join(this.folder, "out"), false);
    const printed = openSync(join(this.folder, "printed"), "w");
    this.input = input.ours;
    this.output = output.ours;
    this.child = spawn(
      "qemu-system-arm",
      [
        ...bootArguments(chip, ["run", "attacked", flash, `${cut}`]),
        ...imageArguments(image),
        ...["-serial", "stdio", ...(counting ? ["-icount", "shift=0"] : [])],
      ],
      { stdio: [input.child, output.child, printed] },
    );
    for (const descriptor of [input.child, output.child, printed]) closeSync(descriptor);
    this.ended = new Promise((resolve) => {
      this.child.once("error", () => resolve());
      this.child.once("close", () => resolve());
    });
  }

  /**
   * Runs a command at this time, with all that it leaves to do at once; when the next timer is due,
   * or -1. Throws what the command throws, and if the chip has ended, with what it printed.
   */
  command(kind: string, now: number, body = ""): number {
    const text = Buffer.from(`${kind} ${now} ${body}`);
    const bytes = Buffer.concat([Buffer.from(`${text.length}:`), text, Buffer.of(0)]);
    for (let at = 0; at < bytes.length; ) at += writeSync(this.input, bytes, at);
    for (;;) {
      const [what, rest] = this.read();
      if (what !== "done") {
        this.options.heard(what, rest);
        continue;
      }
      const space = rest.indexOf(" ");
      const problem = rest.slice(space + 1);
      if (problem !== "") throw new Error(problem);
      return Number(rest.slice(0, space));
    }
  }

  /** Pulls the plug. May be repeated. */
  async end(): Promise<void> {
    if (!this.over) {
      this.over = true;
      this.child.kill("SIGKILL");
      closeSync(this.input);
      closeSync(this.output);
    }
    await this.ended;
    rmSync(this.folder, { recursive: true, force: true });
  }

  private read(): [kind: string, body: string] {
    for (;;) {
      const colon = this.received.indexOf(COLON);
      const end = colon < 0 ? 0 : colon + 1 + Number(this.received.toString("latin1", 0, colon));
      if (colon >= 0 && this.received.length >= end) {
        const text = this.received.toString("utf8", colon + 1, end);
        this.received = this.received.subarray(end);
        const space = text.indexOf(" ");
        return [text.slice(0, space), text.slice(space + 1)];
      }
      const chunk = Buffer.allocUnsafe(CHUNK_BYTES);
      const length = readSync(this.output, chunk);
      if (length === 0) {
        const printed = readFileSync(join(this.folder, "printed"), "utf8");
        throw new Error(`the chip has ended: ${printed}`);
      }
      this.received = Buffer.concat([this.received, chunk.subarray(0, length)]);
    }
  }
}
