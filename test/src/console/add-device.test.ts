/**
 * "Add a device" in a real browser, on a real relay: a page whose port leads to a double of a board
 * makes it an agent and calls it; what leaves the page, and what a person reads when it goes wrong.
 */
import { randomBytes } from "node:crypto";
import { constants, mkdtempSync, openSync, rmSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Duplex } from "node:stream";
import { ReadStream } from "node:tty";
import { makeToken } from "@blindrelay/protocol";
import { decodeKeyring } from "@blindrelay/protocol/keyring";
import {
  BROWSER_TIMEOUT_MS,
  CHROMIUM,
  CHROMIUM_FLAGS,
  HAS_CHROMIUM,
} from "@blindrelay/relay-server/testing";
import { EspruinoDouble } from "@blindrelay/tools/testing/repl/double";
import type { DoubleOptions } from "@blindrelay/tools/testing/repl/options";
import { RealEspruino } from "@blindrelay/tools/testing/repl/pty";
import { type Browser, chromium, type Page } from "playwright-core";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { type Account, Relay } from "../specification/relay.ts";
import { formsOf, logInAs, lookAt, openPage, PATIENCE, picture } from "./browser.ts";
import { chooseNoPort, type Device, WebPort } from "./web-serial.ts";

const { O_RDWR, O_NOCTTY } = constants;
/** Espruino's Linux build. */
const ENGINE = process.env.ESPRUINO_BIN;
/** Unplugs at random bytes, by hand; else one, at the beginning, where more than one thing ends. */
const { CONSOLE_UNPLUGS } = process.env;
const UNPLUGS = Number(CONSOLE_UNPLUGS ?? 1);
const WIFI = { ssid: "the pumps' own", password: "a password of this Wi-Fi" };
const OLD = 'print("the old program")';
const MINUTE_S = 60;
/** At 115,200 baud. */
const BYTES_PER_S = 11_520;
/** What passes through the port in a set-up, somewhat less than all of it. */
const BYTES = CONSOLE_UNPLUGS === undefined ? 10_000 : 100_000;

let relay: Relay;
let admin: Account;
let browser: Browser;
const doubles: EspruinoDouble[] = [];

const makeDouble = (options: Partial<DoubleOptions> = {}): EspruinoDouble => {
  const double = new EspruinoDouble({ air: WIFI, ...options });
  doubles.push(double);
  return double;
};

/** At the form's beginning: logged in, with this board at the port. */
const begin = async (device: Device) => {
  const opened = await openPage(browser);
  const { page } = opened;
  const port = await WebPort.on(page);
  port.plug(device);
  await page.goto(`${relay.url}/console`);
  await logInAs(page, "ada", "");
  await page.getByRole("link", { name: "Add a device" }).first().click();
  await page.getByRole("heading", { name: "Add a device" }).waitFor();
  return { ...opened, port };
};

const choose = (page: Page): Promise<void> =>
  page.getByRole("button", { name: /^Choose (its|another) port$/ }).click();

const describeDevice = async (page: Page, id: string): Promise<void> => {
  await page.getByLabel("Name").fill("Pump in hall 7");
  await page.getByLabel("Identifier").fill(id);
  await page.getByLabel("Wi-Fi").fill(WIFI.ssid);
  await page.getByLabel("Its password").fill(WIFI.password);
};

const callEcho = async (page: Page): Promise<void> => {
  await page.getByRole("combobox", { name: "Method" }).fill("echo");
  await page.getByLabel("Parameters").fill('{"percent": 40}');
  await page.getByRole("button", { name: "Call" }).click();
  await page.getByText(/^echo answered after/).waitFor();
};

const setUp = (page: Page): Promise<void> =>
  page.getByRole("button", { name: "Set up the board" }).click();

const alertOf = (page: Page, text: string | RegExp) => page.getByRole("alert").getByText(text);

const agents = async (): Promise<string[]> => {
  const { json } = await relay.api("GET", "/agents", { token: admin.accountToken });
  return (json as { items: { agent_id: string }[] }).items.map(({ agent_id }) => agent_id);
};

const look = (page: Page, view: string): Promise<void> => lookAt(page, `add-${view}`);

