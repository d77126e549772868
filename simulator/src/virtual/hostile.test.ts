import { expect, test } from "vitest";
import { Stream } from "../base/random-streams.ts";
import { Records } from "./hostile.ts";

test("of a long run, old packets and new ones are remembered, of each peer its own", () => {
  const records = new Records((id) => new Stream(id));
  for (let seq = 0; seq < 1000; seq++) {
    records.add("a", `{"v":"1","sid":"x","seq":${seq}}`);
    records.add("a", '{"type":"ping"}');
  }
  const kept = records.of("a").map((text) => Number(/"seq":(\d+)/.exec(text)?.[1]));
  expect(kept).toHaveLength(64);
  expect(kept.some((seq) => seq < 250)).toBe(true);
  expect(kept.some((seq) => seq >= 750)).toBe(true);
  expect(records.of("b")).toEqual([]);
});
