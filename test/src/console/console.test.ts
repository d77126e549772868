/**
 * The live console in a real browser, on a real relay, with agents on real sockets: what people see
 * and do, everything that leaves the page, and axe's findings for every view.
 */
import { createHash, generateKeyPairSync, randomBytes, sign } from "node:crypto";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import {
  type Program,
  type RunningAgent,
  type StartOptions,
  startAgent,
} from "@blindrelay/agent-sdk/node";
import { makeToken } from "@blindrelay/protocol";
import { decodeKeyring } from "@blindrelay/protocol/keyring";
import { releaseText } from "@blindrelay/protocol/releases";
import type { Release } from "@blindrelay/protocol/schema/rest";
import {
  BROWSER_TIMEOUT_MS,
  CHROMIUM,
  CHROMIUM_FLAGS,
  HAS_CHROMIUM,
} from "@blindrelay/relay-server/testing";
import { type Browser, chromium, type Page } from "playwright-core";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { PASSWORD, Relay } from "../specification/relay.ts";
import { formsOf, logInAs, lookAt, openPage, PATIENCE, picture, violationsOn } from "./browser.ts";

const { publicKey, privateKey: releaseKey } = generateKeyPairSync("ed25519");

let relay: Relay;
let browser: Browser;
const running: RunningAgent[] = [];

const api = async <Answer>(method: string, path: string, token: string, body?: object) => {
  const { status, json, text } = await relay.api(method, path, { token, ...(body && { body }) });
  if (status >= 300) throw new Error(text);
  return json as Answer;
};

/** A code works only once, so time passes before each. */
const freshCode = (): string => {
  relay.advance(60);
  return relay.totpCode();
};

let accountToken: string;
const secrets = new Map<string, string>();
const tokens = new Map<string, string>();

const addAgent = async (agentId: string, name: string): Promise<void> => {
  const body = { agent_id: agentId, name };
  const made = await api<{ api_token: string }>("POST", "/agents", accountToken, body);
  tokens.set(agentId, made.api_token);
  secrets.set(agentId, makeToken("e2e", randomBytes(32)));
};

/** Creates a user with a second factor; resolves with a code for the first login. */
const addUser = async (username: string): Promise<string> => {
  const who = { username, password: PASSWORD };
  await api("POST", "/admin/users", accountToken, { ...who, role: "user" });
  const login = await api<{ access_token: string }>("POST", "/auth/login", "", who);
  const { secret } = await api<{ secret: string }>("POST", "/auth/totp/enroll", login.access_token);
  const body = { totp_code: relay.totpCode(secret) };
  await api("POST", "/auth/totp/confirm", login.access_token, body);
  relay.advance(60);
  return relay.totpCode(secret);
};

const valve: Program = (agent) => {
  agent.handle("valve.open", (params: { percent?: number } = {}) => {
    const { percent = 100 } = params;
    if (percent > 100) throw Object.assign(new Error("more than open"), { code: 7 });
    agent.emit("valve.moved", { percent });
    return { percent };
  });
  agent.handle("valve.hang", () => new Promise(() => undefined));
  agent.handle("valve.jam", () => {
    agent.log("error", "the valve is jammed");
    return null;
  });
};

const startValve = async (
  agentId: string,
  options: Partial<StartOptions> = {},
): Promise<RunningAgent> => {
  const agent = await startAgent({
    url: relay.url,
    agentId,
    relayToken: tokens.get(agentId) ?? "",
    agentToken: secrets.get(agentId) ?? "",
    stateDir: join(relay.data, agentId),
    firmwareVersion: "1.4.0",
    program: valve,
    log: () => undefined,
    ...options,
  });
  running.push(agent);
  await agent.online();
  return agent;
};

/** `before`: runs in the page before its own code. */
const open = async (before: () => void = () => {}) => {
  const opened = await openPage(browser, before);
  await opened.page.goto(`${relay.url}/console`);
  return opened;
};

const logIn = (page: Page, username = "ada", code = freshCode()): Promise<void> =>
  logInAs(page, username, code);

const openAgent = async (page: Page, agentId: string): Promise<void> => {
  await page.goto(`${relay.url}/console#/agents/${agentId}`);
  await page.getByLabel("End-to-end secret").fill(secrets.get(agentId) ?? "");
  await page.getByRole("button", { name: "Open" }).click();
  await page.getByRole("heading", { name: "Call a method" }).waitFor();
};

const call = async (page: Page, method: string, params: string): Promise<void> => {
  await page.getByRole("combobox", { name: "Method" }).fill(method);
  await page.getByLabel("Parameters").fill(params);
  await page.getByRole("button", { name: "Call" }).click();
};

beforeAll(async () => {
  const releaseKeys = [publicKey.export({ format: "jwk" }).x as string];
  relay = await new Relay().start({ totp: true, settings: { releaseKeys } });
  const body = { username: "ada", password: PASSWORD, totp_code: freshCode() };
  const login = await api<{ user: { api_token: string } }>("POST", "/auth/login", "", body);
  accountToken = login.user.api_token;
  await addAgent("pump-7", "Pump in hall 7");
  await addAgent("lamp-1", "Lamp over the door");
});
afterEach(async () => {
  for (const agent of running.splice(0)) await agent.stop();
});
afterAll(() => relay?.close());

