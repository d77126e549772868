/**
 * Each rule of the exchange of suites "3" and "4", left out of an agent's code inside XS and
 * QuickJS, and of a client's in a browser: the conformance that these engines run must notice it,
 * as on Node (mutants.test.ts).
 */
import { readFileSync } from "node:fs";
import { ManualTimer, MemoryStorage, seededRandom } from "@blindrelay/agent-sdk/memory";
import { loadQuickjs, QuickjsDevice } from "@blindrelay/agent-sdk/testing/quickjs-device";
import { XsConformance } from "@blindrelay/agent-sdk/testing/xs-conformance";
import { CHROMIUM, CHROMIUM_FLAGS, HAS_CHROMIUM } from "@blindrelay/relay-server/testing";
import { build } from "esbuild";
import { chromium } from "playwright-core";
import { describe, expect, it } from "vitest";
import { DEAD_NETWORK } from "../hostile-boards/hardware.ts";
import { engine, withoutEngine } from "../xs/engine.ts";
import { withMutantBuild } from "./mutant-build.ts";
import { AGENT_EXCHANGES, CLIENT_EXCHANGES, type Patch } from "./mutants.ts";

type Scripts = typeof import("@blindrelay/agent-sdk/testing/build/engine-scripts");
type Xs = typeof import("@blindrelay/agent-sdk/testing/build/xs");

const vectors = readFileSync(
  new URL("../../../protocol/vectors/forward-secrecy.json", import.meta.url),
  "utf8",
);

/** What the engine's conformance says of the code with these patches. */
type Check = (patches: readonly Patch[]) => Promise<string[]>;

const inXs: Check = async (patches) => {
  const script = await withMutantBuild(patches, async (load) => {
    const { vectorsScript } = await load<Scripts>("engine-scripts");
    return vectorsScript(await (await load<Xs>("xs")).buildXsModules());
  });
  const xs = new XsConformance(engine, script);
  const failures = xs.check("forward", vectors);
  await xs.close();
  return failures;
};

const inQuickjs: Check = async (patches) => {
  const script = await withMutantBuild(patches, async (load) =>
    (await load<Scripts>("engine-scripts")).quickjsScript({}),
  );
  const device = new QuickjsDevice({
    engine: await loadQuickjs(),
    script,
    timer: new ManualTimer(),
    link: DEAD_NETWORK,
    random: seededRandom(1),
    storage: new MemoryStorage(),
  });
  const failures = device.checkVectors("forward", vectors);
  device.end();
  return failures;
};

const inChromium: Check = async (patches) => {
  const code = await withMutantBuild(patches, async (_load, root) => {
    const protocol = `${root}/protocol/src`;
    const { outputFiles } = await build({
      stdin: {
        contents: `
          import { checkForward } from "${protocol}/testing/forward.ts";
          import { nobleSuite } from "${protocol}/suites/noble.ts";
          import { nobleX25519 } from "${protocol}/suites/noble-x25519.ts";
          globalThis.check = (text) => checkForward(nobleSuite(), nobleX25519, JSON.parse(text));
        `,
        resolveDir: root,
      },
      bundle: true,
      write: false,
      format: "iife",
      platform: "browser",
    });
    return outputFiles[0]?.text ?? "";
  });
  const browser = await chromium.launch({ executablePath: CHROMIUM, args: CHROMIUM_FLAGS });
  try {
    const page = await browser.newPage();
    await page.evaluate(code);
    return await page.evaluate(
      (text) => (globalThis as unknown as { check(text: string): string[] }).check(text),
      vectors,
    );
  } finally {
    await browser.close();
  }
};

describe.each([
  ["XS", !withoutEngine, inXs, AGENT_EXCHANGES],
  ["QuickJS", true, inQuickjs, AGENT_EXCHANGES],
  ["Chromium", HAS_CHROMIUM, inChromium, CLIENT_EXCHANGES],
] as const)("in %s", (_engine, isThere, check, exchanges) => {
  describe.skipIf(!isThere)("the conformance", { timeout: 120_000 }, () => {
    it("passes without a patch", async () => {
      expect(await check([])).toEqual([]);
    });

    it.each(exchanges.map(({ without, patches }) => [without, patches] as const))(
      "notices when left out: %s",
      async (_without, patches) => {
        expect(await check(patches)).not.toEqual([]);
      },
    );
  });
});
