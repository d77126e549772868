/** Holds the Moddable build to its budgets, and prints what it costs. */
import { readFileSync } from "node:fs";
import { expect, it } from "vitest";
import { findXsEngine } from "./xs-engine.ts";
import { measureXs, type XsSizes } from "./xs-sizes.ts";

const ENGINE_BUILD_MS = 600_000;
const found = await findXsEngine();
const why = found.kind === "missing" ? ` (skipped: ${found.reason})` : "";
const budget: XsSizes = JSON.parse(
  readFileSync(new URL("budgets.json", import.meta.url), "utf8"),
).xs;

it.skipIf(found.kind === "missing")(
  `the Moddable build stays within its budgets${why}`,
  async () => {
    const sizes = await measureXs(found.kind === "found" ? found.path : "");
    console.log(`XS: ${JSON.stringify(sizes)}`);
    for (const name of ["loaded", "agent", "computePerCall", "slotsPerCall"] as const) {
      expect(sizes[name], name).toBeLessThanOrEqual(budget[name]);
      // A figure far below its budget is as suspicious as one above: then the budget says nothing.
      expect(sizes[name], name).toBeGreaterThan(budget[name] / 2);
    }
    for (const name of ["blindrelay", "core", "noble"] as const) {
      expect(sizes.modules[name], name).toBeLessThanOrEqual(budget.modules[name]);
    }
  },
  ENGINE_BUILD_MS,
);
