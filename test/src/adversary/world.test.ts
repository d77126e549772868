import { expect, test } from "vitest";
import { loadBuild, REPOSITORY } from "./build.ts";
import { World } from "./world.ts";

const build = await loadBuild(REPOSITORY);

test("behind an honest relay every call is answered", () => {
  const world = new World(build);
  const calls = world.people.flatMap((person) =>
    world.devices.map((device) => person.call(device, "slow", false, 30_000)),
  );
  world.behave(2_000);
  expect(calls.map((call) => call.outcome?.ok)).toEqual(calls.map(() => true));
  world.mustRecover();
  expect(world.violations).toEqual([]);
});
