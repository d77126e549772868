/** A new secret for a real Espruino over a real relay, and power cuts while it is replaced. */
import { setTimeout as wait } from "node:timers/promises";
import { LOAD } from "@blindrelay/agent-sdk/testing/build/boot";
import { buildEspruino } from "@blindrelay/agent-sdk/testing/build/espruino";
import { makeToken } from "@blindrelay/protocol";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { openRelayFixture, type RelayFixture } from "../xs/relay-fixture.ts";
import { binary, EngineBoard, whySkipped } from "./engine.ts";

/** To run more: REKEY_CUTS=200 npx vitest run test/src/espruino/rekey.test.ts */
const CUTS = Number(process.env.REKEY_CUTS ?? 4);
/** What storing a secret and the first answer under it take here. */
const REKEY_MS = 600;
const START = `${LOAD}$br.start((agent)=>{agent.handle("echo",(params)=>params);});`;

const drawSecret = (): string => makeToken("e2e", crypto.getRandomValues(new Uint8Array(32)));

describe.skipIf(binary === null)(
  `a board that takes a new secret${whySkipped(binary, "ESPRUINO_BIN")}`,
  () => {
    let fixture: RelayFixture;
    let board: EngineBoard;
    let agentId: string;
    /** Of its configuration. */
    let first: string;

    const restart = async (): Promise<void> => {
      await board.powerOff();
      board.life = board.engine.start(START);
    };

    const call = (secret: string, method: string, params: object, timeoutMs: number) =>
      fixture.client
        .agent(agentId, secret, { version: "2" })
        .call(method, params, { timeoutMs, idempotent: method === "echo" });

    /** Whether this secret opens within that time; the board may not be online yet. */
    const opens = async (secret: string, timeoutMs: number): Promise<boolean> => {
      const end = performance.now() + timeoutMs;
      for (let left = timeoutMs; left > 0; left = end - performance.now()) {
        try {
          await call(secret, "echo", { n: 1 }, left);
          return true;
        } catch {
          await wait(20);
        }
      }
      return false;
    };

    beforeAll(async () => {
      fixture = await openRelayFixture();
      const { url, relayToken, ...made } = await fixture.addAgent("board");
      agentId = made.agentId;
      first = made.agentToken;
      board = new EngineBoard(binary as string);
      const config = {
        ...{ url: `${url.replace("http", "ws")}/wss`, agent_id: agentId, v: "2" },
        ...{ relay_token: relayToken, agent_token: first },
      };
      await board.install("blindrelay", buildEspruino("2", true, true).stored);
      await board.install("blindrelay.json", JSON.stringify(config));
      await board.provision();
      await restart();
    });

    afterAll(async () => {
      await board.end();
      await fixture.end();
    });

    const limits = { timeout: 60_000 + CUTS * 30_000 };
    it(`answers to one secret after each of ${CUTS} power cuts`, limits, async () => {
      let present = first;
      const ends = { old: 0, new: 0 };
      for (let cut = 1; cut <= CUTS; cut++) {
        expect(await opens(present, 20_000)).toBe(true);
        const next = drawSecret();
        const asked = call(present, "system.rekey", { secret: next, id: `${cut}` }, 5_000).then(
          () => opens(next, 5_000),
          () => undefined,
        );
        await wait(Math.random() * REKEY_MS);
        await restart();
        await asked;
        // In the order of a client, whose session would confirm a trial.
        const isNew = await opens(next, 3_000);
        expect(await opens(isNew ? present : next, 1_000)).toBe(false);
        ends[isNew ? "new" : "old"]++;
        if (isNew) present = next;
      }
      process.stderr.write(`${CUTS} cuts: ${ends.old} old, ${ends.new} new\n`);
      const last = drawSecret();
      await call(present, "system.rekey", { secret: last, id: "last" }, 20_000);
      expect(await opens(last, 20_000)).toBe(true);
      await restart();
      expect(await opens(last, 20_000)).toBe(true);
      expect(await opens(first, 500)).toBe(false);
    });
  },
);
