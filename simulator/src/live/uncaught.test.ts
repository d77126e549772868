/** What device programs throw and do not catch, in the processes of a live fleet. */
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { Progress } from "../report/progress.ts";
import type { Scenario } from "../scenario/schema.ts";
import { runLive } from "./run.ts";

let folder = "";
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "blindrelay-test-"));
});
afterEach(() => rm(folder, { recursive: true, force: true }));

const play = (what: Scenario) =>
  runLive(what, folder, {
    seed: 1,
    progress: new Progress({ write: () => true } as never),
    signal: new AbortController().signal,
    processes: 2,
  });

test("a live run is broken by what programs throw and do not catch, unless that is allowed", async () => {
  await writeFile(
    join(folder, "dry.mjs"),
    `export default (agent) => {
      agent.handle("ok", () => 1);
      setTimeout(() => { throw new Error("dry"); }, 500);
      agent.after(500, () => { throw new Error("drier"); });
      setTimeout(async () => { throw new Error("driest"); }, 500);
    };`,
  );
  const dry: Scenario = {
    ...{ name: "dry", duration: "2s", world: "live" },
    devices: [{ group: "g", count: 2, program: "./dry.mjs" }],
    clients: [{ devices: "g", call: "ok", rate: "10/s", from: "0s", timeout: "4s" }],
    allow: [{ rate: "100%" }],
  };
  const { ok, stopped, failures, oracles } = await play(dry);
  expect([ok, stopped]).toEqual([false, null]);
  const thrown = failures.flatMap(({ code, count, example }) =>
    code === "PROGRAM" ? [`${count} ${example}`] : [],
  );
  expect(thrown.sort()).toEqual([
    '2 a timer of the device program failed {"reason":"drier"}',
    expect.stringMatching(/^2 the program failed: Error: dry \(dry.mjs:3:/),
    expect.stringMatching(/^2 the program left a promise rejected: Error: driest \(dry.mjs:5:/),
  ]);
  expect(oracles.find(({ name }) => name === "uncaught")?.ok).toBe(false);
  const allowed = { ...dry, allow: [...(dry.allow ?? []), { code: "PROGRAM" }] };
  expect(await play(allowed)).toMatchObject({ ok: true, stopped: null });
});
