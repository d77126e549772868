import { availableParallelism } from "node:os";
import { defineConfig } from "vitest/config";
import { loadStandIns } from "./test/src/instruments/vitest-plugin.ts";

export default defineConfig({
  plugins: [loadStandIns()],
  test: {
    // Over every test: no key and nonce may seal two different plaintexts, and no secret that a test
    // made may stand in what programs log.
    setupFiles: ["./test/src/instruments/setup.ts"],
    include: ["**/*.test.ts"],
    exclude: ["**/node_modules/**", "**/dist/**"],
    // Own processes, because tests send signals, change directories and start servers.
    pool: "forks",
    // Many tests wait for processes of their own; one file more than there are cores keeps those busy.
    maxWorkers: availableParallelism() + 1,
    // In CI a test that fails is tried once more, so that one lost race of fifty processes on two cores
    // keeps no work from landing; it is named at the end (FLAKY) and to be mended all the same.
    retry: process.env.CI ? 1 : 0,
    reporters: ["default", "./scripts/flaky-reporter.ts"],
    // Several times what any test needs alone: two cores may be shared with other work.
    testTimeout: 60_000,
    hookTimeout: 60_000,
    passWithNoTests: false,
    // A test that forgot to assert, or that was left `.only`, must not look green in CI.
    allowOnly: !process.env.CI,
    restoreMocks: true,
    unstubEnvs: true,
  },
});
