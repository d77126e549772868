/** The Moddable build in the real XS engine: every vector file, and the engine's own limits. */
import { readFileSync } from "node:fs";
import { VECTOR_FILE_NAMES } from "@blindrelay/protocol/testing";
import { FORWARD_FILE_NAMES } from "@blindrelay/protocol/testing/forward";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { vectorsScript } from "../../build/engine-scripts.ts";
import { buildXsModules } from "../../build/xs.ts";
import { findXsEngine } from "../../build/xs-engine.ts";
import { XS_NOT_ENOUGH_MEMORY, XS_TOO_MUCH_COMPUTATION, XsWorker } from "../engines/xs-worker.ts";
import { XsConformance } from "../testing/xs-conformance.ts";

const ENGINE_BUILD_MS = 600_000;
const found = await findXsEngine();
const engine = found.kind === "found" ? found.path : "";
/** The files that contain nothing of version "2", which requires a native cipher. */
const withoutAes = ["hkdf", "hmac", "chacha20Poly1305", "base64url", "json", "tokens"] as const;
const FILE_NAMES: { readonly [field: string]: string } = {
  ...VECTOR_FILE_NAMES,
  ...FORWARD_FILE_NAMES,
};
const cases: readonly (readonly [string, string, boolean])[] = [
  ...Object.keys(FILE_NAMES).map((field) => [field, "with native crypto", true] as const),
  ...withoutAes.map((field) => [field, "in JavaScript alone", false] as const),
];

describe.skipIf(found.kind === "missing")(
  `the Moddable build in XS${found.kind === "missing" ? ` (skipped: ${found.reason})` : ""}`,
  () => {
    let xs: XsConformance;
    beforeAll(async () => {
      xs = new XsConformance(engine, await vectorsScript(await buildXsModules()));
    }, ENGINE_BUILD_MS);
    afterAll(() => xs.close());

    const read = (field: string): string => {
      const url = new URL(`../../../protocol/vectors/${FILE_NAMES[field]}`, import.meta.url);
      return readFileSync(url, "utf8");
    };

    it.each(cases)("agrees with every case of %s, %s", (field, _how, native) => {
      expect(xs.check(field, read(field), native)).toEqual([]);
    });

    it("detects an incorrect vector", () => {
      const bent = read("hmac").replace(/"mac": "./, '"mac": "_');
      expect(xs.check("hmac", bent)).not.toEqual([]);
    });

    it.each([
      ["computes without end", "for (;;);", XS_TOO_MUCH_COMPUTATION],
      [
        "takes memory without end",
        "const a = []; for (;;) a.push(new ArrayBuffer(1e6));",
        XS_NOT_ENOUGH_MEMORY,
      ],
    ])("ends a script that %s, and reports it", async (_what, script, code) => {
      const other = new XsWorker({ engine, maxCompute: 1e8, maxMemoryKiB: 131072 });
      expect(() => other.evaluate(script)).toThrow("XS has ended");
      expect(await other.ended).toBe(code);
      await other.close();
    });
  },
);
