/** A real Espruino that sleeps: calls wait for it, and a wake costs little. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { binary, ENGINES, whySkipped } from "./engine.ts";
import { Sleeper, type Start } from "./sleeper.ts";

const WAKES = 4;
// A board may fall asleep between an opening and its call: what may run twice is sent again.
const PATIENT = { waitForAgent: true, idempotent: true, timeoutMs: 120_000 };

describe.each(ENGINES)("$name", ({ path, variable }) => {
  describe.skipIf(path === null)(
    `an agent that sleeps${whySkipped(path, variable)}`,
    { timeout: 300_000 },
    () => {
      let sleeper: Sleeper;
      const agentOf = (client: Sleeper["fixture"]["client"]) =>
        client.agent(sleeper.agentId, sleeper.agentToken, { version: "2" });

      beforeAll(async () => {
        sleeper = await Sleeper.start(path as string, { sleepMs: 2000, idleMs: 1000 });
      });
      afterAll(() => sleeper.end());

      it("answers waiting calls when it wakes, with one login a day", async () => {
        const starts: Start[] = [await sleeper.wake()];
        const agent = agentOf(sleeper.fixture.client);
        for (let wake = 0; wake < WAKES; wake++) {
          // During its sleep, as its link has ended; on a busy machine, of a later wake.
          await expect.poll(() => sleeper.links.length, { timeout: 120_000 }).toBeGreaterThan(wake);
          const calls = [agent.call("echo", [wake], PATIENT)];
          // Two at once may be too many for a small board.
          const other = path === binary ? await sleeper.fixture.connect() : null;
          if (other !== null) calls.push(agentOf(other).call("echo", [wake], PATIENT));
          starts.push(await sleeper.wake());
          for (const answer of await Promise.all(calls)) expect(answer).toEqual([wake]);
          other?.close();
        }
        const tokens = starts.map(({ session }) => session);
        expect(tokens[0]).toBe(null);
        expect(tokens[1]).toMatch(/^sess_/);
        expect(new Set(tokens.slice(1)).size).toBe(1);
        // A slot of the boot count, and its head; the session token once.
        const written = starts.slice(2).map(({ free }, i) => (starts[i + 1] as Start).free - free);
        expect(Math.max(...written)).toBeLessThan(140);
        expect(sleeper.life.output).not.toContain("Uncaught");
      });

      it("also answers a call that was not allowed to wait", async () => {
        const agent = agentOf(sleeper.fixture.client);
        await expect
          .poll(() => agent.call("echo", [7]).catch(({ code }) => code), {
            timeout: 120_000,
            interval: 200,
          })
          .toEqual([7]);
      });
    },
  );
});
