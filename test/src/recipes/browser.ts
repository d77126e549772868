/** The one task of docs/recipes.md that uses a browser. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { BROWSER_TIMEOUT_MS, CHROMIUM, CHROMIUM_FLAGS } from "@blindrelay/relay-server/testing";
import { chromium } from "playwright-core";
import { expect } from "vitest";

/**
 * Fills in the page and reads its answer. `work`: the folder with the secret that the page names.
 */
export const visitPage = async (port: string, work: string): Promise<void> => {
  const browser = await chromium.launch({ executablePath: CHROMIUM, args: CHROMIUM_FLAGS });
  try {
    const page = await browser.newPage();
    page.setDefaultTimeout(BROWSER_TIMEOUT_MS);
    await page.goto(`http://127.0.0.1:${port}`);
    await page.getByLabel("User name").fill("ada");
    await page.getByLabel("Password").fill("a wrong password");
    const secret = readFileSync(join(work, "door-secret"), "utf8").trim();
    await page.getByLabel("End-to-end secret").fill(secret);
    const button = page.getByRole("button", { name: "Open the door" });
    const output = page.locator("output");
    await button.click();
    await output.getByText(/password/i).waitFor();
    await page.getByLabel("Password").fill("a long password");
    await button.click();
    await output.getByText('{"open":true}').waitFor();
    expect(await output.textContent()).toBe('{"open":true}');
  } finally {
    await browser.close();
  }
};
