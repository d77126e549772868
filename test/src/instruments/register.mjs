/**
 * Loaded into vitest's own processes, where it only makes imports quicker, and into every Node
 * process that a test starts (child-environment.ts). There it installs the same stand-ins as in the
 * test's own process, records standard error and logs, and writes every seal to a file in the
 * folder that the test file checks. A process may be killed at any moment, so each seal is written
 * before it happens. Plain JavaScript, because it is also loaded by a Node that cannot run
 * TypeScript.
 */
import { openSync, writeSync } from "node:fs";
import * as nodeModule from "node:module";
import { join } from "node:path";

const folder = process.env.BLINDRELAY_TEST_RECORDS;

// A Node without these (20, for example) runs only built packages, whose sources are recorded
// elsewhere.
const canRecord = typeof nodeModule.registerHooks === "function" && process.features.typescript;

if (canRecord) {
  const { resolveQuickly } = await import("./quick-resolve.mjs");
  nodeModule.registerHooks({ resolve: resolveQuickly });
}

if (folder !== undefined && canRecord) {
  await import("./install-stand-ins.mjs");
  const { listen, witnessInto } = await import("./secrets/witness.ts");
  const { watchChildProcesses } = await import("./child-processes.ts");
  let file = -1;
  // Read by nonces/recorder.ts on first use.
  globalThis[Symbol.for("blindrelay.nonceRecorder.onRecord")] = (record) => {
    if (file < 0) file = openSync(join(folder, `${process.pid}-${Date.now()}.seals`), "a", 0o600);
    writeSync(file, `${record.place} ${record.content}\n`);
  };
  witnessInto(folder);
  listen();
  watchChildProcesses();
}
