/**
 * The bounds of messages, calls, sessions and openings in engines with a C stack: QuickJS, and by
 * hand JerryScript, whose command `JERRYSCRIPT` names.
 */
import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { boundsScript } from "@blindrelay/agent-sdk/testing/build/engine-scripts";
import { loadQuickjs } from "@blindrelay/agent-sdk/testing/quickjs-device";
import { describe, expect, it } from "vitest";

const MEMORY_BYTES = 1024 * 1024;
/** Little more than the agent needs. */
const STACK_BYTES = 16 * 1024;
const JERRYSCRIPT = process.env.JERRYSCRIPT ?? "";

describe("bounds of an agent", () => {
  it("hold in QuickJS", async () => {
    const engine = await loadQuickjs();
    const runtime = engine.newRuntime();
    runtime.setMemoryLimit(MEMORY_BYTES);
    runtime.setMaxStackSize(STACK_BYTES);
    const context = runtime.newContext();
    context.unwrapResult(context.evalCode(await boundsScript("esnext"))).dispose();
    const failures = context.getProp(context.global, "failures").consume(context.dump);
    context.dispose();
    runtime.dispose();
    expect(JSON.parse(failures)).toEqual([]);
  });

  it.skipIf(JERRYSCRIPT === "")("hold in JerryScript (skipped without JERRYSCRIPT)", async () => {
    const folder = mkdtempSync(join(tmpdir(), "blindrelay-jerry-"));
    try {
      const file = join(folder, "bounds.js");
      writeFileSync(file, `${await boundsScript("es2016")}\nprint(failures);`);
      const output = execFileSync(JERRYSCRIPT, [file], { encoding: "utf8" });
      expect(JSON.parse(output)).toEqual([]);
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  });
});
