/** The SDK joins a Wi-Fi on a real Espruino: a stand-in for its module, and real sockets. */
import { Engine, type EngineProcess } from "@blindrelay/agent-sdk/engines";
import { bootCode } from "@blindrelay/agent-sdk/testing/build/boot";
import { buildEspruinoWifi } from "@blindrelay/agent-sdk/testing/build/espruino";
import { makeToken } from "@blindrelay/protocol";
import { WIFI_MODULE } from "@blindrelay/tools/testing/repl/wifi";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { openRelayFixture, type RelayFixture } from "../xs/relay-fixture.ts";
import { ENGINES, whySkipped } from "./engine.ts";

/** Not ASCII: a network's name is bytes. */
const SSID = "Küche 温室";
const PASSWORD = "correct horse battery";
const PROGRAM = 'module.exports = (agent) => { agent.handle("one", () => 1); };';
/**
 * A driver for a different module than Espruino's own: it reports what an ESP8266's AT firmware
 * reports.
 */
const OWN_DRIVER = `
module.exports = (agent) => {
  agent.handle("one", () => 1);
  require("blindrelay").useNetwork({
    join: (wifi, done) => require("AT").connect(wifi.ssid, { password: wifi.password }, (problem) =>
      done(problem === "4WAY_HANDSHAKE_TIMEOUT"
        ? "WiFi connect failed: AT+CWJAP=" + wifi.password + " +CWJAP:2"
        : problem)),
    onLost: (fn) => require("AT").on("disconnected", fn),
  });
};`;

const DRIVERS = [
  { driver: "Wifi", program: PROGRAM },
  { driver: "AT", program: OWN_DRIVER },
];

/** `EngineProcess.told`, after a restart. */
const TELL = 'global.tell=(value)=>print("@@"+JSON.stringify(value));';

/** The text as a board holds it. */
const bytes = (text: string): string => Buffer.from(text).toString("latin1");

interface Told {
  readonly advice: string | null;
}

describe.each(ENGINES)("$name", ({ path, variable }) => {
  describe.skipIf(path === null).each(DRIVERS)(
    `an agent over $driver${whySkipped(path, variable)}`,
    ({ driver, program }) => {
      let fixture: RelayFixture;
      let engine: Engine;
      let life: EngineProcess;
      let agentId = "";
      const agentToken = makeToken("e2e", crypto.getRandomValues(new Uint8Array(32)));

      const air = (password: string): string =>
        `global.air={ssid:atob("${btoa(bytes(SSID))}"),password:"${password}"};`;
      const advice = async (): Promise<string | null> => {
        life.type('tell(require("blindrelay").status())');
        return (await life.told<Told>()).advice;
      };
      const says = (text: string) =>
        expect.poll(advice, { timeout: 120_000, interval: 500 }).toContain(text);
      const one = (): Promise<unknown> =>
        fixture.client.agent(agentId, agentToken, { version: "2" }).call("one");
      const answers = () =>
        expect
          .poll(() => one().catch(({ code }) => code), { timeout: 120_000, interval: 500 })
          .toBe(1);

      beforeAll(async () => {
        fixture = await openRelayFixture();
        const { url, relayToken, ...made } = await fixture.addAgent("over Wi-Fi");
        agentId = made.agentId;
        engine = new Engine(path as string);
        const config = {
          url: `${url.replace("http", "ws")}/wss`,
          agent_id: agentId,
          relay_token: relayToken,
          agent_token: agentToken,
          v: "2",
          wifi: { ssid: SSID, password: PASSWORD },
        };
        const files = [
          ["blindrelay.json", bytes(JSON.stringify(config))],
          ["blindrelay", buildEspruinoWifi("2").stored],
          [driver, air("another password") + WIFI_MODULE],
          ["program", program],
          [".bootcde", TELL + bootCode(undefined, false)],
        ] as const;
        for (const [name, content] of files) await engine.install(name, content);
        await engine.ask('require("blindrelay").provision();tell(1);');
        life = engine.start("load();");
      });
      afterAll(async () => {
        await engine.close();
        await fixture.end();
      });

      it("reports what is wrong, joins the network, and joins it again after it was lost", async () => {
        await expect.poll(() => life.output).toContain("blindrelay warn: Wi-Fi ");
        await says("refuses the password");
        life.type(air(PASSWORD));
        await answers();
        expect(await advice()).toBe(null);

        life.type(`require("${driver}").off()`);
        await says("is not in reach");
        expect(life.output).toContain("was lost");
        life.type(air(PASSWORD));
        await answers();
        expect(await advice()).toBe(null);

        const said = life.output.split("\n").filter((line) => /blindrelay (info|warn)/.test(line));
        expect(said.filter((line) => line.includes("is joined"))).toHaveLength(2);
        expect(said.join()).not.toContain(PASSWORD);
        expect(life.output).not.toContain("Uncaught");
      });
    },
  );
});
