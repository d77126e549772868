/** Compares the Espruino build with its budgets, and prints what it costs. */
import { describe, expect, it } from "vitest";
import { findEspruino } from "../engines/espruino-process.ts";
import { espruinoVariables, type Figure, suiteRatio } from "./budgets.ts";
import { measureEspruino } from "./espruino-sizes.ts";

const roomy = findEspruino("ESPRUINO_BIN");
const SMALL = [
  { variable: "ESPRUINO_BIN_2630", bits: 64 },
  { variable: "ESPRUINO_BIN_32", bits: 32 },
] as const;
const why = (path: string | null, variable: string): string =>
  path === null ? ` (skipped: ${variable} names no Espruino)` : "";

const beyond = (figures: readonly Figure[]): Figure[] =>
  figures.filter(({ verdict }) => verdict !== "ok");

describe("on a real Espruino", { timeout: 120_000 }, () => {
  for (const { variable, bits } of SMALL) {
    const small = findEspruino(variable);
    it.skipIf(small === null)(
      `2,630 variables of ${bits} bits hold an agent, two sessions and a call of 256 bytes${why(small, variable)}`,
      async () => {
        const sizes = await measureEspruino(small as string, "2", 10);
        console.log(`Espruino, 2,630 variables of ${bits} bits: ${JSON.stringify(sizes)}`);
        expect(beyond(espruinoVariables(sizes, bits))).toEqual([]);
      },
    );
  }

  it.skipIf(roomy === null)(
    `suite "2" is at least five times as fast as suite "1"${why(roomy, "ESPRUINO_BIN")}`,
    async () => {
      const one = await measureEspruino(roomy as string, "1", 3);
      const two = await measureEspruino(roomy as string, "2", 10);
      console.log(`Espruino, suite 1: ${JSON.stringify(one)}, suite 2: ${JSON.stringify(two)}`);
      expect(beyond([suiteRatio(one, two)])).toEqual([]);
    },
  );
});
