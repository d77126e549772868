/**
 * Loaded into every Node process that a test spawns (setup.ts puts `--import` into NODE_OPTIONS):
 * the same stand-ins, and every seal written to a file of the folder that the test file judges.
 * A process may be killed at any moment, so each seal is written before it happens. Plain
 * JavaScript, because a Node that cannot run TypeScript loads it too.
 */
import { openSync, writeSync } from "node:fs";
import * as nodeModule from "node:module";
import { join } from "node:path";

const folder = process.env.BLINDRELAY_TEST_NONCES;

// A Node without these (20, say) runs only built packages, whose sources are recorded elsewhere.
const canRecord = typeof nodeModule.registerHooks === "function" && process.features.typescript;

const secretsFolder = process.env.BLINDRELAY_TEST_SECRETS;
if (secretsFolder !== undefined && canRecord) {
  const { listen, witnessInto } = await import("../secrets/witness.ts");
  witnessInto(secretsFolder);
  listen();
}

if (folder !== undefined && canRecord) {
  const { redirect } = await import("./redirect.ts");
  let file = -1;
  nodeModule.registerHooks({
    resolve: (specifier, context, next) => {
      const resolved = next(specifier, context);
      const instead = redirect(resolved.url, context.parentURL);
      return instead === null ? resolved : { ...resolved, url: instead, shortCircuit: true };
    },
  });
  // Found by recorder.ts when it is first used.
  globalThis[Symbol.for("blindrelay.nonceRecorder.onRecord")] = (record) => {
    if (file < 0) file = openSync(join(folder, `${process.pid}-${Date.now()}`), "a", 0o600);
    writeSync(file, `${record.place} ${record.content}\n`);
  };
}
