/** A chip that serves: sealed calls of many clients through the real relay and the real bridge. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { budgets } from "./budgets.ts";
import { type Caller, ChipHouse, readFigures, whySkipped, withoutChip } from "./house.ts";
import { leakOf, serve } from "./serve.ts";

const CLIENTS = 32;
const CALLS = 300;
const LEAK_BYTES = 64;
const LEAKS = 20;

describe.skipIf(withoutChip)(`calls to a chip with 128 KB${whySkipped}`, () => {
  const house = new ChipHouse();
  beforeAll(async () => {
    await house.open(await house.folder.image("agent"));
  });
  afterAll(() => house.close());

  const callers: Caller[] = [];

  it(`answers ${CALLS} calls by ${CLIENTS} clients within its budgets, and keeps nothing of them`, async () => {
    const { before, all, after } = await serve(house, callers, CLIENTS, CALLS);
    console.log(`chip: ${JSON.stringify({ before, all, after })}`);
    expect(after.heap).toBeLessThanOrEqual(budgets.heapBusy);
    expect(after.cStack).toBeLessThanOrEqual(budgets.cStack);
    expect(after.jsStack).toBeLessThanOrEqual(budgets.jsStack);
    expect(after.aliases).toBe(0);
    expect(leakOf(all, after, CALLS)).toBeLessThan(LEAK_BYTES / 4);

    const first = callers[0] as Caller;
    for (let n = 0; n < LEAKS; n++) await first("leak", { bytes: LEAK_BYTES });
    expect(leakOf(after, await readFigures(first), LEAKS)).toBeGreaterThan(LEAK_BYTES / 4);
  });

  it("answers with nearly as much as a packet may hold", async () => {
    const params = { text: "x".repeat(1900) };
    await expect((callers[0] as Caller)("echo", params)).resolves.toEqual(params);
  });
});
