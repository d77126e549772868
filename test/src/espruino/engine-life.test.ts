/**
 * Tests on a real Espruino that need no relay: vectors, an hour of calls, the boot count, flash and
 * clocks.
 */
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { Engine } from "@blindrelay/agent-sdk/engines";
import { LOAD } from "@blindrelay/agent-sdk/testing/build/boot";
import { buildEspruino, buildForBoard } from "@blindrelay/agent-sdk/testing/build/espruino";
import { makeToken } from "@blindrelay/protocol";
import { VECTOR_FILE_NAMES, type VectorFiles } from "@blindrelay/protocol/testing";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { binary, whySkipped } from "./engine.ts";

const sdk = (path: string): string =>
  buildForBoard(fileURLToPath(new URL(`../../../agent-sdk/src/${path}`, import.meta.url))).code;
const fields = Object.keys(VECTOR_FILE_NAMES) as (keyof VectorFiles)[];

/** Lists in pieces of ten, so that they fit into a board's memory. */
const tens = <T>(list: readonly T[]): T[][] =>
  Array.from({ length: Math.ceil(list.length / 10) }, (_, i) => list.slice(i * 10, i * 10 + 10));

/** The files, long ones in pieces: a board reads one at a time. */
const parts = (field: keyof VectorFiles): VectorFiles[] => {
  const url = new URL(`../../../protocol/vectors/${VECTOR_FILE_NAMES[field]}`, import.meta.url);
  const file = JSON.parse(readFileSync(url, "utf8"));
  const one = { comment: "", source: "" };
  if (field === "packets") {
    const { valid, invalid } = file as NonNullable<VectorFiles["packets"]>;
    return [
      ...tens(valid).map((list) => ({ packets: { ...one, valid: list, invalid: [] } })),
      ...tens(invalid).map((list) => ({ packets: { ...one, valid: [], invalid: list } })),
    ];
  }
  if (field !== "sessions") return [{ [field]: file }];
  const { agent, client } = file as NonNullable<VectorFiles["sessions"]>;
  return [
    ...agent.map((trace) => ({ sessions: { ...one, agent: [trace], client: [] } })),
    ...client.map((trace) => ({ sessions: { ...one, agent: [], client: [trace] } })),
  ];
};

/** ASCII, so that the board's 8-bit strings can hold it. */
const ascii = (value: unknown): string =>
  JSON.stringify(value).replace(
    /[\u007f-\uffff]/g,
    (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );

describe.skipIf(binary === null)(
  `alone on a real Espruino${whySkipped(binary, "ESPRUINO_BIN")}`,
  () => {
    let engine: Engine;
    beforeEach(() => {
      engine = new Engine(binary as string);
    });
    afterEach(() => engine.close());

    it.each(fields)("agrees with every case of %s", async (field) => {
      await engine.install("vectors", sdk("testing/espruino-vectors.ts"));
      for (const part of parts(field)) {
        await engine.install("case", ascii(part));
        const script =
          'tell(require("vectors").check(require("crypto"), require("Storage").read("case")));';
        expect(await engine.ask(script)).toEqual([]);
        await engine.ask(
          'require("Storage").erase("case"); require("Storage").compact(); tell(1);',
        );
      }
    });

    it("keeps its memory over an hour of sessions and calls", async () => {
      await engine.install("hour", sdk("testing/espruino-hour.ts"));
      const [answered, early, late] = await engine.ask<number[]>(`
        var hour = new (require("hour").Hour)(require("crypto"));
        // Until it has as many sessions as it keeps.
        hour.run(20);
        var early = process.memory().usage;
        hour.run(40);
        tell([hour.answered, early, process.memory().usage]);
      `);
      expect(answered).toBe(120);
      expect(late).toBeLessThanOrEqual((early as number) + 10);
    });

    describe("with a configuration", () => {
      const config = {
        url: "ws://127.0.0.1:1/wss",
        agent_id: "pump-7",
        relay_token: makeToken("agent", new Uint8Array(32)),
        agent_token: makeToken("e2e", new Uint8Array(32)),
        v: "2",
      };
      const START = `${LOAD} require("blindrelay").start(() => {});`;
      const COUNTS = `["boot.0", "boot.1"].map((name) => Number(require("Storage").read(name).split(" ")[2]))`;

      beforeEach(async () => {
        await engine.install("blindrelay", buildEspruino("2").stored);
        await engine.install("blindrelay.json", JSON.stringify(config));
        await engine.ask('require("blindrelay").provision(); tell(1);');
      });

      it("counts every start, whenever its power is cut", async () => {
        let last = 1;
        for (let round = 0; round < 8; round++) {
          const cut = engine.start(START);
          // At once, during the start, or afterwards.
          await new Promise((resolve) => setTimeout(resolve, round * 8));
          await cut.kill();
          const counts = await engine.ask<number[]>(`${START} tell(${COUNTS});`);
          const count = Math.max(...counts);
          expect(count).toBeGreaterThan(last);
          expect(Math.abs((counts[0] as number) - (counts[1] as number))).toBe(1);
          last = count;
        }
      });

      it("does not start on a full flash, and starts again once there is room", async () => {
        const refused = await engine.ask<string>(`
          var storage = require("Storage"), n = 0;
          try { for (;;) { storage.write("fill" + n, "x", 0, 4000); n++; } } catch (e) {}
          try { for (;;) { storage.write("fill" + n, "x"); n++; } } catch (e) {}
          try { ${START} tell("started"); } catch (e) { tell(e.toString()); }
        `);
        expect(refused).toContain("the storage does not keep what is written");
        const counts = await engine.ask<number[]>(`
          require("Storage").erase("fill0"); ${START} tell(${COUNTS});
        `);
        expect(Math.max(...counts)).toBeGreaterThan(1);
      });

      it("reports what is missing if it was not provisioned", async () => {
        const missing = await engine.ask<string>(`
          require("Storage").erase("blindrelay.json");
          try { ${START} } catch (e) { tell(e.toString()); }
        `);
        expect(missing).toContain("run blindrelay provision");
      });

      it("ends the agent before save(), and a restored image has none", async () => {
        const life = engine.start(`${START} tell(require("blindrelay").status().state);
          function onInit() { tell({ restored: require("blindrelay").status() }); }`);
        expect(await life.told()).toBe("connecting");
        life.type("save()");
        expect(await life.told()).toEqual({ restored: null });
        await life.kill();
      });

      it("has a clock that does not follow setTime into the past", async () => {
        await engine.install("ports", sdk("espruino/ports.ts"));
        const [before, after, later] = await engine.ask<number[]>(`
          var timer = require("ports").boardTimer, before = timer.now();
          setTime(1000);
          var after = timer.now();
          timer.set(20, () => tell([before, after, timer.now()]));
        `);
        expect(after).toBeGreaterThanOrEqual(before as number);
        expect(later).toBeGreaterThanOrEqual((after as number) + 19);
      });

      it("draws the same random words at every start, as the contract expects of some boards", async () => {
        const draw = "tell([E.hwRand(), E.hwRand()]);";
        const first = await engine.ask(draw);
        expect(await engine.ask(draw)).toEqual(first);
      });
    });
  },
);
