/** An ordinary program on a real Espruino of 2,630 variables: many callers, and five at once. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { openRelayFixture, type RelayFixture } from "../xs/relay-fixture.ts";
import { SMALL_ENGINES, whySkipped } from "./engine.ts";
import { CALLS, startThermostat, type Thermostat } from "./thermostat-board.ts";

const CALLERS = 22;
const NESTED_ANSWERS = 60;
/** What must be free beside another session (agent.ts), that session, and two more. */
const FREE_BESIDE_A_LISTENER = 340 + 3 * 62;

describe.each(SMALL_ENGINES)("$name", ({ path, variable }) => {
  describe.skipIf(path === null)(`an ordinary program${whySkipped(path, variable)}`, () => {
    let fixture: RelayFixture;
    let thermostat: Thermostat;
    beforeAll(async () => {
      fixture = await openRelayFixture();
      thermostat = await startThermostat(fixture, path as string);
    });
    afterAll(async () => {
      await thermostat.board.end();
      await fixture.end();
    });

    it("answers more callers, one after another, than it can hold sessions", async () => {
      const { agentOf } = thermostat;
      const listener = agentOf(fixture.client);
      const interruptions: string[] = [];
      listener.on("interrupted", (reason) => interruptions.push(reason));
      const unlisten = listener.on("event", () => undefined);
      await listener.call("state");
      const life = thermostat.life();
      life.type("tell([process.memory().free,process.memory().blocksize])");
      const [atRest, blockBytes] = await life.told<[number, number]>();
      expect(atRest).toBeGreaterThan(FREE_BESIDE_A_LISTENER);
      for (let caller = 0; caller < CALLERS; caller++) {
        const client = await fixture.connect();
        const [method, params] = CALLS[caller % CALLS.length] as (typeof CALLS)[number];
        const answer = agentOf(client).call(method, params);
        await expect(answer, `call ${caller}: ${method}`).resolves.toBeDefined();
        client.close();
      }
      expect(interruptions).toEqual([]);
      unlisten();
      expect(life.output).not.toContain("OUT OF MEMORY");

      // Five at once are too many for it: each is answered, refused, or lost, and the board
      // continues to run.
      const outcomes = await thermostat.callAtOnce(CALLS.slice(0, 5));
      expect(outcomes.filter(({ status }) => status === "fulfilled")).not.toEqual([]);
      const patient = { idempotent: true, timeoutMs: 60_000 };
      const last = agentOf(fixture.client);
      await expect(last.call("state", {}, patient)).resolves.toBeDefined();
      expect(life.output).not.toContain("OUT OF MEMORY");

      // A value that is locked too often is never freed: nested answers once cost a variable each.
      const free = async (): Promise<number> => {
        let most = 0; // some events are in transit
        for (let i = 0; i < 5; i++) {
          const info = (await last.call("system.info", {}, patient)) as { free_memory: number };
          most = Math.max(most, info.free_memory);
        }
        return most / blockBytes;
      };
      await last.call("info", {}, patient);
      const before = await free();
      for (let i = 0; i < NESTED_ANSWERS; i++) await last.call("info", {}, patient);
      expect(await free()).toBeGreaterThan(before - NESTED_ANSWERS / 2);
    });
  });
});
