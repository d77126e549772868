/** What a relay or a client sends cannot end the agent on a chip with a C stack of 8 KB. */
import { SMALL_MAX_NESTING } from "@blindrelay/agent-sdk/embedded";
import { asciiBytes } from "@blindrelay/protocol/crypto";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { budgets } from "./budgets.ts";
import { FuzzedChip, fuzzChip } from "./fuzz.ts";
import { ChipFolder, whySkipped, withoutChip } from "./house.ts";

const SECONDS = 10;
const SEED = 1;
/** More than 8 KB of C stack hold, and as many values as a call may have. */
const DEEP = "[".repeat(250);
/** Takes 100 KB of its heap, in a message that is no longer than others. */
const MANY = `[${Array(1500).fill("[]").join()}]`;
/** XS's fxAbort for a stack that overflows. */
const STACK_OVERFLOW = 22;

describe.skipIf(withoutChip)(`an attacked chip${whySkipped}`, () => {
  const folder = new ChipFolder();
  let image: string;
  beforeAll(async () => {
    image = await folder.image("agent");
  });
  afterAll(() => folder.close());

  it("survives messages at random, answers sealed calls, and keeps nothing", async () => {
    const chip = await FuzzedChip.start(folder, image);
    const found = await fuzzChip(chip, SEED, SECONDS);
    console.log(`chip: ${JSON.stringify(found)}`);
    expect(found.last.cStack).toBeLessThanOrEqual(budgets.cStackAttacked);
  });

  it("survives deep nesting and many values", async () => {
    const bounded = await FuzzedChip.start(folder, image);
    await bounded.alive();
    bounded.say(DEEP);
    bounded.say(MANY);
    for (const payload of [DEEP, MANY]) bounded.say(JSON.stringify({ type: "relay", payload }));
    await bounded.figures();
    // Returned as deep as it may come, within an object of the answer's own.
    const most = "[".repeat(SMALL_MAX_NESTING - 1) + "]".repeat(SMALL_MAX_NESTING - 1);
    bounded.seal(asciiBytes(`{"jsonrpc":"2.0","id":1,"method":"wrap","params":${most}}`));
    expect((await bounded.figures()).cStack).toBeLessThanOrEqual(budgets.cStackAttacked);
  });

  it("would end at deep nesting without the bound", async () => {
    const unbounded = await FuzzedChip.start(folder, image, { maxNesting: 1000 });
    await unbounded.figures();
    unbounded.seal(asciiBytes(DEEP));
    const { code, output } = await unbounded.boot.ended;
    expect([code, output]).toEqual([STACK_OVERFLOW, expect.stringContaining("C stack overflow")]);
  });
});
