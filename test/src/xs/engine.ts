/** The engine and the scripts for it, built once per test file. */
import { fileURLToPath } from "node:url";
import { deviceScript } from "@blindrelay/agent-sdk/testing/build/engine-scripts";
import { buildXsModules } from "@blindrelay/agent-sdk/testing/build/xs";
import { findXsEngine } from "@blindrelay/agent-sdk/testing/build/xs-engine";

/** The same files that the simulator runs on Node. */
const programs = ["echo", "sensor", "valve"].map((name) => [
  name,
  fileURLToPath(new URL(`../../../simulator/src/devices/${name}.ts`, import.meta.url)),
]);

const found = await findXsEngine();

/** Of `describe.skipIf`, and for its title. */
export const withoutEngine = found.kind === "missing";
export const whySkipped = found.kind === "missing" ? ` (skipped: ${found.reason})` : "";
export const engine = found.kind === "found" ? found.path : "";

export const makeScript = async (): Promise<string> =>
  deviceScript(await buildXsModules(), {
    ...Object.fromEntries(programs),
    counter: fileURLToPath(new URL("./counter.ts", import.meta.url)),
    edgeCases: fileURLToPath(new URL("../runtime-parity/edge-cases.ts", import.meta.url)),
    attacked: fileURLToPath(new URL("../hostile-boards/program.ts", import.meta.url)),
  });