describe.skipIf(!HAS_CHROMIUM)(
  "in Chromium (apt-get install chromium)",
  { timeout: BROWSER_TIMEOUT_MS },
  () => {
    beforeAll(async () => {
      browser = await chromium.launch({ executablePath: CHROMIUM, args: CHROMIUM_FLAGS });
    }, BROWSER_TIMEOUT_MS);
    afterAll(() => browser?.close());
    afterEach(async () => {
      for (const context of browser.contexts()) {
        // A request may still be under way to the relay.
        for (const page of context.pages()) await page.unrouteAll({ behavior: "ignoreErrors" });
        await context.close();
      }
    });

    it("explains a refused login, and accepts the right code", async () => {
      const { page } = await open();
      await page.getByLabel("User name").fill("ada");
      await page.getByLabel("Password").fill(PASSWORD);
      await page.getByLabel("One-time code").fill("000 000");
      await page.getByRole("button", { name: "Log in" }).click();
      const alert = page.getByRole("alert");
      await alert.getByText("Wrong user name, password or one-time code").waitFor();
      await alert.getByText("wait for a fresh code").waitFor();
      expect(await page.getByLabel("Password").inputValue()).toBe(PASSWORD);
      await picture(page, "refused");
      await logIn(page);
      const names = async () => (await page.getByRole("rowheader").allTextContents()).sort();
      const both = ["Lamp over the door lamp-1", "Pump in hall 7 pump-7"];
      await expect.poll(names, PATIENCE).toEqual(both);
      const focused = () => page.evaluate(() => document.activeElement?.textContent);
      await expect.poll(focused, PATIENCE).toBe("Agents");
    });

    it("shows agents going online and offline, with their firmware, without a reload", async () => {
      const { page, complaints } = await open();
      await logIn(page);
      const row = page.getByRole("row", { name: /pump-7/ });
      await row.getByText("offline").waitFor();
      const agent = await startValve("pump-7");
      await row.getByText("online").waitFor();
      await row.getByText("1.4.0").waitFor();
      await page.getByText("Pump in hall 7 is online").waitFor({ state: "attached" });
      await picture(page, "agents");
      await agent.stop();
      await row.getByText("offline").waitFor();
      await page.getByRole("link", { name: "Events" }).click();
      const heard = page.getByRole("log").getByRole("listitem");
      await heard.nth(1).waitFor();
      expect(await heard.locator("strong").allTextContents()).toEqual(["offline", "online"]);
      expect(complaints).toEqual([]);
    });

    it("is drawn, whatever an agent says of itself and of its log", async () => {
      const { page, complaints } = await open(() => {
        const parse = JSON.parse;
        // What the device could have sealed in place of its own answers.
        JSON.parse = (text: string) => {
          const value = parse(text);
          const { lie, of } = globalThis as { lie?: unknown; of?: string };
          return of !== undefined && Object.hasOwn(Object(value?.result), of)
            ? { ...value, result: lie }
            : value;
        };
      });
      const lieOf = (of: string, lie: unknown) =>
        page.evaluate((lies) => void Object.assign(globalThis, lies), { of, lie });
      await logIn(page);
      const wrong = [null, 1e300, "<b>x</b>", [null], { toString: 1, valueOf: 1 }];
      const all = (names: readonly string[]) =>
        wrong.map((value) => Object.fromEntries(names.map((name) => [name, value])));
      const infos = all(["methods", "sdk_version", "runtime", "uptime_s", "free_memory"]);
      for (const [i, lie] of [null, ...infos].entries()) {
        await addAgent(`liar-${i}`, `Liar ${i}`);
        const liar = await startValve(`liar-${i}`);
        await lieOf("sdk_version", lie);
        await openAgent(page, `liar-${i}`);
        await liar.stop();
      }
      await startValve("pump-7");
      await lieOf("nothing", null);
      await openAgent(page, "pump-7");
      const logs = [
        null,
        ...all(["boot", "restart", "dropped", "lines"]),
        ...wrong.map((value) => ({
          restart: { reason: value, text: value },
          lines: [value, { n: value, at_ms: value, level: value, text: value }],
        })),
      ];
      for (const lie of logs) {
        await page.getByText(/^Start /).waitFor();
        await lieOf("restart", lie);
        await page.getByRole("link", { name: "Agents" }).click();
        await page.getByRole("link", { name: "Pump in hall 7" }).click();
      }
      await page.getByText(/^Start /).waitFor();
      expect(await page.locator("b").count()).toBe(0);
      expect(complaints).toEqual([]);
      await page.close();
      for (const i of [null, ...infos].keys()) {
        await api("DELETE", `/agents/liar-${i}`, accountToken);
      }
    });

    it("is drawn, whatever stands after the # of its address", async () => {
      const { page } = await open();
      await logIn(page);
      await page.evaluate('location.hash = "#/agents/%"');
      await page.getByRole("heading", { name: "%" }).waitFor();
      await page.getByRole("link", { name: "Events" }).click();
      await page.getByRole("heading", { name: "Events" }).waitFor();
    });

    it("keeps a call to many agents, and stops it, after a look at something else", async () => {
      for (const id of ["east-1", "east-2"]) await addAgent(id, id);
      await startValve("east-1");
      const { page } = await open();
      await logIn(page);
      const keyring = Object.fromEntries(
        ["east-1", "east-2"].map((id) => [
          id,
          { agent_token: secrets.get(id), packet_version: "1" },
        ]),
      );
      const buffer = Buffer.from(JSON.stringify({ keyring }));
      const file = { name: "default.json", mimeType: "application/json", buffer };
      await page.getByLabel("Keyring").setInputFiles(file);
      const search = page.getByLabel("Part of a name or identifier");
      await search.fill("east-1");
      page.on("dialog", (dialog) => void dialog.accept());
      await page.getByText("Call these agents").click();
      await page.getByLabel("Method of each").fill("valve.hang");
      await page.getByRole("button", { name: "Call 1" }).click();
      await search.fill("none of them");
      await page.getByText("0 of 1", { exact: true }).waitFor();
      await page.getByRole("link", { name: "Events" }).click();
      await page.getByRole("heading", { name: "Events" }).waitFor();
      await page.getByRole("link", { name: "Agents" }).click();
      await page.getByText("0 of 1", { exact: true }).waitFor();
      await page.getByRole("button", { name: "Stop" }).click();
      await running[0]?.stop();
      await page.getByText(/^1 of 1: 1 /).waitFor();
      for (const id of ["east-1", "east-2"]) await api("DELETE", `/agents/${id}`, accountToken);
    });

    it("says why it calls none of many agents", async () => {
      await addAgent("west-1", "west-1");
      const { page } = await open();
      await logIn(page);
      const agent_token = secrets.get("west-1");
      // A device key belongs to other packet versions.
      const entry = { agent_token, packet_version: "1", device_key: "A".repeat(43) };
      const buffer = Buffer.from(JSON.stringify({ keyring: { "west-1": entry } }));
      const file = { name: "default.json", mimeType: "application/json", buffer };
      await page.getByLabel("Keyring").setInputFiles(file);
      await page.getByLabel("Part of a name or identifier").fill("west-1");
      page.on("dialog", (dialog) => void dialog.accept());
      await page.getByText("Call these agents").click();
      await page.getByRole("button", { name: "Call 1" }).click();
      await page.getByRole("alert").getByText("a device key belongs to packet versions").waitFor();
      await api("DELETE", "/agents/west-1", accountToken);
    });

    it("stays where somebody has gone while an agent was deleted", async () => {
      await addAgent("spare-2", "Spare 2");
      const { page } = await open();
      await logIn(page);
      let answer = (): void => undefined;
      const held = new Promise<void>((resolve) => {
        answer = resolve;
      });
      await page.route("**/agents/spare-2", async (route) => {
        if (route.request().method() === "DELETE") await held;
        await route.continue();
      });
      await page.goto(`${relay.url}/console#/agents/spare-2`);
      await page.getByText("Manage Spare 2").click();
      page.on("dialog", (dialog) => void dialog.accept());
      await page.getByRole("button", { name: "Delete the agent" }).click();
      await page.getByRole("link", { name: "Keys" }).click();
      await page.getByRole("heading", { name: "Access keys" }).waitFor();
      const deleted = page.waitForResponse((response) => response.request().method() === "DELETE");
      answer();
      await deleted;
      await page.getByRole("button", { name: "Refresh" }).click();
      expect(await page.getByRole("heading", { name: "Access keys" }).count()).toBe(1);
    });

    it("lists no agent that was deleted while the list was read", async () => {
      await addAgent("spare-3", "Spare 3");
      const { page } = await open();
      let answer = (): void => undefined;
      const held = new Promise<void>((resolve) => {
        answer = resolve;
      });
      await page.route("**/agents?**", async (route) => {
        const response = await route.fetch();
        await held;
        await route.fulfill({ response });
      });
      await logIn(page);
      await page.goto(`${relay.url}/console#/agents/spare-3`);
      await page.getByText("Manage Spare 3").click();
      page.on("dialog", (dialog) => void dialog.accept());
      await page.getByRole("button", { name: "Delete the agent" }).click();
      await page.getByRole("heading", { name: "Agents" }).waitFor();
      answer();
      await page.getByText(/^\d+ agents, /).waitFor();
      expect(await page.getByText("spare-3").count()).toBe(0);
    });

    it("asks no relay without end that repeats a page of the list", async () => {
      const { page } = await open();
      let asked = 0;
      await page.route("**/agents?**", async (route) => {
        asked += 1;
        const url = route.request().url().replace("cursor=again", "");
        const { items } = await (await route.fetch({ url })).json();
        await route.fulfill({ json: { items, next_cursor: "again" } });
      });
      await logIn(page);
      await page.getByText("does not end its list of agents").waitFor();
      expect(asked).toBe(2);
    });

    it("lists no agent that was deleted while it was looked up", async () => {
      await addAgent("spare-6", "Spare 6");
      const { page } = await open();
      await logIn(page);
      let answer = (): void => undefined;
      const held = new Promise<void>((resolve) => {
        answer = resolve;
      });
      await page.route("**/agents/spare-6", async (route) => {
        if (route.request().method() === "DELETE") return route.continue();
        const response = await route.fetch();
        await held;
        await route.fulfill({ response });
      });
      await page.goto(`${relay.url}/console#/agents/spare-6`);
      await page.getByText("Manage Spare 6").click();
      // What goes online is looked up: its firmware may have changed.
      const asked = page.waitForRequest("**/agents/spare-6");
      await startValve("spare-6");
      await asked;
      page.on("dialog", (dialog) => void dialog.accept());
      await page.getByRole("button", { name: "Delete the agent" }).click();
      await page.getByRole("heading", { name: "Agents" }).waitFor();
      const late = page.waitForResponse("**/agents/spare-6");
      answer();
      await late;
      await page.getByRole("link", { name: "Keys" }).click();
      await page.getByRole("link", { name: "Agents" }).click();
      await page.getByText(/^\d+ agents, /).waitFor();
      expect(await page.getByText("spare-6").count()).toBe(0);
    });

    it("renews a relay token once though the answer was lost and it is asked again", async () => {
      await addAgent("spare-7", "Spare 7");
      const { page } = await open();
      await logIn(page);
      await page.goto(`${relay.url}/console#/agents/spare-7`);
      await page.getByText("Manage Spare 7").click();
      await page.route("**/rotate-token", async (route) => {
        await route.fetch();
        await route.abort();
        await page.unroute("**/rotate-token");
      });
      const keys: (string | undefined)[] = [];
      page.on("request", (request) => {
        if (request.method() === "POST") keys.push(request.headers()["idempotency-key"]);
      });
      page.on("dialog", (dialog) => void dialog.accept());
      const rotate = page.getByRole("button", { name: /relay token/ });
      await rotate.click();
      await page.getByRole("alert").getByText("The relay does not answer.").waitFor();
      await rotate.click();
      await page.getByText(/^agt_/).waitFor();
      expect(keys).toEqual([keys[0], keys[0]]);
      expect(keys[0]).toMatch(/^[\w-]{22}$/);
      await api("DELETE", "/agents/spare-7", accountToken);
    });

    it("lists an agent no more that another program has deleted", async () => {
      await addAgent("spare-4", "Spare 4");
      await startValve("spare-4");
      const { page } = await open();
      await logIn(page);
      const row = page.getByRole("row", { name: /spare-4 online/ });
      await row.waitFor();
      await api("DELETE", "/agents/spare-4", accountToken);
      await page.getByRole("row", { name: /spare-4/ }).waitFor({ state: "detached" });
    });

    it("takes a deletion whose answer was lost for done at the next try", async () => {
      await addAgent("spare-5", "Spare 5");
      const { page } = await open();
      await logIn(page);
      await page.route("**/agents/spare-5", async (route) => {
        if (route.request().method() !== "DELETE") return route.continue();
        await route.fetch();
        await route.abort();
        await page.unroute("**/agents/spare-5");
      });
      await page.goto(`${relay.url}/console#/agents/spare-5`);
      await page.getByText("Manage Spare 5").click();
      page.on("dialog", (dialog) => void dialog.accept());
      await page.getByRole("button", { name: "Delete the agent" }).click();
      await page.getByRole("alert").getByText("The relay does not answer.").waitFor();
      await page.getByRole("button", { name: "Delete the agent" }).click();
      await page.getByRole("heading", { name: "Agents" }).waitFor();
      expect(await page.getByText("spare-5").count()).toBe(0);
    });

    it("says no more why a secret was wrong once another one has opened the agent", async () => {
      await startValve("pump-7");
      const { page } = await open();
      await logIn(page);
      const keyring = { "pump-7": { agent_token: secrets.get("lamp-1"), packet_version: "1" } };
      const buffer = Buffer.from(JSON.stringify({ keyring }));
      const file = { name: "default.json", mimeType: "application/json", buffer };
      await page.getByLabel("Keyring").setInputFiles(file);
      await page
        .getByRole("row", { name: /pump-7/ })
        .getByRole("link")
        .click();
      const wrong = page.getByRole("alert").getByText("secret or packet version is wrong");
      await wrong.waitFor();
      await page.getByLabel("End-to-end secret").fill(secrets.get("pump-7") ?? "");
      await page.getByRole("button", { name: "Open" }).click();
      await page.getByRole("heading", { name: "Call a method" }).waitFor();
      await wrong.waitFor({ state: "detached" });
      // Nor does the same keyring, once more, displace what has opened it.
      await page.getByRole("link", { name: "Agents" }).click();
      await page.getByLabel("Keyring").setInputFiles(file);
      await page
        .getByRole("row", { name: /pump-7/ })
        .getByRole("link")
        .click();
      await page.getByText("Take its secret to another machine").click();
      const downloading = page.waitForEvent("download");
      await page.getByRole("button", { name: "Save its secret as a file" }).click();
      const saved = readFileSync((await (await downloading).path()) as string, "utf8");
      expect(decodeKeyring(saved).keys.get("pump-7")?.agent_token).toBe(secrets.get("pump-7"));
    });

    it("lists no access key again that was removed while more were read", async () => {
      await api("POST", "/account/keys", accountToken, { name: "first", scopes: ["read"] });
      const { page } = await open();
      let answer = (): void => undefined;
      const held = new Promise<void>((resolve) => {
        answer = resolve;
      });
      await page.route("**/account/keys?**", async (route) => {
        const isFirst = !route.request().url().includes("cursor");
        const response = await route.fetch(
          isFirst ? {} : { url: `${relay.url}/api/v1/account/keys` },
        );
        const page = (await response.json()) as { items: object[] };
        if (!isFirst) await held;
        const more = isFirst
          ? { ...page, next_cursor: "more" }
          : {
              items: page.items.map((key) => ({ ...key, id: "other", name: "other" })),
              next_cursor: null,
            };
        await route.fulfill({ response, json: more });
      });
      await logIn(page);
      await page.getByRole("link", { name: "Keys" }).click();
      const row = page.getByRole("row", { name: /first/ });
      await row.waitFor();
      await page.getByRole("button", { name: "Show more" }).click();
      page.on("dialog", (dialog) => void dialog.accept());
      await row.getByRole("button", { name: "Remove first" }).click();
      await row.waitFor({ state: "detached" });
      answer();
      await page.getByRole("row", { name: /other/ }).first().waitFor();
      expect(await row.count()).toBe(0);
    });

    it("calls an agent, shows its answers, refusals and events, and never sends the secret", async () => {
      await startValve("pump-7");
      const { page, complaints, sent } = await open();
      await logIn(page);
      await openAgent(page, "pump-7");
      const offered = () =>
        page
          .locator("datalist option")
          .evaluateAll((options) => options.map((option) => (option as HTMLOptionElement).value));
      await expect.poll(offered, PATIENCE).toContain("valve.open");

      await call(page, "valve.open", '{"percent": 40}');
      await page.getByText(/valve\.open answered after \d+ ms/).waitFor();
      const result = page.getByRole("region", { name: "Result" });
      expect(JSON.parse((await result.textContent()) ?? "")).toEqual({ percent: 40 });
      const event = page.getByRole("log").getByRole("listitem").first();
      expect(await event.textContent()).toContain('valve.moved {"percent":40}');
      await picture(page, "called");

      await call(page, "valve.open", '{"percent": 101}');
      await page.getByText("valve.open: more than open (7)").waitFor();
      await call(page, "valve.open", "{percent: 1}");
      await page.getByText(/invalid JSON \(line 1/).waitFor();
      expect(await page.getByLabel("Parameters").getAttribute("aria-invalid")).toBe("true");
      await picture(page, "declined");

      // The record is complete: it contains the login's password, and sealed packets.
      const all = sent.join("\n");
      expect(all).toContain(PASSWORD);
      expect(sent.filter((text) => /"p\\?":\\?"[\w-]{22,}/.test(text)).length).toBeGreaterThan(4);
      for (const form of formsOf(secrets.get("pump-7") ?? "")) expect(all).not.toContain(form);
      expect(all).not.toContain("percent");
      const kept = await page.evaluate(async () => ({
        local: Object.keys(localStorage),
        session: Object.keys(sessionStorage),
        cookies: document.cookie,
        databases: await indexedDB.databases(),
        address: location.href,
      }));
      const address = `${relay.url}/console#/agents/pump-7`;
      expect(kept).toEqual({ local: [], session: [], cookies: "", databases: [], address });
      expect(complaints).toEqual([]);
    });

    it("misses nothing while a busy or hidden page draws no frames", async () => {
      await startValve("pump-7");
      const { page } = await open(() => {
        const { setTimeout: later } = window;
        // Preact's effects wait for a frame, or for a short timer.
        const slowly = (run: () => void, ms = 0) => later(run, ms < 50 ? 1000 : ms);
        Object.assign(window, { requestAnimationFrame: () => 0, setTimeout: slowly });
      });
      await logIn(page);
      await openAgent(page, "pump-7");
    });

    it("reads a secret from a keyring file, and names the kind of a wrong one", async () => {
      await startValve("pump-7");
      const { page } = await open();
      await logIn(page);
      await page.goto(`${relay.url}/console#/agents/pump-7`);
      await page.getByLabel("End-to-end secret").fill(tokens.get("pump-7") ?? "");
      await page.getByRole("button", { name: "Open" }).click();
      await page
        .getByRole("alert")
        .getByText(/end-to-end secret/)
        .waitFor();
      const keyring = Object.fromEntries(
        [...secrets].map(([id, agent_token]) => [id, { agent_token, packet_version: "1" }]),
      );
      const file = { name: "default.json", mimeType: "application/json" };
      const buffer = Buffer.from(JSON.stringify({ keyring }));
      await page.getByLabel("load it from a file").setInputFiles({ ...file, buffer });
      await page.getByRole("button", { name: "Open" }).click();
      await page.getByRole("heading", { name: "Call a method" }).waitFor();
    });

    it("changes the secret of a device over the air, and never sends it readably", async () => {
      await addAgent("door-3", "Door 3");
      const pushKey = makeToken("push", randomBytes(32));
      const agent = await startValve("door-3", { pushKey });
      const { page, complaints, sent } = await open();
      await logIn(page);
      await openAgent(page, "door-3");
      await page.getByText("Change its secret").click();
      const downloading = page.waitForEvent("download");
      await page.getByRole("button", { name: "Make a new secret and save it" }).click();
      const saved = readFileSync((await (await downloading).path()) as string, "utf8");
      const renewed = decodeKeyring(saved).keys.get("door-3")?.agent_token ?? "";
      expect(renewed).not.toBe(secrets.get("door-3"));
      await page.getByRole("button", { name: "Send it to the device" }).click();
      await page.getByRole("alert").getByText("--push-key").waitFor();
      await page.getByLabel("Push key").fill(pushKey);
      await lookAt(page, "change-secret");
      await page.getByRole("button", { name: "Send it to the device" }).click();
      await page.getByText("door-3 has the new secret").waitFor();
      await call(page, "valve.open", '{"percent": 40}');
      await page.getByText(/valve\.open answered after/).waitFor();
      // The event came to the new session once.
      const moved = page.getByRole("log").getByText("valve.moved");
      await moved.first().waitFor();
      expect(await moved.count()).toBe(1);
      await picture(page, "secret-changed");
      await agent.stop();
      await startValve("door-3", { agentToken: renewed });
      for (const secret of [renewed, pushKey, secrets.get("door-3") ?? ""])
        for (const form of formsOf(secret)) expect(sent.join("\n")).not.toContain(form);
      expect(complaints).toEqual([]);
      // Other tests count the agents.
      await relay.api("DELETE", "/agents/door-3", { token: accountToken });
    });

    it("finds agents by any part of name or identifier, counts and sorts them", async () => {
      await addAgent("dev-00150", "Dévice 150");
      await addAgent("dev-00020", "Dévice 20");
      await startValve("dev-00020");
      const { page } = await open();
      await logIn(page);
      await page.getByText(/^4 agents, 1 online$/).waitFor();
      const shown = async (text: string, wanted: string[]) => {
        await page.getByLabel("Part of a name or identifier").fill(text);
        const ids = () => page.locator("th code.id").allTextContents();
        await expect.poll(ids, PATIENCE).toEqual(wanted);
      };
      for (const text of ["150", "dev-0015", "DÉVICE 15", "device 15"])
        await shown(text, ["dev-00150"]);
      await page.getByText(/^1 of 4 agents, 1 online$/).waitFor();
      await shown("dev", ["dev-00020", "dev-00150"]);
      await page.getByRole("button", { name: "Agent", exact: true }).click();
      await shown("dev", ["dev-00150", "dev-00020"]);
      await page.getByRole("button", { name: "Presence", exact: true }).click();
      await shown("dev", ["dev-00020", "dev-00150"]);
      await shown("nothing", []);
      await page.getByText("No agent matches the filter.").waitFor();
    });

    it("opens every agent of one keyring, and never sends a secret of it", async () => {
      for (const id of ["pump-7", "lamp-1"]) await startValve(id);
      const { page, sent } = await open();
      await logIn(page);
      const keyring = Object.fromEntries(
        [...secrets].map(([id, agent_token]) => [id, { agent_token, packet_version: "1" }]),
      );
      const buffer = Buffer.from(`\uFEFF${JSON.stringify({ keyring })}`);
      const file = { name: "default.json", mimeType: "application/json", buffer };
      await page.getByLabel("Keyring").setInputFiles(file);
      await page.getByText(`${secrets.size} secrets are in this page's memory`).waitFor();
      for (const id of ["pump-7", "lamp-1"]) {
        await page.getByRole("link", { name: "Agents", exact: true }).click();
        await page
          .getByRole("row", { name: new RegExp(id) })
          .getByRole("link")
          .click();
        await page.getByRole("heading", { name: "Call a method" }).waitFor();
      }
      await call(page, "valve.shut", "");
      await page.getByText("It has valve.open, valve.hang, valve.jam.").waitFor();
      for (const secret of secrets.values())
        for (const form of formsOf(secret)) expect(sent.join("\n")).not.toContain(form);
    });

    it("chooses agents by a selector, and calls those with an outcome for each", async () => {
      for (const [id, name] of [
        ["north-1", "North one"],
        ["north-2", "North two"],
      ] as const) {
        await addAgent(id, name);
        await api("PATCH", `/agents/${id}`, accountToken, { labels: { side: "north" } });
      }
      await startValve("north-1");
      const { page, complaints } = await open();
      await logIn(page);
      await page.getByLabel("Part of a name or identifier").fill("label.side=north");
      await page.getByText(/^2 of \d+ agents, 1 online$/).waitFor();
      const keyring = { "north-1": { agent_token: secrets.get("north-1"), packet_version: "1" } };
      const buffer = Buffer.from(JSON.stringify({ keyring }));
      const file = { name: "default.json", mimeType: "application/json", buffer };
      await page.getByLabel("Keyring").setInputFiles(file);
      page.on("dialog", (dialog) => void dialog.accept());
      await page.getByText("Call these agents").click();
      await page.getByLabel("Method of each").fill("valve.open");
      await page.getByLabel("Parameters of each").fill('{"percent": 30}');
      await page.getByRole("button", { name: "Call 2" }).click();
      await page
        .getByText("2 of 2: 1 skipped, 1 ok")
        .or(page.getByText("2 of 2: 1 ok, 1 skipped"))
        .waitFor();
      await page.getByRole("row", { name: /north-1 ok {"percent":30}/ }).waitFor();
      await page.getByRole("row", { name: /north-2 skipped .*secret/ }).waitFor();
      await page.getByRole("row", { name: /North one north-1 side=north online/ }).waitFor();
      await lookAt(page, "call-many");
      expect(complaints).toEqual([]);
    });

    it("shows an agent's log, and what comes later", async () => {
      await startValve("pump-7");
      const { page } = await open();
      await logIn(page);
      await openAgent(page, "pump-7");
      await page.getByText(/^Start \d+;/).waitFor();
      await call(page, "valve.jam", "");
      await page.getByRole("log", { name: "Log, oldest first" }).getByText("jammed").waitFor();
      await lookAt(page, "log");
    });

    it("makes an access key, shows it once, and removes it", async () => {
      const { page, complaints } = await open();
      await logIn(page);
      await page.getByRole("link", { name: "Keys" }).click();
      await page.getByRole("heading", { name: "Access keys" }).waitFor();
      await page.getByText("Make a key").click();
      await page.getByLabel("Name").fill("ci");
      await page.getByLabel("call: call agents").check();
      await page.getByLabel("Only these agents").fill("firmware<2.0.0");
      await page.getByRole("button", { name: "Make the key" }).click();
      await page
        .getByRole("alert")
        .getByText(/shape|selector|id and label/)
        .waitFor();
      await page.getByLabel("Only these agents").fill("label.side=north");
      await page.getByRole("button", { name: "Make the key" }).click();
      const key = (await page.getByLabel("Access key", { exact: true }).textContent()) ?? "";
      expect(key).toMatch(/^key_/);
      const row = page.getByRole("row", { name: /ci read, call label\.side=north/ });
      await row.waitFor();
      await lookAt(page, "keys");
      expect((await relay.api("GET", "/agents", { token: key })).status).toBe(200);
      page.on("dialog", (dialog) => void dialog.accept());
      await row.getByRole("button", { name: "Remove ci" }).click();
      await row.waitFor({ state: "detached" });
      expect((await relay.api("GET", "/agents", { token: key })).status).toBe(401);
      // The refused selector is a 422, which browsers log by themselves.
      expect(complaints.filter((text) => !text.includes("422"))).toEqual([]);
    });

    it("renames an agent, rotates its relay token, and deletes it", async () => {
      await addAgent("spare-1", "Spare");
      const { page, complaints } = await open();
      await logIn(page);
      await page.goto(`${relay.url}/console#/agents/spare-1`);
      await page.getByText("Manage Spare").click();
      await page.getByLabel("Name", { exact: true }).fill("Spare pump");
      await page.getByRole("button", { name: "Rename" }).click();
      await page.getByRole("heading", { name: "Spare pump" }).waitFor();
      page.on("dialog", (dialog) => void dialog.accept());
      await page.getByRole("button", { name: "Rotate the relay token" }).click();
      const token = (await page.getByLabel("Relay token").textContent()) ?? "";
      expect(token).toMatch(/^agt_/);
      expect(token).not.toBe(tokens.get("spare-1"));
      await picture(page, "manage-agent");
      expect(await violationsOn(page, null)).toEqual([]);
      await page.getByRole("button", { name: "Delete the agent" }).click();
      await page.getByRole("heading", { name: "Agents" }).waitFor();
      await expect.poll(() => page.getByText("spare-1").count(), PATIENCE).toBe(0);
      expect((await relay.api("GET", "/agents/spare-1", { token: accountToken })).status).toBe(404);
      expect(complaints).toEqual([]);
    });

    it("shows releases to all, and the audit log to admins only", async () => {
      const release = { runtime: "node", channel: "stable", version: "1.5.0" };
      await api("POST", "/releases", accountToken, release);
      await addUser("eve");
      const { page } = await open();
      await logIn(page);
      await page.getByRole("link", { name: "Releases" }).click();
      await page.getByRole("row", { name: /1\.5\.0.*draft/ }).waitFor();
      await page.getByRole("link", { name: "Audit" }).click();
      await page.getByRole("row", { name: /ada.*release\.create/ }).waitFor();
      // A name where the log has an identifier.
      await page.getByRole("row", { name: /user\.create eve/ }).waitFor();
      await page.getByRole("button", { name: "Log out" }).click();
      await page.getByRole("heading", { name: "Log in" }).waitFor();
      const code = await addUser("bob");
      await logIn(page, "bob", code);
      await page.getByRole("link", { name: "Releases" }).waitFor();
      expect(await page.getByRole("link", { name: "Audit" }).count()).toBe(0);
    });

    it("publishes, rolls out, pauses, withdraws and deletes releases", async () => {
      const made = async (version: string): Promise<string> => {
        const names = { runtime: "node", channel: "managed", version };
        const { id } = await api<{ id: string }>("POST", "/releases", accountToken, names);
        return id;
      };
      const id = await made("2.0.0");
      await made("2.1.0");
      const image = Buffer.from("firmware");
      const sha256 = createHash("sha256").update(image).digest("hex");
      const names = { runtime: "node", channel: "managed", version: "2.0.0" };
      const text = releaseText({ ...names, size: image.length, sha256 });
      const uploaded = await fetch(`${relay.url}/api/v1/releases/${id}/artifact`, {
        method: "PUT",
        headers: {
          authorization: `Bearer ${accountToken}`,
          "content-type": "application/octet-stream",
          "release-signature": sign(null, Buffer.from(text), releaseKey).toString("base64url"),
        },
        body: image,
      });
      expect(uploaded.status).toBe(200);

      const { page, complaints } = await open();
      await logIn(page);
      await page.getByRole("link", { name: "Releases" }).click();
      const manage = async (version: string) => {
        const row = page.getByRole("row", { name: new RegExp(version.replaceAll(".", "\\.")) });
        await row.getByText(`Manage node managed ${version}`).click();
        return row;
      };
      const state = async () => {
        const release = await api<Release>("GET", `/releases/${id}`, accountToken);
        return [release.status, release.rollout.percent, release.rollout.paused];
      };
      const row = await manage("2.0.0");
      await row.getByRole("button", { name: "Publish" }).click();
      await row.getByText("published").waitFor();
      await row.getByLabel("Percent of the devices").fill("10");
      await row.getByRole("button", { name: "Roll out" }).click();
      await row.getByText("10 %").waitFor();
      await row.getByRole("button", { name: "Pause" }).click();
      await row.getByText("10 %, paused").waitFor();
      expect(await state()).toEqual(["published", 10, true]);
      await lookAt(page, "manage");
      await row.getByRole("button", { name: "Resume" }).click();
      await row.getByText("10 %", { exact: true }).waitFor();

      // Declining the question withdraws nothing.
      page.once("dialog", (dialog) => void dialog.dismiss());
      await row.getByRole("button", { name: "Withdraw" }).click();
      expect(await state()).toEqual(["published", 10, false]);
      page.on("dialog", (dialog) => void dialog.accept());
      await row.getByRole("button", { name: "Withdraw" }).click();
      await row.getByText("yanked").waitFor();
      expect(await state()).toEqual(["yanked", 10, false]);
      const draft = await manage("2.1.0");
      await draft.getByText("Its artifact is missing").waitFor();
      await draft.getByRole("button", { name: "Delete the draft" }).click();
      await draft.waitFor({ state: "detached" });
      expect(complaints).toEqual([]);
    });

    it("sets up a second factor at the first login, and shows the recovery codes", async () => {
      await api("POST", "/admin/users", accountToken, {
        ...{ username: "frida", password: PASSWORD, role: "user" },
      });
      const { page, complaints } = await open();
      const enter = async (label: string, code: string, button: string) => {
        await page.getByLabel(label).fill(code);
        await page.getByRole("button", { name: button }).click();
      };
      await page.getByLabel("User name").fill("frida");
      await page.getByLabel("Password").fill(PASSWORD);
      await page.getByRole("button", { name: "Log in" }).click();
      await page.getByRole("heading", { name: "Set up your second factor" }).waitFor();
      const secret = (await page.locator("code.secret").textContent()) ?? "";
      expect(await page.getByRole("link").getAttribute("href")).toContain(secret);
      await picture(page, "enrol");
      expect(await violationsOn(page, null)).toEqual([]);
      await enter("The code that it shows", "000000", "Confirm");
      await page.getByRole("alert").getByText("wait for a fresh code").waitFor();
      relay.advance(60);
      await enter("The code that it shows", relay.totpCode(secret), "Confirm");
      await page.getByRole("heading", { name: "Keep your recovery codes" }).waitFor();
      const codes = page.getByRole("list", { name: "Recovery codes" }).getByRole("listitem");
      expect(await codes.count()).toBeGreaterThan(4);
      // Nobody loses them by a key.
      const asked = page.waitForEvent("dialog");
      page.once("dialog", (dialog) => void dialog.dismiss());
      void page.evaluate(() => location.reload()).catch(() => undefined);
      expect((await asked).type()).toBe("beforeunload");
      await page.setViewportSize({ width: 360, height: 740 });
      await picture(page, "recovery-codes");
      expect(await violationsOn(page, null)).toEqual([]);
      relay.advance(60);
      await enter("The next code", relay.totpCode(secret), "Log in");
      await page.getByRole("heading", { name: "Agents" }).waitFor();
      // A refused code is a 401, which browsers log by themselves.
      expect(complaints.filter((text) => !text.includes("401"))).toEqual([]);
    });

    it("returns to the login, with the reason, when its session is ended elsewhere", async () => {
      const { page } = await open();
      await logIn(page);
      accountToken = (await api<{ api_token: string }>("POST", "/auth/token/rotate", accountToken))
        .api_token;
      await page.getByRole("heading", { name: "Log in" }).waitFor();
      await page.getByRole("alert").getByText("Log in again").waitFor();
    });

    it("satisfies axe and fits the screen in every view, light, dark and on a phone", async () => {
      await startValve("pump-7");
      const { page } = await open();
      await lookAt(page, "login");
      await logIn(page);
      await page.getByRole("row", { name: /pump-7.*online/ }).waitFor();
      await lookAt(page, "agents");
      await page.goto(`${relay.url}/console#/agents/pump-7`);
      await page.getByRole("heading", { name: "Open this agent" }).waitFor();
      await lookAt(page, "secret");
      await openAgent(page, "pump-7");
      await call(page, "valve.open", '{"percent": 40}');
      await page.getByText(/answered after/).waitFor();
      await lookAt(page, "call");
      for (const view of ["Events", "Releases", "Audit"]) {
        await page.getByRole("link", { name: view, exact: true }).click();
        await page.getByRole("heading", { name: view }).waitFor();
        if (view === "Audit") await page.getByRole("row").nth(1).waitFor();
        await lookAt(page, view.toLowerCase());
      }
    });
  },
);

it("is served with a strict policy, and again only when it changed", async () => {
  const page = await fetch(`${relay.url}/console`);
  expect(page.headers.get("content-type")).toBe("text/html; charset=utf-8");
  const policy = page.headers.get("content-security-policy") ?? "";
  expect(policy).toContain("default-src 'none'; script-src 'self'; style-src 'self'");
  expect(policy).not.toMatch(/https?:|\*|unsafe/);
  expect(page.headers.get("permissions-policy")).toBe("serial=(self)");
  expect(await page.text()).not.toMatch(/<style|<script[^>]*>[^<]|\son\w+=|style=/);
  for (const name of ["console.js", "console.css", "board.js", "blindrelay-wifi-push-2.bin"]) {
    const first = await fetch(`${relay.url}/console/${name}`);
    expect(first.status).toBe(200);
    const headers = { "if-none-match": first.headers.get("etag") ?? "" };
    expect((await fetch(`${relay.url}/console/${name}`, { headers })).status).toBe(304);
  }
  for (const name of ["build.ts", "constructor", "..%2fpackage.json"]) {
    expect((await fetch(`${relay.url}/console/${name}`)).status).toBe(404);
  }
});
