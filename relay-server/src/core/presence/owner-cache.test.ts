import { expect, it } from "vitest";
import { MAX_KNOWN_OWNERS } from "../limits/limits.ts";
import { OwnerCache } from "./owner-cache.ts";

it("knows an agent's owner until the agent or the owner is deleted", () => {
  const cache = new OwnerCache();
  for (const agentId of ["lamp", "pump"]) cache.remember(agentId, "ann");
  cache.remember("bobs", "bob");
  cache.forget("lamp");
  expect(["lamp", "pump", "bobs"].map((each) => cache.get(each))).toEqual([
    undefined,
    "ann",
    "bob",
  ]);
  cache.forgetUser("ann");
  expect(["pump", "bobs"].map((each) => cache.get(each))).toEqual([undefined, "bob"]);
});

it("forgets the owner that was learnt first when there are too many", () => {
  const cache = new OwnerCache();
  for (let n = 0; n < MAX_KNOWN_OWNERS; n++) cache.remember(`a${n}`, "ann");
  cache.remember("a0", "ann");
  expect(cache.get("a1")).toBe("ann");
  cache.remember("new", "ann");
  expect(["a0", "a1", "a2", "new"].map((each) => cache.get(each))).toEqual([
    "ann",
    undefined,
    "ann",
    "ann",
  ]);
});
