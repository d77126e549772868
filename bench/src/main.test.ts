import { spawn } from "node:child_process";
import { text } from "node:stream/consumers";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";

const ENGINE_BUILD_MS = 600_000;
const MAIN = fileURLToPath(new URL("./main.ts", import.meta.url));

async function run(...args: string[]): Promise<{ code: number | null; out: string }> {
  const { ESPRUINO_BIN: _, ESPRUINO_BIN_2630: __, ...env } = process.env;
  const child = spawn(process.execPath, [MAIN, ...args], {
    env,
    stdio: ["ignore", "pipe", "ignore"],
  });
  const closed = new Promise<number | null>((resolve) => child.once("close", resolve));
  const out = await text(child.stdout);
  return { code: await closed, out };
}

test("the benchmark measures every contender in every scenario", async () => {
  const { code, out } = await run("--cycles", "1", "--json");
  const { forwarding, suites, valid } = JSON.parse(out);
  // One cycle on a busy machine says nothing; whether it is called void must be right all the same.
  expect(code).toBe(valid ? 0 : 1);
  expect(forwarding.map((result: { scenario: { name: string } }) => result.scenario.name)).toEqual([
    "c1",
    "w4",
  ]);
  for (const { standings } of [...forwarding, ...suites]) {
    expect(standings).toHaveLength(3);
    for (const { ratio, us } of standings) expect(Math.min(ratio, us)).toBeGreaterThan(0);
  }
});

test(
  "the sizes are measured without any Espruino, and what that leaves out is said",
  async () => {
    const { code, out } = await run("--sizes", "--json");
    const { ok, figures, skipped } = JSON.parse(out);
    // The limits have tests of their own, and times depend on the machine.
    expect(code).toBe(ok ? 0 : 1);
    expect(figures.map((figure: { name: string }) => figure.name)).toContain(
      "Espruino file, over a UART",
    );
    const fixes = skipped.map(({ fix }: { fix: string }) => fix).join();
    expect(fixes).toMatch(/ESPRUINO_BIN_2630.*ESPRUINO_BIN /);
  },
  ENGINE_BUILD_MS,
);

test("help has an example", async () => {
  const { code, out } = await run("--help");
  expect({ code, out }).toEqual({ code: 0, out: expect.stringContaining("Example:") });
});

test.each([["--cycles", "none"], ["--sizes", "--cycles", "3"], ["--size"], ["sizes"]])(
  "wrong flags are refused: %s %s %s",
  async (...args) => {
    expect(await run(...args.filter((arg) => arg !== undefined))).toEqual({ code: 2, out: "" });
  },
);
