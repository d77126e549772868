/**
 * Both pages in a real browser: every operation is shown, nothing is fetched from elsewhere, and
 * the browser's console stays empty, which also shows that the content security policy is correct.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type BrowserContext, chromium, type Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { initStore } from "../../control/data-dir.ts";
import { type RunningServer, startServer } from "../../server.ts";
import {
  BROWSER_TIMEOUT_MS,
  CHROMIUM,
  CHROMIUM_FLAGS,
  HAS_CHROMIUM,
} from "../../testing/chromium.ts";
import { PAGES, REDOC_LOGO_URL } from "./pages.ts";

/** A folder for screenshots, for visual inspection. */
const PICTURES = process.env.BLINDRELAY_TEST_PICTURES;

let folder: string;
let server: RunningServer;
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "blindrelay-pages-"));
  const data = join(folder, "data");
  await initStore({ data, username: "admin", password: "correct horse", totp: false });
  server = await startServer({ data, port: 0, metricsPort: 0, logLevel: "silent" });
});
afterAll(async () => {
  await server.stop();
  rmSync(folder, { recursive: true });
});

/** `get /health` and so on, as the document lists them. */
const operations = async (): Promise<{ method: string; path: string; id: string }[]> => {
  const { paths } = (await (await fetch(`${server.url}/api/openapi.json`)).json()) as {
    paths: Record<string, Record<string, { operationId: string }>>;
  };
  return Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, { operationId: id }]) => ({ method, path, id })),
  );
};

describe.skipIf(!HAS_CHROMIUM)(
  "in Chromium (apt-get install chromium)",
  {
    timeout: BROWSER_TIMEOUT_MS,
  },
  () => {
    let browser: BrowserContext;
    beforeAll(async () => {
      browser = await chromium.launchPersistentContext(join(folder, "profile"), {
        timeout: BROWSER_TIMEOUT_MS,
        executablePath: CHROMIUM,
        args: CHROMIUM_FLAGS,
        viewport: { width: 1280, height: 1000 },
      });
      browser.setDefaultTimeout(BROWSER_TIMEOUT_MS);
    }, BROWSER_TIMEOUT_MS);
    afterAll(() => browser?.close());

    /** Opens a page of the relay and records all its requests and errors. */
    const open = async (path: string) => {
      const page = await browser.newPage();
      const elsewhere: string[] = [];
      const complaints: string[] = [];
      page.on("request", (request) => {
        const url = request.url();
        if (!url.startsWith(`${server.url}/`) && !/^(data|blob):/.test(url)) elsewhere.push(url);
      });
      page.on("console", (message) => {
        if (["error", "warning"].includes(message.type())) complaints.push(message.text());
      });
      page.on("pageerror", (error) => complaints.push(String(error)));
      await page.goto(`${server.url}${path}`);
      return { page, elsewhere, complaints };
    };

    const picture = async (page: Page, name: string) => {
      if (PICTURES !== undefined) await page.screenshot({ path: join(PICTURES, `${name}.png`) });
    };

    test("/api/docs shows every operation, opens one, and contacts only this relay", async () => {
      const { page, elsewhere, complaints } = await open("/api/docs");
      await page.waitForSelector(".opblock");
      const shown = await page.$$eval(".opblock", (blocks) =>
        blocks.map((block) => {
          const method = block.querySelector(".opblock-summary-method")?.textContent ?? "";
          const path = block.querySelector(".opblock-summary-path")?.getAttribute("data-path");
          return `${method.toLowerCase()} ${path}`;
        }),
      );
      const documented = (await operations()).map(({ method, path }) => `${method} ${path}`);
      expect(shown.sort()).toEqual(documented.sort());
      await picture(page, "docs");
      await page.click('[data-path="/api/v1/auth/config"]');
      await page.click(".try-out__btn");
      await page.click(".execute");
      await page.waitForSelector(".live-responses-table .response");
      expect(await page.textContent(".live-responses-table")).toContain('"totp": "optional"');
      await picture(page, "docs-tried");
      expect({ elsewhere, complaints }).toEqual({ elsewhere: [], complaints: [] });
      await page.close();
    });

    test("/api/redoc shows every operation, can be searched, and loads nothing from elsewhere", async () => {
      const { page, elsewhere, complaints } = await open("/api/redoc");
      await page.waitForSelector('[data-section-id*="operation/"]');
      const shown = await page.$$eval('[data-section-id*="/operation/"]', (sections) =>
        sections.map((section) => section.getAttribute("data-section-id")?.split("/").at(-1)),
      );
      const documented = (await operations()).map(({ id }) => id);
      expect(shown.sort()).toEqual(documented.sort());
      await picture(page, "redoc");
      await page.fill('input[aria-label="Search"], input[placeholder="Search..."]', "relay token");
      await page.waitForSelector('[data-role="search:results"]');
      await picture(page, "redoc-searched");
      expect({ elsewhere, complaints }).toEqual({ elsewhere: [], complaints: [] });
      await page.close();
    });

    test.each([
      ["/api/docs", ".swagger-ui"],
      ["/api/redoc", "body"],
    ])("%s is dark if the browser prefers dark", async (path, selector) => {
      const { page, complaints } = await open(path);
      await page.waitForSelector(".opblock, [data-section-id]");
      const background = () =>
        page.$eval(selector, (element) => getComputedStyle(element).backgroundColor);
      const light = await background();
      await page.emulateMedia({ colorScheme: "dark" });
      await page.waitForLoadState("load");
      await page.waitForSelector(".opblock, [data-section-id]");
      await expect.poll(background).toBe("rgb(28, 32, 34)");
      expect(light).not.toBe("rgb(28, 32, 34)");
      await picture(page, `${path.slice(5)}-dark`);
      expect(complaints).toEqual([]);
      await page.close();
    });

    test("the policy is enforced: a page cannot reach another host", async () => {
      const { page, complaints } = await open("/api/docs");
      const reached = await page.evaluate(() =>
        fetch("http://127.0.0.1:9/").then(
          () => true,
          () => false,
        ),
      );
      expect(reached).toBe(false);
      expect(complaints.join()).toContain("Content Security Policy");
      await page.close();
    });
  },
);