beforeAll(async () => {
  relay = await new Relay().start();
  admin = await relay.admin();
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
      for (const context of browser.contexts()) await context.close();
      for (const double of doubles.splice(0)) double.end();
    });

    it("still has the only copy of a secret when its login has ended", async () => {
      const user = await relay.user();
      const double = makeDouble();
      const { page } = await begin(double);
      await choose(page);
      await page.getByText("Espruino 2v29").waitFor();
      await describeDevice(page, "pump-6");
      await setUp(page);
      const onBoard = page.getByRole("heading", { name: "Keep its secret" });
      await onBoard.waitFor({ timeout: BROWSER_TIMEOUT_MS });
      const rotate = () =>
        relay.api("POST", "/auth/token/rotate", { token: admin.accountToken, body: {} });
      const { json } = await rotate();
      admin = { ...admin, accountToken: (json as { api_token: string }).api_token };
      await page.getByRole("heading", { name: "Keep what this page has made" }).waitFor();
      const { agent_token } = JSON.parse(double.storage.read("blindrelay.json") ?? "");
      const save = async (): Promise<string> => {
        const downloading = page.waitForEvent("download");
        await page.getByRole("button", { name: "Save its secret as a file" }).click();
        return readFile(await (await downloading).path(), "utf8");
      };
      await page.evaluate('location.hash = "#/agents"');
      await logInAs(page, user.username, "");
      await page.getByRole("button", { name: "Log out" }).click();
      await page.getByRole("heading", { name: "Keep what this page has made" }).waitFor();
      // Its owner has it in the page as before, even while the board is away.
      double.end();
      await page.evaluate('location.hash = "#/agents"');
      await logInAs(page, "ada", "");
      await page.getByRole("link", { name: "Pump in hall 7" }).click();
      await page.getByText("Take its secret to another machine").click();
      expect(decodeKeyring(await save()).keys.get("pump-6")?.agent_token).toBe(agent_token);
    });

    it("sets a board up, sees it online and calls it, and sends none of its secrets", async () => {
      const double = makeDouble();
      const before = { agent_id: "lamp-1", push_key: makeToken("push", randomBytes(32)) };
      double.storage.write("blindrelay.json", JSON.stringify(before));
      const { page, port, complaints, sent } = await begin(double);
      let began = performance.now();
      /** A person takes no time to look at it. */
      const lookAside = async (view: string): Promise<void> => {
        const stoppedAt = performance.now();
        await look(page, view);
        began += performance.now() - stoppedAt;
      };
      await choose(page);
      await page.getByText("Espruino 2v29").waitFor();
      await page.getByText("lamp-1").waitFor();
      await lookAside("form");
      await describeDevice(page, "pump-7");
      await setUp(page);
      await page.getByText(/^Writing the SDK/).waitFor();
      const another = page.getByRole("button", { name: "Choose another port" });
      expect(await another.isDisabled()).toBe(true);
      await picture(page, "light-add-writing");
      await page.getByText(/^online It answered: espruino 2v29/).waitFor();
      await lookAside("online");
      // Nobody loses the only copy by a click.
      const dismissed = new Promise<string>((resolve) => {
        page.once("dialog", (dialog) => {
          resolve(dialog.message());
          void dialog.dismiss();
        });
      });
      await page.getByRole("button", { name: "Log out" }).click();
      expect(await dismissed).toContain("The secret of pump-7 is in this page only");
      const downloading = page.waitForEvent("download");
      await page.getByRole("button", { name: "Save its secret as a file" }).click();
      const file = await (await downloading).path();
      await page.getByRole("button", { name: "Show it as a QR code" }).click();
      await page.getByRole("img", { name: "Secret of pump-7, as a QR code" }).waitFor();
      await lookAside("secret");
      await page.getByRole("link", { name: "Call it" }).click();
      await callEcho(page);
      const tookMs = performance.now() - began;
      console.log(`${port.passed} bytes, ${Math.round(tookMs)} ms to the answer`);
      // Not the time itself, which other tests lengthen: a line needs this long for the bytes.
      expect(port.passed / BYTES_PER_S).toBeLessThan(MINUTE_S / 3);

      const config = JSON.parse(double.storage.read("blindrelay.json") ?? "");
      // Programs over the relay are still for those who have its push key.
      const { push_key } = before;
      expect(config).toMatchObject({ agent_id: "pump-7", wifi: WIFI, push_key });
      const entry = decodeKeyring(await readFile(file, "utf8"));
      expect(entry.url).toBe(relay.url);
      expect(entry.keys.get("pump-7")).toEqual({
        agent_token: config.agent_token,
        packet_version: config.v,
      });
      // The record is complete: it has the call's sealed packet, and what made the agent.
      const all = sent.join("\n");
      expect(all).toContain("Pump in hall 7");
      expect(sent.some((text) => /"p\\?":\\?"[\w-]{22,}/.test(text))).toBe(true);
      for (const secret of [config.agent_token, WIFI.password, push_key])
        for (const form of formsOf(secret)) expect(all).not.toContain(form);
      expect(all).not.toContain(config.relay_token);
      expect(all).not.toContain(WIFI.ssid);
      expect(complaints).toEqual([]);

      const second = (await openPage(browser)).page;
      await second.goto(`${relay.url}/console`);
      await logInAs(second, "ada", "");
      await second.getByLabel("the text of a QR code").fill("no secret");
      await second.getByLabel("the text of a QR code").press("Enter");
      await alertOf(second, "cannot be read as a keyring: this is no entry").waitFor();
      await second.getByLabel("the text of a QR code").fill(await readFile(file, "utf8"));
      await second.getByLabel("the text of a QR code").press("Enter");
      await second.getByText("1 secret is in this page's memory").waitFor();
      await second.locator('a[href="#/agents/pump-7"]').click();
      await callEcho(second);
    });

    it.skipIf(ENGINE === undefined)(
      "sets up a real engine on a terminal (ESPRUINO_BIN)",
      async () => {
        const folder = mkdtempSync(join(tmpdir(), "blindrelay-console-"));
        const engine = new RealEspruino(ENGINE as string, folder, join(folder, "tty"));
        await engine.start();
        const terminal = new ReadStream(openSync(join(folder, "tty"), O_RDWR | O_NOCTTY));
        try {
          const connect = (stream: Duplex): void => {
            terminal.removeAllListeners("data");
            terminal.on("data", (bytes) => stream.write(bytes));
            stream.on("data", (bytes) => terminal.write(bytes));
          };
          const { page } = await begin({ connect });
          const began = performance.now();
          await choose(page);
          await page.getByLabel("Name").fill("A real engine");
          await page.getByLabel("Identifier").fill("engine-1");
          await picture(page, "light-add-engine");
          await setUp(page);
          await page.getByText(/^online It answered: espruino 2v29/).waitFor();
          await page.getByRole("link", { name: "Call it" }).click();
          await callEcho(page);
          console.log(`a real engine took ${Math.round(performance.now() - began)} ms`);
        } finally {
          terminal.destroy();
          await engine.end();
          rmSync(folder, { recursive: true, force: true });
        }
      },
    );

    it("has a terminal, with errors at file and line of the source", async () => {
      const double = makeDouble();
      const { page, complaints } = await begin(double);
      const printed = page.getByRole("log", { name: "What the board prints" });
      const type = async (line: string): Promise<void> => {
        await page.getByLabel("Type to the board").fill(line);
        await page.getByLabel("Type to the board").press("Enter");
      };
      const give = (text: string): Promise<void> =>
        page.getByLabel("… or from a file").setInputFiles({
          name: "pump.js",
          mimeType: "text/javascript",
          buffer: Buffer.from(text),
        });
      await choose(page);
      await type("print(6*7)");
      await printed.getByText(/^42$/m).waitFor();

      await describeDevice(page, "pump-8");
      await give("/* é\n*/ const x = 0.5;\nnixda(x);\nexport default (agent) => {};\n");
      await setUp(page);
      await alertOf(page, /names that this board does not have: nixda/).waitFor();
      await give(`/* é
 */ const start = (agent) => { agent.handle("x", () => 0.5); };
/* called by hand */ start.fail = () => { print("21 °C"); throw new Error("no sensor"); };
export default start;
`);
      await setUp(page);
      await page.getByText(/^online It answered: espruino 2v29/).waitFor();
      await type('setTimeout(require("program").fail, 1)');
      await printed.getByText(/at .*fail.* \(pump\.js:3:\d+\)/).waitFor();
      expect(await printed.textContent()).toContain("21 °C");
      await look(page, "terminal");
      await page.getByRole("button", { name: "Interrupt" }).click();
      // What runs is not asked who flashed it: another visit still knows the source.
      await page.goto(`${relay.url}/console#/`);
      await page.getByRole("link", { name: "Add a device" }).first().click();
      await choose(page);
      await page.getByText("pump-8").waitFor();
      await type('setTimeout(require("program").fail, 1)');
      await printed.getByText(/at .*fail.* \(pump\.js:3:\d+\)/).waitFor();
      for (let i = 0; i < 600; i++) double.print(`line ${i}.`);
      await printed.getByText("line 599.").waitFor();
      expect(await printed.textContent()).not.toContain("line 99.");

      await give("\nexport default (agent) => {\n  throw new Error('no pump');\n};\n");
      await describeDevice(page, "pump-9");
      await setUp(page);
      await alertOf(page, /could not start the program: .*no pump \(pump\.js:3:\d+\)/).waitFor();
      expect(complaints).toEqual([]);
    });

    it("closes the port of a board that is left while it is looked at", async () => {
      const double = makeDouble();
      double.stuck = true;
      const { page, port } = await begin(double);
      await choose(page);
      await expect.poll(() => port.isOpen, PATIENCE).toBe(true);
      await page.getByRole("link", { name: "Events" }).click();
      await page.getByRole("heading", { name: "Events" }).waitFor();
      double.stuck = false;
      await expect.poll(() => port.isOpen, PATIENCE).toBe(false);
      await page.evaluate('location.hash = "#/add"');
      await choose(page);
      await page.getByText("Espruino 2v29").waitFor();
    });

    it("asks before a board is left half-written", async () => {
      const { page } = await begin(makeDouble());
      await choose(page);
      await page.getByText("Espruino 2v29").waitFor();
      await describeDevice(page, "pump-5");
      await setUp(page);
      await page.getByText(/^Writing the SDK/).waitFor();
      for (const leave of [
        page.getByRole("link", { name: "Events" }),
        page.getByRole("button", { name: "Log out" }),
      ]) {
        const asked = page.waitForEvent("dialog");
        page.once("dialog", (dialog) => void dialog.dismiss());
        await leave.click();
        expect((await asked).message()).toContain("leave it half-written?");
      }
      await page.getByText(/^online It answered: espruino 2v29/).waitFor();
      // Now it is no matter.
      await page.getByRole("link", { name: "Events" }).click();
      await page.getByRole("heading", { name: "Events" }).waitFor();
    });

    it("leaves no agent of a board that is left half-written", async () => {
      const { page } = await begin(makeDouble());
      await choose(page);
      await page.getByText("Espruino 2v29").waitFor();
      await describeDevice(page, "pump-4");
      await setUp(page);
      await page.getByText(/^Writing the SDK/).waitFor();
      page.once("dialog", (dialog) => void dialog.accept());
      const removed = page.waitForResponse((answer) => answer.request().method() === "DELETE");
      await page.getByRole("link", { name: "Events" }).click();
      await page.getByRole("heading", { name: "Events" }).waitFor();
      await removed;
      expect(await agents()).not.toContain("pump-4");
      await page.getByRole("link", { name: "Agents" }).click();
      await page.getByRole("heading", { name: "Agents" }).waitFor();
    });

    it("asks before the second board is left, while the first one's agent is removed", async () => {
      const { page } = await begin(makeDouble());
      let answer = (): void => undefined;
      const held = new Promise<void>((resolve) => {
        answer = resolve;
      });
      await page.route("**/agents/lamp-8", async (route) => {
        await held;
        await route.continue();
      });
      const write = async (id: string) => {
        await choose(page);
        await page.getByText("Espruino 2v29").waitFor();
        await describeDevice(page, id);
        await setUp(page);
        await page.getByText(/^Writing the SDK/).waitFor();
      };
      await write("lamp-8");
      let stays = false;
      page.on("dialog", (dialog) => void (stays ? dialog.dismiss() : dialog.accept()));
      const asked = page.waitForRequest((request) => request.method() === "DELETE");
      await page.getByRole("link", { name: "Events" }).click();
      await asked;
      await page.getByRole("link", { name: "Agents" }).click();
      await page.getByRole("link", { name: "Add a device" }).first().click();
      await write("lamp-9");
      const removed = page.waitForResponse((given) => given.request().method() === "DELETE");
      answer();
      await removed;
      stays = true;
      const told = page.waitForEvent("dialog");
      await page.getByRole("link", { name: "Events" }).click();
      expect((await told).message()).toContain("leave it half-written?");
    });

    it("reads what is wrong with a port or a board, and tries the next", async () => {
      const { page, port } = await begin(makeDouble({ version: "2v21" }));
      const boards: [what: RegExp, fix: RegExp, plug: () => void][] = [
        [/engine is too old \(DOUBLE, Espruino 2v21\)/, /Put 2v29 or newer on it/, () => undefined],
        [
          /memory is too small/,
          /1700 variables; an agent needs about 2050/,
          () => port.plug(makeDouble({ variables: 1_700 })),
        ],
        [/lacks SHA-256/, /--slow-crypto/, () => port.plug(makeDouble({ sha256: false }))],
        [
          /it is in use/,
          /Close what has it open .*blindrelay monitor/,
          () => {
            port.problem = "Failed to open serial port.";
          },
        ],
        [
          /No Espruino answers on this port/,
          /This is MicroPython.*espruino\.com\/Download/,
          () => {
            const other = makeDouble();
            other.stuck = true;
            port.problem = "";
            port.plug(other);
            setTimeout(() => other.say("MicroPython v1.22 on 2024-01-05\r\n>>> "), 1_000);
          },
        ],
      ];
      for (const [what, fix, plug] of boards) {
        plug();
        await choose(page);
        await alertOf(page, what).waitFor();
        await alertOf(page, fix).waitFor();
      }
      await look(page, "trouble");
      await chooseNoPort(page);
      await choose(page);
      await page.getByRole("button", { name: "Choose its port" }).waitFor();
      expect(await page.getByRole("alert").allTextContents()).toEqual([""]);
    });

    it("refuses a program that boards do not run, a bad password and a taken identifier", async () => {
      const double = makeDouble();
      double.storage.write(".bootcde", OLD);
      await relay.api("POST", "/agents", {
        token: admin.accountToken,
        body: { name: "Pump", agent_id: "taken-1" },
      });
      const before = await agents();
      const { page } = await begin(double);
      await choose(page);
      await describeDevice(page, "taken-1");
      const source = page.getByRole("textbox", { name: "Program" });
      const good = await source.inputValue();
      await source.fill("export default async (agent) => {};");
      await setUp(page);
      await alertOf(page, /^Line 1, column 16: async .*return a promise/).waitFor();
      await source.fill(good);
      // Another program would be stored than the one in the file.
      await page.getByLabel("… or from a file").setInputFiles({
        name: "old.js",
        mimeType: "text/javascript",
        buffer: Buffer.from('export default () => print("21 \u00b0C");', "latin1"),
      });
      await alertOf(page, "The file is not UTF-8 text (line 1); save it as UTF-8.").waitFor();
      expect(await source.inputValue()).toBe(good);
      await page.getByLabel("Its password").fill("short");
      await setUp(page);
      await alertOf(page, "has 8 to 63 ASCII characters").waitFor();
      await page.getByLabel("Its password").fill(WIFI.password);
      await setUp(page);
      await alertOf(page, /taken.*The board keeps the program that it had/).waitFor();
      await source.fill("export default (agent) => { agent.handle('x', () => nixda()); };");
      await setUp(page);
      await alertOf(page, /names that this board does not have: nixda/).waitFor();
      expect(await agents()).toEqual(before);
      expect(double.storage.list()).toEqual([".bootcde"]);
    });

    it(
      "says what a board starts whose cable was pulled, and leaves no agent without a device",
      async () => {
        const { page, port } = await begin(makeDouble());
        const told = {
          "keeps the program that it had.": OLD,
          "starts no program until": undefined,
        };
        await choose(page);
        await page.getByLabel("Name").waitFor();
        port.pull();
        await alertOf(page, "The board was unplugged.").waitFor();
        expect(await page.getByLabel("Name").count()).toBe(0);
        const seen = new Set<string>();
        for (let i = 0; i < UNPLUGS; i++) {
          const double = makeDouble();
          double.storage.write(".bootcde", OLD);
          port.plug(double);
          await choose(page);
          await page.getByLabel("Name").waitFor();
          await describeDevice(page, `pulled-${i}`);
          port.pullsAfter = port.passed + Math.floor(((i + Math.random()) / UNPLUGS) * BYTES);
          await setUp(page);
          const alert = alertOf(page, "The board was unplugged.");
          await alert.waitFor();
          const text = (await alert.textContent()) ?? "";
          const held = double.storage.read(".bootcde");
          const sure = Object.entries(told).find(([words]) => text.includes(words));
          if (sure === undefined) expect(text).toContain("or starts none");
          else expect({ text, held }).toEqual({ text, held: sure[1] });
          seen.add(text);
          expect(await agents()).not.toContain(`pulled-${i}`);
          double.end();
        }
        expect(seen.size).toBeGreaterThan(0);
      },
      BROWSER_TIMEOUT_MS + UNPLUGS * 15_000,
    );

    it("explains itself where a browser has no ports, such as on a phone", async () => {
      const { page } = await openPage(browser, () => {
        Object.defineProperty(Navigator.prototype, "serial", { get: () => undefined });
      });
      await page.goto(`${relay.url}/console`);
      await logInAs(page, "ada", "");
      await page.goto(`${relay.url}/console#/add`);
      await page.getByText("Chrome, Edge and Opera can").waitFor();
      const commands = await page.getByRole("region", { name: "Commands" }).textContent();
      expect(commands).toContain(`blindrelay login --url ${relay.url}`);
      await look(page, "no-serial");
    });
  },
);
