import { spawn } from "node:child_process";
import { text } from "node:stream/consumers";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";

const MAIN = fileURLToPath(new URL("./main.ts", import.meta.url));

async function run(...args: string[]): Promise<{ code: number | null; out: string }> {
  const child = spawn(process.execPath, [MAIN, ...args], { stdio: ["ignore", "pipe", "ignore"] });
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

test("a wrong flag is refused", async () => {
  expect(await run("--cycles", "none")).toEqual({ code: 2, out: "" });
});
