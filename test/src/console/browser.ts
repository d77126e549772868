/** What the tests of the console have in common: a page, all that it sends, and axe's findings. */
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import type { Browser, Page } from "playwright-core";
import { expect } from "vitest";
import { PASSWORD } from "../specification/relay.ts";

/** Less than a test's time, so that the step that takes too long is named. */
const STEP_MS = 60_000;
/** For content that appears when the relay has answered. */
export const PATIENCE = { timeout: STEP_MS };
/** A folder for screenshots, to be looked at. */
const PICTURES = process.env.BLINDRELAY_TEST_PICTURES;
const AXE = createRequire(import.meta.url).resolve("axe-core/axe.min.js");

const WIDE = { width: 1280, height: 900 };
const LOOKS = [
  // Dark mode changes only colours.
  { name: "dark", size: WIDE, colorScheme: "dark", rules: ["color-contrast"] },
  { name: "phone", size: { width: 360, height: 740 }, colorScheme: "light", rules: null },
  { name: "light", size: WIDE, colorScheme: "light", rules: null },
] as const;

/** Everything that a page sends: headers, bodies and frames, each as one text. */
const recordSent = (page: Page): string[] => {
  const sent: string[] = [];
  page.on("request", (request) => {
    const { url, headers } = { url: request.url(), headers: JSON.stringify(request.headers()) };
    sent.push(`${request.method()} ${url} ${headers} ${request.postData() ?? ""}`);
  });
  page.on("websocket", (socket) => {
    sent.push(socket.url());
    socket.on("framesent", ({ payload }) => sent.push(payload.toString()));
  });
  return sent;
};

/** An empty page. `before`: runs in it before its own code. */
export const openPage = async (browser: Browser, before: () => void = () => {}) => {
  const context = await browser.newContext({ viewport: WIDE });
  const page = await context.newPage();
  await page.addInitScript(before);
  page.setDefaultTimeout(STEP_MS);
  const complaints: string[] = [];
  page.on("console", (message) => {
    if (["error", "warning"].includes(message.type())) complaints.push(message.text());
  });
  page.on("pageerror", (error) => complaints.push(String(error)));
  const sent = recordSent(page);
  return { page, complaints, sent };
};

/** `code`: of the second factor; "" for an account without one. */
export const logInAs = async (page: Page, username: string, code: string): Promise<void> => {
  await page.getByLabel("User name").fill(username);
  await page.getByLabel("Password").fill(PASSWORD);
  if (code !== "") await page.getByLabel(/^One-time code/).fill(code);
  await page.getByRole("button", { name: "Log in" }).click();
  await page.getByRole("heading", { name: "Agents" }).waitFor();
};

export const picture = async (page: Page, name: string): Promise<void> => {
  if (PICTURES === undefined) return;
  await page.screenshot({ path: join(PICTURES, `${name}.png`), fullPage: true });
};

/** A text in all forms in which it could be hidden: plain, hex, and base64 at each offset. */
export const formsOf = (secret: string): string[] => {
  const bytes = Buffer.from(secret);
  const base64 = [0, 1, 2].flatMap((offset) => {
    // The first and last characters depend on the neighbours.
    const padded = Buffer.concat([Buffer.alloc(offset), bytes]);
    return ["base64", "base64url"].map((form) =>
      padded.toString(form as "base64").slice(4, 4 * Math.floor(padded.length / 3)),
    );
  });
  const random = secret.slice("e2e_".length);
  return [secret, random, bytes.toString("hex"), encodeURIComponent(secret), ...base64];
};

interface Axe {
  run(options: object): Promise<{
    violations: { id: string; nodes: { html: string; failureSummary: string }[] }[];
  }>;
}

/** What axe finds by these rules, or by all. */
export const violationsOn = async (
  page: Page,
  rules: readonly string[] | null,
): Promise<string[]> => {
  // By evaluation, because the page's policy permits no scripts except the relay's.
  if (!(await page.evaluate(() => "axe" in globalThis)))
    await page.evaluate(readFileSync(AXE, "utf8"));
  const options = rules === null ? {} : { runOnly: [...rules] };
  const { violations } = await page.evaluate(
    (options) => (globalThis as unknown as { axe: Axe }).axe.run(options),
    options,
  );
  return violations.flatMap(({ id, nodes }) =>
    nodes.map(({ html, failureSummary }) => `${id}: ${html}: ${failureSummary}`),
  );
};

/** A view in all its looks: a picture of each, nothing that axe finds, and nothing too wide. */
export const lookAt = async (page: Page, view: string): Promise<void> => {
  for (const { name, size, colorScheme, rules } of LOOKS) {
    await page.setViewportSize(size);
    await page.emulateMedia({ colorScheme });
    await picture(page, `${name}-${view}`);
    const found = await violationsOn(page, rules);
    const width = await page.evaluate(() => document.documentElement.scrollWidth);
    expect({ view, name, found, width }).toEqual({ view, name, found: [], width: size.width });
  }
};
