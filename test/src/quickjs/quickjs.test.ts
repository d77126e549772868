/** QuickJS, by the edge for embedded engines: the worked example of docs/bring-your-runtime.md. */
import { quickjsScript } from "@blindrelay/agent-sdk/testing/build/engine-scripts";
import { loadQuickjs, QuickjsDevice } from "@blindrelay/agent-sdk/testing/quickjs-device";
import { runtimeTests } from "../runtime-kit/tests.ts";

runtimeTests({
  title: "QuickJS",
  runtime: /^quickjs$/,
  maxPlaintext: 8192,
  versions: ["1", "2", "3", "4"],
  async load(programs) {
    const engine = await loadQuickjs();
    const script = await quickjsScript(programs);
    return (surroundings) => new QuickjsDevice({ engine, script, ...surroundings });
  },
});
