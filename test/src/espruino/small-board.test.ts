/** An ordinary program on a real Espruino of 2,630 variables: many callers, and five at once. */
import { fileURLToPath } from "node:url";
import { buildEspruino, buildProgram } from "@blindrelay/agent-sdk/testing/build/espruino";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { openRelayFixture, type RelayFixture } from "../xs/relay-fixture.ts";
import { EngineBoard, smallBinary, whySkipped } from "./engine.ts";

const CALLERS = 22;
const NESTED_ANSWERS = 60;
/** Of a variable, on Linux. */
const BLOCK_BYTES = 17;
const CALLS: readonly (readonly [string, object?])[] = [
  ["system.info"],
  ["state"],
  ["target.set", { target: 20.25 }],
  ["pid.get"],
  ["pid.set", { kp: 2.125 }],
  ["schedule.get"],
  ["boost", { ms: 5 }],
  ["echo", { a: "grüße", b: [1, 0.5, -3] }],
  ["info"],
  ["mode.set", { mode: "eco" }],
];

describe.skipIf(smallBinary === null)(
  `2,630 variables${whySkipped(smallBinary, "ESPRUINO_BIN_2630")}`,
  () => {
    let fixture: RelayFixture;
    let board: EngineBoard;
    beforeAll(async () => {
      fixture = await openRelayFixture();
      board = new EngineBoard(smallBinary as string);
    });
    afterAll(async () => {
      await board.end();
      await fixture.end();
    });

    it("answers more callers one after another than it has room for sessions", async () => {
      const { url, agentId, relayToken, agentToken } = await fixture.addAgent("thermostat");
      const config = {
        url: `${url.replace("http", "ws")}/wss`,
        agent_id: agentId,
        relay_token: relayToken,
        agent_token: agentToken,
        v: "2",
      };
      const program = fileURLToPath(new URL("thermostat.ts", import.meta.url));
      await board.install("blindrelay", buildEspruino("2").stored);
      await board.install("blindrelay.json", JSON.stringify(config));
      await board.install("program", buildProgram(program).code);
      await board.provision();
      await board.powerOn();
      for (let caller = 0; caller < CALLERS; caller++) {
        const client = await fixture.connect();
        const [method, params] = CALLS[caller % CALLS.length] as (typeof CALLS)[number];
        const agent = client.agent(agentId, agentToken, { version: "2" });
        await expect(
          agent.call(method, params),
          `call ${caller}: ${method}`,
        ).resolves.toBeDefined();
        client.close();
      }
      expect(board.life?.output).not.toContain("OUT OF MEMORY");

      // Five at once are beyond it: each is answered, refused, or not heard, and the board stays.
      const outcomes = await Promise.allSettled(
        CALLS.slice(0, 5).map(async ([method, params]) => {
          const client = await fixture.connect();
          try {
            return await client.agent(agentId, agentToken, { version: "2" }).call(method, params);
          } finally {
            client.close();
          }
        }),
      );
      expect(outcomes.filter(({ status }) => status === "fulfilled")).not.toEqual([]);
      const patient = { idempotent: true, timeoutMs: 60_000 };
      const last = fixture.client.agent(agentId, agentToken, { version: "2" });
      await expect(last.call("state", {}, patient)).resolves.toBeDefined();
      expect(board.life?.output).not.toContain("OUT OF MEMORY");

      // What is locked too often is never freed: nested answers once cost a variable each.
      const free = async (): Promise<number> => {
        let most = 0; // events are under way in some
        for (let i = 0; i < 5; i++) {
          const info = (await last.call("system.info", {}, patient)) as { free_memory: number };
          most = Math.max(most, info.free_memory);
        }
        return most / BLOCK_BYTES;
      };
      await last.call("info", {}, patient);
      const before = await free();
      for (let i = 0; i < NESTED_ANSWERS; i++) await last.call("info", {}, patient);
      expect(await free()).toBeGreaterThan(before - NESTED_ANSWERS / 2);
    });
  },
);
