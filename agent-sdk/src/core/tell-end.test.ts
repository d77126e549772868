import { expect, it } from "vitest";
import { ManualTimer, MemoryStorage } from "../memory/index.ts";
import { openLog } from "./log.ts";
import { endReason, tellEnd } from "./tell-end.ts";

it("the next start's log has the reason and the text", () => {
  const storage = new MemoryStorage();
  tellEnd(storage, "throw", "no sensor\nat line 7");
  const timer = new ManualTimer();
  const { restart } = openLog({ bytes: 1024, bootCount: 1, timer, storage, secrets: [] });
  expect(restart).toEqual({ reason: "throw", text: "no sensor\nat line 7" });
});

it("a medium that fails keeps no device from its work", () => {
  const storage = new MemoryStorage();
  storage.write = () => {
    throw new Error("no medium");
  };
  expect(() => tellEnd(storage, "throw", "")).not.toThrow();
});

it.each([
  ["out of memory", true, "memory"],
  ["memory full", false, "memory"],
  ["no sensor", true, "push"],
  ["no sensor", false, "reset"],
] as const)("%j, on trial: %j, is told as %s", (text, isTrial, reason) => {
  expect(endReason(text, isTrial)).toBe(reason);
});
