/** The chip by itself: every vector, its read-only memory, its flash under power cuts. */
import { createHash } from "node:crypto";
import { readFileSync, statSync, writeFileSync } from "node:fs";
import type { XsModules } from "@blindrelay/agent-sdk/testing/build/xs";
import { CHIP_EXIT } from "@blindrelay/agent-sdk/testing/chip/chip";
import { VECTOR_FILE_NAMES } from "@blindrelay/protocol/testing";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { budgets, near } from "./budgets.ts";
import { CutLives } from "./cut-lives.ts";
import { ChipFolder, chip, whySkipped, withoutChip } from "./house.ts";

const WORD_CUTS = 150;
/** Each starts an emulator. */
const SIGNAL_CUTS = 50;
/**
 * The same code costs the same each time. Any other name in it moves XS's table of names, and so
 * what every access by a name costs.
 */
const OTHER_CODE = 0.12;

interface Said {
  readonly field?: string;
  readonly failures?: string[];
  readonly instructions?: number;
  readonly aliases?: number;
}

const lines = (output: string): unknown[] =>
  output
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line));

describe.skipIf(withoutChip)(`a chip with 128 KB${whySkipped}`, () => {
  const folder = new ChipFolder();
  afterAll(() => folder.close());

  it("agrees with every vector, in as many instructions as budgeted", async () => {
    const image = await folder.image("vectors");
    const boot = await folder.boot({ image, module: "vectors", counting: true });
    const { code, output } = await boot.ended;
    expect(code, output).toBe(0);
    const said = lines(output) as Said[];
    expect(said.flatMap(({ field }) => field ?? [])).toEqual(Object.keys(VECTOR_FILE_NAMES));
    expect(said.flatMap(({ failures }) => failures ?? [])).toEqual([]);
    expect(said.at(-1)?.aliases).toBe(0);
    console.log(`chip: ${output}`);
    if (chip.tools === budgets.tools) {
      const measured = Object.fromEntries(
        said.flatMap(({ field, instructions }) => (field ? [[field, instructions as number]] : [])),
      );
      const of = createHash("sha256").update(readFileSync(image)).digest("hex").slice(0, 16);
      const share = of === budgets.vectorsOf ? 0 : OTHER_CODE;
      const off = Object.entries(measured).filter(
        ([field, value]) => !near(budgets.vectors[field] ?? 0, share)(value),
      );
      const counted = JSON.stringify({ vectorsOf: of, vectors: measured });
      if (share > 0) console.log(`chip: not compared exactly; for budgets.json: ${counted}`);
      expect(off, counted).toEqual([]);
    }
  });

  it("bakes an image within its budget", async () => {
    expect(statSync(await folder.image("agent")).size).toBeLessThanOrEqual(budgets.image);
  });

  it("refuses the image of another build", async () => {
    const image = await folder.image("cuts");
    const bytes = readFileSync(image);
    const id = 8;
    bytes[id] = (bytes[id] as number) ^ 1;
    writeFileSync(image, bytes);
    const { code, output } = await (await folder.boot({ image, module: "cuts" })).ended;
    expect([code, output]).toEqual([
      CHIP_EXIT.wrongImage,
      expect.stringContaining("another build"),
    ]);
  });

  it.each([
    ["an object of the core", "{n:0}", "planted.n++", 0],
    ["bytes of the core", "new Uint8Array(4)", "planted[0]++", CHIP_EXIT.fault],
  ])("notices a write to %s", async (_what, value, write, exit) => {
    const change = ({ core, ...others }: XsModules): XsModules => {
      const changed = core.replace("var crc32=bytes=>{", `var planted=${value};$&${write};`);
      expect(changed).not.toBe(core);
      return { ...others, core: changed };
    };
    const image = await folder.image("cuts", { change });
    const { code, output } = await new CutLives(folder, image, "planted").provision();
    expect(code, output).toBe(exit);
    expect(output).toContain(exit === 0 ? "aliases 1" : "fault at 0x21");
  });

  describe("its flash", () => {
    let image: string;
    beforeAll(async () => {
      image = await folder.image("cuts");
    });

    it(`keeps boot counts and a setting over ${WORD_CUTS} power cuts, each at a chosen word`, async () => {
      const lives = new CutLives(folder, image, "words");
      expect(await lives.provision()).toEqual({ code: 0, output: "aliases 0\n" });
      // A start takes some 100 words, each setting 5, and a sector holds 512.
      const cuts = Array.from({ length: WORD_CUTS }, (_, n) => 1 + ((n * 37) % 331));
      const { code, output } = await lives.run({ cuts });
      expect(code, output.slice(-500)).toBe(CHIP_EXIT.powerCut);
      // The others were cut before they were through with their boot count.
      expect(lives.check(output)).toBeGreaterThan(WORD_CUTS / 5);
    });

    it(`and over ${SIGNAL_CUTS} at any time`, async () => {
      const lives = new CutLives(folder, image, "signals");
      await lives.provision();
      for (let n = 0; n < SIGNAL_CUTS; n++) lives.check(await lives.killed(n % 20));
      expect(lives.starts).toBeGreaterThan(SIGNAL_CUTS * 0.8);
    });
  });
});
