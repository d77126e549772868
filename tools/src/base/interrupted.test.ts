import { expect, it } from "vitest";
import { interrupted } from "./interrupted.ts";

it("whoever waits for the end waits with the listeners of who waited first", () => {
  const first = interrupted();
  const listeners = process.listeners("SIGINT");
  expect(listeners).toHaveLength(1);
  expect(interrupted()).toBe(first);
  expect(process.listeners("SIGINT")).toEqual(listeners);
});
