/** Programs pushed over the relay to a real Espruino, by the command; see push-cuts.test.ts. */
import { readdirSync, readFileSync } from "node:fs";
import { Engine, type EngineProcess } from "@blindrelay/agent-sdk/engines";
import { bootCode } from "@blindrelay/agent-sdk/testing/build/boot";
import { buildEspruino } from "@blindrelay/agent-sdk/testing/build/espruino";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { House, PASSWORD } from "../cli/processes.ts";
import { binary, ENGINES, whySkipped } from "./engine.ts";

const GREEDY = "const all = [];\nwhile (true) all.push({ a: [1, 2, 3] });\n";

describe.each(ENGINES)("$name", ({ path, variable }) => {
  describe.skipIf(path === null)(
    `a push${whySkipped(path, variable)}`,
    { timeout: 3_000_000 },
    () => {
      const house = new House();
      let engine: Engine;
      let life: EngineProcess | null = null;

      const program = (n: number, body = ""): string =>
        house.write(
          `program-${n}.js`,
          `export default (agent) => {\n${body}agent.handle("which", () => ({ n: ${n} }));\n};\n// ${n}\n`,
        );
      const restart = async (): Promise<void> => {
        await life?.kill();
        life = engine.start("load();");
      };
      const push = (file: string, more: string[] = []) =>
        house.cli(["push", "board", file, "--timeout", "60", ...more]);
      const which = async (): Promise<string> => {
        const { stdout } = await house.cli(["call", "board", "which", "--timeout", "20"]);
        return stdout.trim();
      };
      const runs = (n: number) =>
        expect.poll(which, { timeout: 90_000, interval: 300 }).toBe(`{"n":${n}}`);

      beforeAll(async () => {
        await house.open();
        const login = ["login", "--url", house.url, "--username", "ada", "--password-stdin"];
        expect((await house.cli(login, {}, `${PASSWORD}\n`)).code).toBe(0);
        const out = house.path("board");
        const made = ["provision", "--out", out, "--id", "board", "--packet-version", "2"];
        expect((await house.cli(made)).code).toBe(0);
        engine = new Engine(path as string);
        for (const name of readdirSync(out))
          await engine.install(name, readFileSync(`${out}/${name}`, "latin1"));
        await engine.install("blindrelay", buildEspruino("2", true).stored);
        await engine.install(
          "program",
          'module.exports = (agent) => { agent.handle("which", () => ({ n: 0 })); };',
        );
        await engine.install(".bootcde", bootCode("1.0.0", true));
        await restart();
      });
      afterAll(async () => {
        await engine.close();
        await house.close();
      });

      it("is kept, or rolled back if it throws, does not return, or uses all memory", async () => {
        await runs(0);
        const pushed = await push(program(1), ["--firmware-version", "2.0.0"]);
        expect([pushed.code, pushed.stderr]).toEqual([0, expect.stringContaining("no watchdog")]);
        await runs(1);
        expect((await house.cli(["agent", "list"])).stdout).toMatch(/board .* 2\.0\.0 /);
        await restart();
        await runs(1);

        const throws = await push(program(2, 'throw new Error("no sensor");\n'));
        expect([throws.code, throws.stderr]).toEqual([1, expect.stringContaining("no sensor")]);
        await runs(1);

        // The other engine would use all the memory of this machine.
        if (path !== binary) {
          const full = push(program(3, GREEDY), ["--timeout", "15"]);
          const nurse = setInterval(() => {
            // Out of memory, this engine may exit; a board then restarts.
            if (life !== null && !isAlive(life.pid)) void restart();
          }, 200);
          const { code, stderr } = await full;
          clearInterval(nurse);
          expect([code, stderr]).toEqual([
            1,
            expect.stringContaining("returned to the previous program"),
          ]);
          await runs(1);
        }

        const hangs = push(program(4, 'console.log("hangs now");\nwhile (true);\n'));
        const tried = life;
        await tried?.until(() => tried.output.includes("hangs now"));
        // This engine has no watchdog, which resets a board after 25 s.
        await restart();
        const hung = await hangs;
        expect([hung.code, hung.stderr]).toEqual([1, expect.stringContaining("it restarted")]);
        await runs(1);
      });
    },
  );
});

const isAlive = (pid: number): boolean => {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
};
