import { test } from "vitest";
import { loadBuild, REPOSITORY } from "./build.ts";
import { CHECKS } from "./checks.ts";

const build = await loadBuild(REPOSITORY);

test.each(Object.entries(CHECKS))("%s", (_name, check) => {
  check(build);
});
