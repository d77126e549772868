/**
 * One boot of the chip: QEMU's board mps2-an385 with the chip's program, an image, a file as its
 * flash, and its UART as a socket of this process.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { type AddressInfo, createServer, type Server, type Socket } from "node:net";
import type { DeviceOptions } from "../src/core/start-options.ts";
import { bootArguments, type Chip, imageArguments } from "./build.ts";

/** The argument of js/agent.ts. */
export interface ChipStart
  extends Pick<
    DeviceOptions,
    "agentId" | "relayToken" | "agentToken" | "limits" | "maxNesting" | "packetVersion"
  > {
  readonly maxPlaintext: number;
  /** Takes programs over the relay; its watchdog bites after so long. */
  readonly pushes?: { readonly watchdogMs: number };
  /** Writes the first boot count, if there is none. */
  readonly provision?: boolean;
  /** Prints the whole log. */
  readonly verbose?: boolean;
}

export interface ChipOptions {
  readonly chip: Chip;
  readonly image: string;
  readonly flash: string;
  /** The module to import. */
  readonly module: string;
  readonly argument?: string;
  /**
   * After so many words written to the flash the power fails, in the first life, the second, and so
   * on, and comes back at once but for the last. Absent: never.
   */
  readonly cuts?: readonly number[];
  /** Time counts instructions: a run without anything from outside is the same each time. */
  readonly counting?: boolean;
}

/** How a boot ended, and what it printed. */
export interface ChipEnd {
  readonly code: number | string;
  readonly output: string;
}

/** Exit codes of the host: host/chip.h. */
export const CHIP_EXIT = { wrongImage: 3, uncaught: 4, powerCut: 5, fault: 6 } as const;

/** What `chip.figure` gives, in its order; bytes but for instructions and aliases. */
export interface ChipFigures {
  /** Without those of waiting. */
  readonly instructions: number;
  /** Taken of the heap at most. */
  readonly heap: number;
  /** In use after a collection. */
  readonly live: number;
  readonly cStack: number;
  readonly jsStack: number;
  /** Objects of the baked machine that were written, each of which has a copy in RAM since. */
  readonly aliases: number;
}

const FIGURES = ["instructions", "heap", "live", "cStack", "jsStack", "aliases"] as const;

export const figuresOf = (values: readonly number[]): ChipFigures =>
  Object.fromEntries(FIGURES.map((name, i) => [name, values[i]])) as unknown as ChipFigures;

export class ChipBoot {
  readonly ended: Promise<ChipEnd>;
  output = "";
  private readonly child: ChildProcess;
  private readonly connected: Promise<Socket>;

  private constructor(server: Server, child: ChildProcess) {
    this.child = child;
    this.connected = once(server, "connection").then(([socket]) => {
      const line = socket as Socket;
      line.setNoDelay(true).on("error", () => undefined);
      return line;
    });
    for (const stream of [child.stdout, child.stderr]) {
      stream?.setEncoding("utf8").on("data", (text) => {
        this.output += text;
      });
    }
    this.ended = new Promise((resolve) => {
      child.once("error", () => resolve({ code: "not started", output: this.output }));
      child.once("close", (code, signal) => {
        server.close();
        resolve({ code: code ?? signal ?? "gone", output: this.output });
      });
    });
  }

  static async start(options: ChipOptions): Promise<ChipBoot> {
    const { chip, image, flash, module, argument = "", cuts = [0], counting = false } = options;
    const server = createServer();
    await once(server.listen(0, "127.0.0.1"), "listening");
    const { port } = server.address() as AddressInfo;
    const words = ["run", module, flash, cuts.join(), ...(argument === "" ? [] : [argument])];
    const child = spawn(
      "qemu-system-arm",
      [
        ...bootArguments(chip, words),
        ...imageArguments(image),
        ...["-serial", `tcp:127.0.0.1:${port}`],
        ...(counting ? ["-icount", "shift=0"] : []),
      ],
      { stdio: ["ignore", "pipe", "pipe"] },
    );
    return new ChipBoot(server, child);
  }

  /** The far end of the UART. */
  line(): Promise<Socket> {
    return this.connected;
  }

  /** Waits for a line of output that matches. Throws if the boot ends first. */
  async printed(pattern: RegExp): Promise<RegExpExecArray> {
    let over = false;
    void this.ended.then(() => {
      over = true;
    });
    for (;;) {
      const found = pattern.exec(this.output);
      if (found !== null) return found;
      if (over) throw new Error(`the chip has ended: ${this.output}`);
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
  }

  /** Pulls the plug. */
  async end(): Promise<ChipEnd> {
    this.child.kill("SIGKILL");
    return this.ended;
  }
}
