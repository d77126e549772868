import { expect, it } from "vitest";
import { MemoryStorage } from "../memory/index.ts";
import { World } from "../testing/world.ts";
import { withStorage } from "./give-storage.ts";

it("a program has its storage when it starts, with what it kept before, and shows nothing", () => {
  const found: unknown[] = [];
  const program = withStorage((agent) => {
    agent.expose("level", () => found.push("was asked"));
    found.push(agent.storage.get("level"));
    agent.storage.set("level", "7");
  }, new MemoryStorage());
  program(new World().core.agent);
  program(new World().core.agent);
  expect(found).toEqual([null, "7"]);
});
