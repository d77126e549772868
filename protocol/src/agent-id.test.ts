import { expect, it } from "vitest";
import { agentIdOf } from "./agent-id.ts";
import { AGENT_ID_PATTERN } from "./spec.ts";

it.each([
  ["Pump 7, Hall Ä", "pump-7-hall"],
  ["  --x--  ", "x"],
  ["Äé", "agent"],
  ["", "agent"],
  [`${"a".repeat(39)}  b`, "a".repeat(39)],
  [`${"a".repeat(40)} b`, "a".repeat(40)],
])("%j has an id that begins with %j", (name, slug) => {
  const id = agentIdOf(name, Uint8Array.of(0, 25, 26, 255));
  expect(id).toBe(`${slug}-azav`);
  expect(id).toMatch(new RegExp(AGENT_ID_PATTERN));
});
