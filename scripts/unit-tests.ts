/** Vitest's configuration with the unit tests alone: Stryker runs all projects that it finds. */
import config from "../vitest.config.ts";

const { test = {}, ...rest } = config;

export default {
  ...rest,
  test: {
    ...test,
    projects: test.projects?.filter(
      (each) => typeof each === "object" && "test" in each && each.test?.name === "unit",
    ),
  },
};
