import { readFileSync } from "node:fs";
import { eraseTypes } from "@blindrelay/agent-sdk/dialect";
import { estimateMemory } from "@blindrelay/agent-sdk/testing/build/program-memory";
import { expect, it } from "vitest";

/** `process.memory().usage` grew by it on an Espruino of 32 bits. */
const MEASURED = 190;

it("is close for an ordinary program, which fits the smallest board that it is made for", () => {
  const source = readFileSync(new URL("thermostat.ts", import.meta.url), "utf8");
  const { code } = eraseTypes(source) as { code: string };
  const memory = estimateMemory(code, "puck.js");
  expect(memory).toMatchObject({ variables: 2_630, fits: true });
  expect(Math.abs((memory?.program ?? 0) - MEASURED)).toBeLessThan(MEASURED / 10);
});
