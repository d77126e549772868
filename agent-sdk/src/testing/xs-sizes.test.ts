/** Compares the Moddable build with its budgets, and prints what it costs. */
import { expect, it } from "vitest";
import { findXsEngine } from "../../build/xs-engine.ts";
import { xsFigures, xsModuleFigures } from "./budgets.ts";
import { measureXs } from "./xs-sizes.ts";

const ENGINE_BUILD_MS = 600_000;
const found = await findXsEngine();
const why = found.kind === "missing" ? ` (skipped: ${found.reason})` : "";

it.skipIf(found.kind === "missing")(
  `the Moddable build stays within its budgets${why}`,
  async () => {
    const sizes = await measureXs(found.kind === "found" ? found.path : "");
    console.log(`XS: ${JSON.stringify(sizes)}`);
    // Processor time depends on this machine's load; `npm run bench -- --sizes` measures it.
    const figures = [...xsModuleFigures(sizes.modules), ...xsFigures(sizes)];
    const beyond = figures.filter(({ verdict, unit }) => verdict !== "ok" && unit !== "ms");
    expect(beyond).toEqual([]);
  },
  ENGINE_BUILD_MS,
);
