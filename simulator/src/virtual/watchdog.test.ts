import { spawnSync } from "node:child_process";
import { tmpdir } from "node:os";
import { pathToFileURL } from "node:url";
import { expect, test } from "vitest";

const SCENARIO = {
  name: "stuck",
  duration: "1m",
  devices: [{ group: "pumps", count: 3, program: "./pump.js" }],
  clients: [{ devices: "pumps", call: "x", every: "10s" }],
};

const at = (path: string): string =>
  JSON.stringify(pathToFileURL(`${import.meta.dirname}/${path}`).href);

/** What `code` prints, in a process of its own: only a main thread is watched. */
const printed = (body: string, code: string): string => {
  const source = JSON.stringify(`export default (agent) => {\n${body}\n};`);
  const whole = `import { startGuard } from ${at("./guard.ts")};
    import { runVirtual } from ${at("./run.ts")};
    import { shrink } from ${at("../shrink/shrink.ts")};
    import { parseProgram } from ${at("./program.ts")};
    const programs = new Map([["./pump.js", parseProgram(${source}, "pump.js")]]);
    const scenario = ${JSON.stringify(SCENARIO)};
    const run = { seed: 1, programs, stuckMs: 500 };
    ${code}`;
  const args = ["--input-type=module", "-e", whole];
  return spawnSync(process.execPath, args, {
    cwd: tmpdir(),
    encoding: "utf8",
    env: { ...process.env, NODE_OPTIONS: "" },
    killSignal: "SIGKILL",
    timeout: 240_000,
  }).stdout;
};

test.each([
  ["at its start", "for (;;);", "pump.js:2:"],
  ["in a handler", "agent.handle('x', () => { for (;;); });", "pump.js:2:"],
  ["after a promise", "setTimeout(async () => { await null; for (;;); }, 5);", "pump.js:2:"],
])("a program that does not return %s ends the run, by its place", (_, body, place) => {
  const stopped = printed(
    body,
    "const { report } = await runVirtual(scenario, run); console.log(report.ok, report.stopped);",
  );
  expect(stopped).toContain(`false ${place}`);
  expect(stopped).toContain("did not return within 0.5 s of CPU time");
});

test("a program that does not return is a finding of a search, once", () => {
  const found = printed(
    "agent.handle('x', () => { for (;;); });",
    `const { huntGuarded } = await import(${at("../search/hunt.ts")});
    const { mkdtempSync, rmSync, writeFileSync } = await import("node:fs");
    const folder = mkdtempSync("blindrelay-test-");
    writeFileSync(folder + "/pump.js", "");
    const guard = await startGuard([...programs.values()], run.stuckMs);
    const ended = new AbortController();
    const nobody = () => undefined;
    const none = { kept: nobody, said: nobody, found: ({ oracle, detail }) => console.log(oracle, detail) };
    const begun = (number) => number > 1 && ended.abort();
    const base = { scenario, methods: [] };
    const asked = { seed: 1, job: 0, from: 0, base, programs, folder, corpus: [], jobs: 1 };
    const rest = { known: new Set(), endsAt: Infinity, signal: ended.signal };
    await huntGuarded({ ...asked, ...rest }, { ...none, begun, played: nobody }, guard);
    rmSync(folder, { recursive: true });
    guard.stop();`,
  );
  expect(found).toMatch(/^stuck pump.js:2:\d+ did not return within 0.5 s of CPU time\n$/);
});

test("what the thread does before it turns again is not ended", () => {
  const completed = printed(
    "",
    `const guard = await startGuard([], run.stuckMs);
    const played = guard.play({ run: async () => { for (;;); } }, () => true);
    setImmediate(() => {
      for (const end = performance.now() + 400; performance.now() < end; );
      console.log("completed");
    });
    await played;
    guard.stop();`,
  );
  expect(completed).toBe("completed\n");
});

test("making a world that takes long is not ended", () => {
  const over = printed(
    "",
    `const guarding = startGuard([], run.stuckMs);
    for (const end = performance.now() + 4000; performance.now() < end; );
    const guard = await guarding;
    console.log(await guard.play({ run: async () => undefined }, () => true));
    guard.stop();`,
  );
  expect(over).toBe("null\n");
});

test("a program that does not return ends each try to shrink a scenario", () => {
  const shrunk = printed(
    "for (;;);",
    `const violation = { oracle: "once", detail: "", atUs: 1_000_000 };
    console.log(await shrink(scenario, violation, { ...run, budgetMs: 2000 }));`,
  );
  expect(shrunk).toBe("null\n");
});
