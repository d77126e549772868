/**
 * Follows docs/recipes.md exactly, as one reader in one shell, recipe after recipe. Only the blocks
 * that the document marks as the reader's own get other values: free ports of this machine, and the
 * terminal where the test plays the device.
 */
import { rmSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { freePort } from "@blindrelay/protocol/testing/free-port";
import { HAS_CHROMIUM } from "@blindrelay/relay-server/testing";
import { HAS_SOCAT } from "@blindrelay/tools/testing/serial/pty";
import { afterAll, afterEach, beforeAll, describe, it } from "vitest";
import { visitPage } from "./browser.ts";
import { DEVICES, type Plugged, WIFI_PASSWORD } from "./devices.ts";
import { readSections, type Section } from "./document.ts";
import { Reader, type ReaderSetup } from "./reader.ts";

const RECIPE_MS = 600_000;
const BROWSER_RECIPE = "A browser page that calls a device";

/** `install`: called once, before anything is typed. `count`: of recipes, from the first on. */
export const followPage = (
  title: string,
  install: () => ReaderSetup,
  count = Number.POSITIVE_INFINITY,
): void => {
  describe.skipIf(!HAS_SOCAT)(title, () => {
    const [before, ...all] = readSections() as [Section, ...Section[]];
    const recipes = all.slice(0, count);
    let reader: Reader;
    let pagePort: string;
    let plugged: Plugged | null = null;

    beforeAll(async () => {
      const port = await freePort();
      pagePort = String(await freePort());
      reader = new Reader(install());
      reader.yours = {
        BLINDRELAY_PORT: String(port),
        BLINDRELAY_URL: `http://127.0.0.1:${port}`,
        BOARD_RELAY: `http://127.0.0.1:${port}`,
        PAGE_PORT: pagePort,
        TTY: join(reader.folder, "tty"),
        WIFI_PASSWORD: join(reader.folder, "wifi-password"),
      };
      writeFileSync(reader.yours.WIFI_PASSWORD as string, `${WIFI_PASSWORD}\n`);
      for (const block of before.blocks) await reader.follow(block);
    }, RECIPE_MS);

    afterEach(async () => {
      rmSync(join(reader.folder, "tty"), { force: true });
      await plugged?.pull();
      plugged = null;
    });

    afterAll(() => reader?.close());

    // One shell: input that was typed in part cannot be typed again.
    it.for(recipes)("$title", { timeout: RECIPE_MS }, async ({ title, blocks }, { skip }) => {
      plugged = (await DEVICES[title]?.()) ?? null;
      if (plugged !== null) symlinkSync(plugged.path, join(reader.folder, "tty"));
      for (const block of blocks) await reader.follow(block);
      if (title !== BROWSER_RECIPE) return;
      if (!HAS_CHROMIUM) skip("there is no Chromium to open the page with");
      await visitPage(pagePort, reader.work);
    });
  });
};
