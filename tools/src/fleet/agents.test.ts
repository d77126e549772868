import { expect, it } from "vitest";
import { aboutAgent } from "./agents.ts";

it("an error is told of its agent, also where it begins with the id of another", () => {
  expect(aboutAgent("pump-7", "pump-7 is offline")).toBe("pump-7 is offline");
  expect(aboutAgent("pump-7", "pump-7: no answer")).toBe("pump-7: no answer");
  expect(aboutAgent("pump-7", "no answer")).toBe("pump-7: no answer");
  expect(aboutAgent("pump-7", "pump-70 is offline")).toBe("pump-7: pump-70 is offline");
  expect(aboutAgent("t", "the agent is busy")).toBe("t: the agent is busy");
});
