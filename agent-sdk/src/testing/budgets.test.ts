import { expect, it } from "vitest";
import {
  espruinoFile,
  espruinoTimes,
  espruinoVariables,
  type Figure,
  suiteRatio,
} from "./budgets.ts";
import type { EspruinoSizes } from "./espruino-sizes.ts";

const { limit } = espruinoFile("2", 1);

const sizes = (given: Partial<EspruinoSizes>): EspruinoSizes => ({
  ...{ empty: 100, loaded: 700, online: 1200, twoSessions: 1300, peak: 1800 },
  msPerCall: { 64: 1, 256: 1, 1024: 1 },
  ...given,
});

const verdicts = (figures: readonly Figure[]) => figures.map(({ verdict }) => verdict);

it("a size is over its limit, within it, or so far within it that the limit is too loose", () => {
  expect(espruinoFile("2", limit + 1).verdict).toBe("over");
  expect(espruinoFile("2", limit).verdict).toBe("ok");
  expect(espruinoFile("2", limit / 2 - 1).verdict).toBe("slack");
});

it("each figure is compared with its own limit", () => {
  expect(verdicts(espruinoVariables(sizes({ twoSessions: 9999 }), 32))).toEqual([
    ...["ok", "ok", "over", "ok"],
  ]);
});

it("no time is too short", () => {
  expect(verdicts(espruinoTimes(sizes({})))).toEqual(["ok", "ok", "ok"]);
  expect(verdicts(espruinoTimes(sizes({ msPerCall: { 64: 1, 256: 1e6, 1024: 1 } })))).toEqual([
    ...["ok", "over", "ok"],
  ]);
});

it("a missing measurement does not count as within its limit", () => {
  expect(espruinoFile("2", Number.NaN).verdict).toBe("over");
  expect(verdicts(espruinoTimes(sizes({ msPerCall: {} })))).toEqual(["over", "over", "over"]);
});

it("a ratio has a lower limit", () => {
  const two = sizes({});
  const one = (ms: number) => sizes({ msPerCall: { 256: ms } });
  expect(suiteRatio(one(5), two).verdict).toBe("ok");
  expect(suiteRatio(one(4.9), two).verdict).toBe("under");
  expect(suiteRatio(sizes({ msPerCall: {} }), two).verdict).toBe("under");
});
