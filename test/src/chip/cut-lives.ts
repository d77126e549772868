/**
 * Lives of one device whose power is cut (agent-sdk/chip/js/cuts.ts and push-cuts.ts), and what
 * they must keep.
 */
import type { ChipBoot, ChipEnd } from "@blindrelay/agent-sdk/testing/chip/chip";
import { makeToken } from "@blindrelay/protocol";
import type { ChipFolder } from "./house.ts";

const TOKENS = `${makeToken("e2e", new Uint8Array(32).fill(5))} ${makeToken("agent", new Uint8Array(32))}`;

/** Printed by the chip. */
export const POWER_FAILS = "chip: the power fails";

class Lives {
  private readonly folder: ChipFolder;
  private readonly module: string;
  private readonly image: string;
  private readonly flash: string;

  /** `image`: of the module. */
  constructor(folder: ChipFolder, module: string, image: string, name: string) {
    this.folder = folder;
    this.module = module;
    this.image = image;
    this.flash = folder.path(name);
  }

  protected boot(more: { cuts?: readonly number[]; argument?: string }): Promise<ChipBoot> {
    const { module, image, flash } = this;
    return this.folder.boot({ image, flash, module, argument: TOKENS, ...more });
  }

  async provision(): Promise<ChipEnd> {
    return (await this.boot({ argument: `${TOKENS} new` })).ended;
  }

  async run(more: { cuts: readonly number[] }): Promise<ChipEnd> {
    return (await this.boot(more)).ended;
  }
}

export class CutLives extends Lives {
  /** Starts that were checked. */
  starts = 0;
  private count = 0;
  private setting = 0;

  constructor(folder: ChipFolder, image: string, name: string) {
    super(folder, "cuts", image, name);
  }

  /** What a life printed that ended after as many settings; 0: soon after its start. */
  async killed(settings: number): Promise<string> {
    const boot = await this.boot({});
    if (settings === 0) await boot.line();
    else await boot.printed(new RegExp(`(wrote .*\\n){${settings}}`));
    return (await boot.end()).output;
  }

  /** Throws for a count that was there before, or a setting that nobody wrote. Returns starts. */
  check(output: string): number {
    for (const line of output.split("\n").slice(0, -1)) {
      if (line === POWER_FAILS) continue;
      const wrote = /^wrote (\d+)$/.exec(line);
      if (wrote !== null) {
        this.setting = Number(wrote[1]);
        continue;
      }
      const [, count, setting, other] = /^count (\d+) setting (\d+) other (\w+)$/.exec(line) ?? [];
      // The one being written may be there or not.
      const later = Number(setting) - this.setting;
      if (!(Number(count) > this.count) || !(later === 0 || later === 1) || other !== "kept") {
        throw new Error(`after count ${this.count} and setting ${this.setting}: ${line}`);
      }
      this.count = Number(count);
      this.setting = Number(setting);
      this.starts++;
    }
    return this.starts;
  }
}

/** Programs that are pushed meanwhile. */
export class PushLives extends Lives {
  /** By what the last words before a cut were about. */
  readonly cuts: { [step: string]: number } = {};
  /** Programs that were kept. */
  kept = 0;

  constructor(folder: ChipFolder, image: string) {
    super(folder, "push-cuts", image, "pushes");
  }

  /**
   * Throws for a start that runs anything but the program that is good, one on its first trial, or
   * one that was being confirmed; and for a mixture of two.
   */
  check(output: string): void {
    let good = 0;
    let pushed = 0;
    let step = "starts";
    /** What may be next, beside the good one. */
    let [mayTry, mayBeKept] = [false, false];
    for (const line of output.trim().split("\n")) {
      const [, numbers = "", how] = /^runs ([\d,]+) (as kept|on trial)$/.exec(line) ?? [];
      if (line === POWER_FAILS) this.cuts[step] = (this.cuts[step] ?? 0) + 1;
      else if (line.startsWith("pushes ")) pushed = Number(line.slice("pushes ".length));
      else if (line === "starts") mayTry = true;
      else if (line === "confirms") mayBeKept = true;
      else if (line === "kept") {
        good = pushed;
        this.kept++;
      } else {
        const [n = 0, ...others] = numbers.split(",").map(Number);
        const may =
          how === "on trial" ? mayTry && n === pushed : n === good || (mayBeKept && n === pushed);
        if (how === undefined || !may || others.some((other) => other !== n))
          throw new Error(`with ${good} as the good program, and ${pushed} pushed: ${line}`);
        if (how === "as kept") good = n;
        [mayTry, mayBeKept] = [false, false];
      }
      step = line === POWER_FAILS ? "starts" : (line.split(" ")[0] as string);
    }
  }
}
