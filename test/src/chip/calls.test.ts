/** A chip that serves: sealed calls of many clients through the real relay and the real bridge. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { ChipHouse, readFigures, whySkipped, withoutChip } from "./house.ts";

const CLIENTS = 32;
const CALLS = 300;

describe.skipIf(withoutChip)(`calls to a chip with 128 KB${whySkipped}`, () => {
  const house = new ChipHouse();
  beforeAll(async () => {
    await house.open(await house.folder.image("agent"));
  });
  afterAll(() => house.close());

  it(`answers ${CALLS} calls by ${CLIENTS} clients, and keeps nothing of them`, async () => {
    const callers = [await house.caller()];
    const first = callers[0] as (typeof callers)[number];
    expect(await first("echo", { n: 1 })).toEqual({ n: 1 });
    const one = await readFigures(first);
    while (callers.length < CLIENTS) {
      const caller = await house.caller();
      callers.push(caller);
      expect(await caller("echo", { n: callers.length })).toEqual({ n: callers.length });
    }
    const before = await readFigures(first);
    for (let n = 0; n < CALLS; ) {
      const round = callers.slice(0, CALLS - n);
      const sent = round.map((_, i) => ({ n: n + i, text: "x".repeat(200) }));
      expect(await Promise.all(round.map((call, i) => call("echo", sent[i])))).toEqual(sent);
      n += round.length;
    }
    const after = await readFigures(first);
    console.log(`chip: ${JSON.stringify({ one, before, after })}`);
  });
});
