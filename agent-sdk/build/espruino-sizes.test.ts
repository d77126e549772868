/** Holds the Espruino build to its budgets, and prints what it costs. */
import { existsSync, readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { espruinoBytes, measureEspruino } from "./espruino-sizes.ts";

const budget: {
  readonly bytes: number;
  readonly variables: {
    readonly loaded: number;
    readonly online: number;
    readonly twoSessions: number;
    readonly peak: number;
  };
  readonly suite1OverSuite2: number;
} = JSON.parse(readFileSync(new URL("budgets.json", import.meta.url), "utf8")).espruino;

const engineOf = (variable: string): string | null => {
  const path = process.env[variable];
  return path !== undefined && existsSync(path) ? path : null;
};
const roomy = engineOf("ESPRUINO_BIN");
const small = engineOf("ESPRUINO_BIN_2630");
const why = (path: string | null, variable: string): string =>
  path === null ? ` (skipped: ${variable} names no Espruino)` : "";

it("the Espruino build stays within its bytes", () => {
  const bytes = espruinoBytes();
  expect(bytes).toBeLessThanOrEqual(budget.bytes);
  expect(bytes).toBeGreaterThan(budget.bytes / 2);
});

describe("on a real Espruino", { timeout: 120_000 }, () => {
  it.skipIf(small === null)(
    `a board of 2,630 variables holds an agent, two sessions and a call of 256 bytes${why(small, "ESPRUINO_BIN_2630")}`,
    async () => {
      const sizes = await measureEspruino(small as string, "2", 10);
      console.log(`Espruino, 2,630 variables: ${JSON.stringify(sizes)}`);
      for (const name of ["loaded", "online", "twoSessions", "peak"] as const) {
        expect(sizes[name], name).toBeLessThanOrEqual(budget.variables[name]);
        // A figure far below its budget is as suspicious as one above: then the budget says nothing.
        expect(sizes[name], name).toBeGreaterThan(budget.variables[name] / 2);
      }
    },
  );

  it.skipIf(roomy === null)(
    `suite "2" is at least five times as fast as suite "1"${why(roomy, "ESPRUINO_BIN")}`,
    async () => {
      const one = await measureEspruino(roomy as string, "1", 3);
      const two = await measureEspruino(roomy as string, "2", 10);
      console.log(`Espruino, suite 1: ${JSON.stringify(one)}, suite 2: ${JSON.stringify(two)}`);
      expect(one.msPerCall / two.msPerCall).toBeGreaterThanOrEqual(budget.suite1OverSuite2);
    },
  );
});
