/**
 * The order of test files: the slowest begin, so that a run does not end with one of them on one
 * core. Vitest knows them only by their last run; in a fresh clone it takes the length of a file
 * for its time, and many of the slowest are short.
 */
import { existsSync } from "node:fs";
import { resolve } from "node:path";
import { BaseSequencer, type TestSpecification } from "vitest/node";

const ROOT = resolve(import.meta.dirname, "../../..");

/** By seconds of CPU, from 230 to 30. */
const SLOWEST = [
  "test/src/publish/publish.test.ts",
  "bench/src/main.test.ts",
  "test/src/xs/hostile-relay.test.ts",
  "test/src/chip/push.test.ts",
  "test/src/cli/push.test.ts",
  "test/src/cli/cli.test.ts",
  "test/src/attacks/nodes.test.ts",
  "test/src/orders/model.test.ts",
  "test/src/cli/hostile-home.test.ts",
  "test/src/flash/push.test.ts",
  "simulator/src/run/library.test.ts",
  "test/src/kill/kill.test.ts",
  "simulator/src/start/start.test.ts",
  "simulator/src/testing/planted/planted.test.ts",
  "test/src/orders/orders.test.ts",
  "simulator/src/virtual/pings.test.ts",
  "test/src/adversary/mutants.test.ts",
].map((path) => resolve(ROOT, path));

export class SlowestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const missing = SLOWEST.filter((path) => !existsSync(path));
    if (missing.length > 0) throw new Error(`no such tests: ${missing.join(", ")}`);
    const slow = SLOWEST.flatMap((path) => files.filter(({ moduleId }) => moduleId === path));
    return [...new Set([...slow, ...(await super.sort(files))])];
  }
}
