/**
 * Pushed programs that fail in every way, on a real Espruino that restarts as a chip does: nothing
 * but the board itself brings the previous program back.
 */
import { readdirSync, readFileSync } from "node:fs";
import { Engine, type EngineProcess, findEspruino } from "@blindrelay/agent-sdk/engines";
import { bootCode } from "@blindrelay/agent-sdk/testing/build/boot";
import { buildEspruino } from "@blindrelay/agent-sdk/testing/build/espruino";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { House, PASSWORD } from "../cli/processes.ts";
import { whySkipped } from "./engine.ts";
import { FAILURES } from "./push-failures.ts";

const binary = findEspruino("ESPRUINO_WATCHDOG");
/** To run more: PUSH_FAILURES=10 npx vitest run test/src/espruino/push-failures.test.ts */
const TIMES = Number(process.env.PUSH_FAILURES ?? 1);
const TRIAL_S = 60;
/** For the transfer before it, the watchdog's 25 s, and the restarts. */
const AROUND_S = 40;

describe.skipIf(binary === null)(
  `a pushed program${whySkipped(binary, "ESPRUINO_WATCHDOG")}`,
  { timeout: 120_000 * TIMES },
  () => {
    const house = new House();
    let engine: Engine;
    let life: EngineProcess;
    let number = 1;

    const program = (body: string): string => {
      number++;
      const code = `agent.handle("which", () => ({ n: ${number} }));\n${body}`;
      return house.write(`${number}.js`, `export default (agent) => {\n${code}\n};\n`);
    };
    const push = (file: string) =>
      house.cli(["push", "board", file, "--wait", "--timeout", `${TRIAL_S}`]);
    const which = async (): Promise<string> => {
      const { stdout, stderr } = await house.cli(["call", "board", "which", "--timeout", "20"]);
      return stdout.trim() + stderr.trim();
    };
    let good = "";

    beforeAll(async () => {
      await house.open();
      const login = ["login", "--url", house.url, "--username", "ada", "--password-stdin"];
      expect((await house.cli(login, {}, `${PASSWORD}\n`)).code).toBe(0);
      const out = house.path("board");
      const made = ["provision", "--out", out, "--id", "board", "--packet-version", "2"];
      expect((await house.cli(made)).code).toBe(0);
      engine = new Engine(binary as string);
      for (const name of readdirSync(out))
        await engine.install(name, readFileSync(`${out}/${name}`, "latin1"));
      await engine.install("blindrelay", buildEspruino("2", true).stored);
      await engine.install("program", "module.exports = () => {};");
      await engine.install(".bootcde", bootCode("1.0.0", true));
      life = engine.start("load();");
      const kept = await push(program(""));
      expect(kept).toMatchObject({ code: 0 });
      good = `{"n":${number}}`;
      expect(await which()).toBe(good);
    });
    afterAll(async () => {
      await engine?.close();
      await house.close();
    });

    it.each(FAILURES)("that %s is gone within its trial", async (what, body, reason) => {
      for (let time = 1; time <= TIMES; time++) {
        const from = life.output.length;
        const since = performance.now();
        const { code, stderr } = await push(program(body));
        const seconds = Math.round((performance.now() - since) / 100) / 10;
        process.stderr.write(`${what}, ${time}: ${seconds} s; ${stderr.trim()}\n`);
        const said = life.output.slice(from);
        expect([code, stderr], said).toEqual([1, expect.stringContaining("returned to")]);
        expect(stderr).toMatch(reason);
        // At once, because it was said to be back.
        expect(await which(), said).toBe(good);
        expect(seconds).toBeLessThan(TRIAL_S + AROUND_S);
      }
    });
  },
);
