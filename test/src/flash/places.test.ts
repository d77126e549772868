/**
 * Errors of a program on a board at file, line and column of its source: on the double and, if
 * ESPRUINO_BIN names one, on a real Espruino.
 */
import { existsSync, mkdirSync, readdirSync, statSync } from "node:fs";
import { RealEspruino } from "@blindrelay/tools/testing/repl/pty";
import { expect, it } from "vitest";
import { FAST, openWorkshop } from "./workshop.ts";

const { house, ends, plugIn, provision, flash } = openWorkshop();
const real = process.env.ESPRUINO_BIN;

/**
 * Of the n-th line. Its timer fires when the command's packets are through: Espruino forgets what a
 * timer threw if another callback of the same pass enters a `try`.
 */
const PROGRAM = `// 1
/* é 2
   3 */
const deep = (level: number): number => {
  if (level > 2) throw /* 5 */ new Error("too deep");
  return deep(level + 0.5);
};

export default (agent: { handle: (name: string, fn: () => unknown) => void }) => {
  agent.handle("fail", () => deep(0.1)); // 10
  agent.handle("later", () => {
    /* °C */ setTimeout(() => { deep(2); }, 1000);
    return null;
  });
};
`;

const makeReal = async (): Promise<string> => {
  const cwd = house.path("real");
  mkdirSync(cwd);
  const espruino = new RealEspruino(real as string, cwd, `${cwd}/tty`);
  ends.push(() => espruino.end());
  await espruino.start();
  return `${cwd}/tty`;
};

const cases: [string, boolean, string, () => Promise<string>][] = [
  ["the double", true, "double-1", async () => (await plugIn()).port],
  ["a real Espruino (ESPRUINO_BIN)", real !== undefined, "real-1", makeReal],
];

it.each(cases)("on %s", { timeout: 240_000 }, async (_name, isThere, id, plug) => {
  if (!isThere) return;
  const port = await plug();
  const path = house.write(`${id}.ts`, PROGRAM);
  const place = (line: number) => new RegExp(`${path}:${line}:\\d+`);
  expect((await provision(port, id)).code).toBe(0);
  const broken = house.write(`${id}-broken.ts`, `/* 1 */\n${PROGRAM}`.replace("(0.1)", "(9)"));
  if (id === "double-1") {
    // The engine's build for Linux holds the output of its start back, and forgets a failed one.
    const atOnce = PROGRAM.replace("export default", "deep(3);\nexport default");
    const refused = await flash(port, [], house.write(`${id}-at-once.ts`, atOnce));
    expect(refused.code).toBe(7);
    expect(refused.stderr).toMatch(
      /could not start it: Uncaught .*too deep \(\S+-at-once\.ts:5:\d+/,
    );
  }

  const done = await flash(port, [], path);
  expect([done.code, done.stderr]).toEqual([0, expect.anything()]);
  const monitor = house.start(["monitor", port, "--json", ...FAST]);
  expect((await house.cli(["call", id, "fail", "--wait"])).code).toBe(3);
  expect((await house.cli(["call", id, "later"])).code).toBe(0);
  let line = "";
  while (!/^ {4}at deep/.test(line)) line = (await monitor.json<{ line: string }>()).line;
  expect(line).toMatch(place(5));
  while (!place(12).test(line)) line = (await monitor.json<{ line: string }>()).line;
  await monitor.stop("SIGINT");

  const logs = await house.cli(["logs", id]);
  expect([logs.code, logs.stderr]).toEqual([0, ""]);
  expect(logs.stdout).toMatch(new RegExp(`the handler of "fail" failed \\(${place(5).source}\\)`));
  expect(logs.stdout).toMatch(new RegExp(`uncaught: too deep \\(${place(5).source}\\)`));

  // Another program: its places, and those of the one on trial.
  const failing = `/* 1 */\n\n${PROGRAM}`.replace(
    'agent.handle("fail"',
    'setTimeout(() => { deep(3); }, 100); agent.handle("fail"',
  );
  const failed = await house.cli(["push", id, house.write(`${id}-failing.ts`, failing)]);
  expect([failed.code, failed.stderr]).toEqual([
    1,
    expect.stringMatching(/previous program: too deep \(\S+-failing\.ts:7:\d+\)/),
  ]);
  if (id === "double-1") {
    expect((await house.cli(["logs", id])).stdout).toMatch(
      /last failure: too deep \(\S+-failing\.ts:7:/,
    );
  }
  expect((await house.cli(["push", id, broken])).code).toBe(0);
  expect((await house.cli(["call", id, "fail", "--wait"])).code).toBe(3);
  expect((await house.cli(["logs", id])).stdout).toMatch(/failed \(\S+-broken\.ts:6:\d+\)/);

  const folder = house.path("config/builds/default");
  expect(existsSync(folder)).toBe(true);
  for (const name of readdirSync(folder)) {
    expect(statSync(`${folder}/${name}`).mode & 0o777).toBe(0o600);
  }
});
