/**
 * Loaded into every Node process that a test starts (child-environment.ts): the same stand-ins as
 * in the test's own process, what is said on standard error and in logs noted, every seal written
 * to a file of the folder that the test file judges. A process may be killed at any moment, so each
 * is written before it happens. Plain JavaScript, because a Node that cannot run TypeScript loads
 * it too.
 */
import { openSync, writeSync } from "node:fs";
import * as nodeModule from "node:module";
import { join } from "node:path";

const folder = process.env.BLINDRELAY_TEST_RECORDS;

// A Node without these (20, say) runs only built packages, whose sources are recorded elsewhere.
const canRecord = typeof nodeModule.registerHooks === "function" && process.features.typescript;

if (folder !== undefined && canRecord) {
  const { standIn } = await import("./stand-ins.ts");
  const { listen, witnessInto } = await import("./secrets/witness.ts");
  const { watchChildProcesses } = await import("./child-processes.ts");
  nodeModule.registerHooks({
    resolve: (specifier, context, next) => {
      const resolved = next(specifier, context);
      const instead = standIn(resolved.url, context.parentURL);
      return instead === null ? resolved : { ...resolved, url: instead, shortCircuit: true };
    },
  });
  let file = -1;
  // Found by nonces/recorder.ts when it is first used.
  globalThis[Symbol.for("blindrelay.nonceRecorder.onRecord")] = (record) => {
    if (file < 0) file = openSync(join(folder, `${process.pid}-${Date.now()}.seals`), "a", 0o600);
    writeSync(file, `${record.place} ${record.content}\n`);
  };
  witnessInto(folder);
  listen();
  watchChildProcesses();
}