test("pages declare what may be loaded, and scripts their charset", async () => {
  for (const { folder: name, assets } of PAGES) {
    const page = await fetch(`${server.url}/api/${name}`);
    expect(page.headers.get("content-type")).toBe("text/html; charset=utf-8");
    expect(page.headers.get("permissions-policy")).toBe("serial=()");
    const policy = page.headers.get("content-security-policy") ?? "";
    expect(policy).toContain("default-src 'none'; script-src 'self'; connect-src 'self'");
    expect(policy).not.toMatch(/https?:|\*|unsafe-eval/);
    for (const asset of Object.keys(assets)) {
      const answer = await fetch(`${server.url}/api/${name}/${asset}`);
      expect(answer.status).toBe(200);
      expect(answer.headers.get("content-type")).toMatch(/^text\/\w+; charset=utf-8$/);
    }
  }
  for (const name of ["nothing.js", "constructor", "..%2f..%2fpackage.json"]) {
    expect((await fetch(`${server.url}/api/docs/${name}`)).status).toBe(404);
  }
});

test("/ and /console/ lead people to the console", async () => {
  for (const path of ["/", "/console/"]) {
    const { status, url } = await fetch(`${server.url}${path}`);
    expect([status, url]).toEqual([200, `${server.url}/console`]);
  }
  expect((await fetch(`${server.url}/nothing`)).status).toBe(404);
});

test("Redoc's bundle still contains the logo that we remove from it", async () => {
  const bundle = createRequire(import.meta.url).resolve("redoc/bundles/redoc.standalone.js");
  expect(await readFile(bundle, "utf8")).toContain(REDOC_LOGO_URL);
  const served = await (await fetch(`${server.url}/api/redoc/redoc.standalone.js`)).text();
  expect(served).not.toContain(REDOC_LOGO_URL);
});
