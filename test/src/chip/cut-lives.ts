/** Lives of one device whose power is cut (agent-sdk/chip/js/cuts.ts), and what they must keep. */
import type { ChipBoot, ChipEnd } from "@blindrelay/agent-sdk/testing/chip/chip";
import { makeToken } from "@blindrelay/protocol";
import type { ChipFolder } from "./house.ts";

const TOKENS = `${makeToken("e2e", new Uint8Array(32).fill(5))} ${makeToken("agent", new Uint8Array(32))}`;

/** Printed by the chip. */
export const POWER_FAILS = "chip: the power fails";

export class CutLives {
  /** Starts that were checked. */
  starts = 0;
  private readonly folder: ChipFolder;
  private readonly image: string;
  private readonly flash: string;
  private count = 0;
  private setting = 0;

  constructor(folder: ChipFolder, image: string, name: string) {
    this.folder = folder;
    this.image = image;
    this.flash = folder.path(name);
  }

  private boot(more: { cuts?: readonly number[]; argument?: string }): Promise<ChipBoot> {
    const { image, flash } = this;
    return this.folder.boot({ image, flash, module: "cuts", argument: TOKENS, ...more });
  }

  async provision(): Promise<ChipEnd> {
    return (await this.boot({ argument: `${TOKENS} new` })).ended;
  }

  async run(more: { cuts: readonly number[] }): Promise<ChipEnd> {
    return (await this.boot(more)).ended;
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
