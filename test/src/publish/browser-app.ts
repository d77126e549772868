/** An app in a real browser: bundled as its author would, served as files, used by clicks. */
import { createReadStream } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { extname, join } from "node:path";
import { BROWSER_TIMEOUT_MS, CHROMIUM, CHROMIUM_FLAGS } from "@blindrelay/relay-server/testing";
import { build } from "esbuild";
import { chromium } from "playwright-core";

const TYPES: Readonly<Record<string, string>> = { ".html": "text/html", ".js": "text/javascript" };

/**
 * What the app of `folder` (consumer/app.*) shows after each password, and what its server
 * received.
 */
export const useApp = async (
  folder: string,
  passwords: readonly string[],
): Promise<{ shown: string[]; requested: string[] }> => {
  const outdir = join(folder, "site");
  const workers = join(folder, "node_modules/msw/lib/mockServiceWorker.js");
  await build({
    entryPoints: [join(folder, "app.mocks.js"), join(folder, "app.html")],
    bundle: true,
    format: "esm",
    splitting: true,
    outdir,
    loader: { ".html": "copy" },
    logLevel: "error",
  });
  const requested: string[] = [];
  const server = createServer((request, response) => {
    const path = request.url ?? "";
    requested.push(path);
    const file = path === "/mockServiceWorker.js" ? workers : join(outdir, path);
    response.setHeader("content-type", TYPES[extname(file)] ?? "text/plain");
    createReadStream(file)
      .on("error", () => response.writeHead(404).end())
      .pipe(response);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const browser = await chromium.launch({ executablePath: CHROMIUM, args: CHROMIUM_FLAGS });
  try {
    const page = await browser.newPage();
    page.setDefaultTimeout(BROWSER_TIMEOUT_MS);
    await page.goto(`http://127.0.0.1:${(server.address() as AddressInfo).port}/app.html`);
    await page.locator("button[data-ready]").waitFor();
    const output = page.locator("output");
    const shown: string[] = [];
    for (const password of passwords) {
      await output.evaluate((element) => {
        element.textContent = "";
      });
      await page.getByLabel("Password").fill(password);
      await page.getByRole("button").click();
      await output.getByText(/./).waitFor();
      shown.push((await output.textContent()) ?? "");
    }
    return { shown, requested };
  } finally {
    await browser.close();
    server.close();
  }
};
