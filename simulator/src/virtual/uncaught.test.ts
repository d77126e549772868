/** What device programs throw and do not catch breaks a run, unless its scenario allows it. */
import { expect, test } from "vitest";
import type { Scenario } from "../scenario/schema.ts";
import { type LoadedProgram, parseProgram } from "./program.ts";
import { runVirtual } from "./run.ts";

const play = async (text: string, more: Partial<Scenario> = {}, others: LoadedProgram[] = []) => {
  const scenario: Scenario = {
    name: "uncaught",
    duration: "1m",
    devices: [{ group: "g", count: 2, program: "./p.js" }],
    clients: [{ devices: "g", call: "ok", every: "5s" }],
    ...more,
  };
  const own = parseProgram(
    `import { Streams } from "@blindrelay/agent-sdk/streams";
    export default (agent) => { agent.handle("ok", () => 1); ${text} };`,
    "p.js",
  );
  const programs = new Map([own, ...others].map((one) => [`./${one.file}`, one]));
  const { report } = await runVirtual(scenario, { seed: 1, programs });
  expect(report.stopped).toBeNull();
  return { ...report, broken: report.oracles.filter(({ ok }) => !ok) };
};

const THROW = "throw new Error('dry');";

test.each([
  ["a timer", `setTimeout(() => { ${THROW} }, 9000);`, "g-00001: a timer of the program failed"],
  ["agent.after", `agent.after(9000, () => { ${THROW} });`, "g-00001: a timer of the device"],
  ["a promise", "setTimeout(() => Promise.reject(Error('dry')), 9000);", "the program left a pro"],
])("what %s throws breaks a run that does not allow PROGRAM", async (_, text, said) => {
  const { ok, broken } = await play(text);
  expect([ok, broken]).toEqual([
    false,
    [{ name: "uncaught", ok: false, detail: expect.stringContaining(said) }],
  ]);
  expect((await play(text, { allow: [{ rate: "100%" }] })).ok).toBe(false);
  const allowed = await play(text, { allow: [{ code: "PROGRAM" }] });
  expect([allowed.ok, allowed.failures.map(({ code }) => code)]).toEqual([true, ["PROGRAM"]]);
});

test("what a program throws while it takes a stream breaks a run, as in a timer", async () => {
  const text = `
    const streams = new Streams(agent);
    agent.handle("write", ({ stream }, { sid }) => {
      const events = { data: () => { ${THROW} }, ended: () => undefined };
      streams.incoming(sid, stream, events).grant(9000);
    });`;
  const { broken } = await play(text, {
    clients: [{ devices: "g", every: "10s", steps: [{ write: "write", bytes: "1KB" }] }],
    allow: [{ code: "OUTCOME_UNKNOWN" }, { code: "TIMED_OUT" }, { code: "NOT_MADE" }],
  });
  expect(broken).toEqual([
    { name: "uncaught", ok: false, detail: expect.stringMatching(/"stream.data" failed .*dry/) },
  ]);
});

test("what a handler throws, or a program logs, does not", async () => {
  const text = `
    agent.handle("no", () => { throw new Error("no"); });
    agent.log("error", "the program failed");
    console.error("a timer of the program failed: not at all");`;
  const { broken, failures } = await play(text, {
    clients: [{ devices: "g", call: "no", every: "5s" }],
    allow: [{ code: "REMOTE -32000" }],
  });
  expect([broken, failures.map(({ code }) => code)]).toEqual([[], ["REMOTE -32000", "HANDLER"]]);
});

test("a power cut is not the program's: it ends a timer, or a promise, that stores", async () => {
  const text = `
    agent.every(700, () => agent.storage.set("a", "x".repeat(200)));
    setInterval(() => agent.storage.set("b", "y"), 300);
    setInterval(async () => agent.storage.set("c", "z"), 500);`;
  const { broken } = await play(text, {
    faults: [{ at: "5s", kind: "storage.torn", devices: "g", for: "20s" }],
    allow: [{ rate: "100%" }],
  });
  expect(broken).toEqual([]);
});

test("a timer that throws ends a program's trial, as on a device", async () => {
  const bad = parseProgram(
    `export default (agent) => { agent.handle("ok", () => 2); setTimeout(() => { ${THROW} }, 2000); };`,
    "bad.js",
  );
  const { broken, failures } = await play(
    "",
    {
      clients: [{ devices: "g", call: "ok", every: "5s", from: "50s", expect: 1 }],
      faults: [{ at: "10s", kind: "device.update", devices: "g", program: "./bad.js" }],
      allow: [{ code: "TIMED_OUT" }],
    },
    [bad],
  );
  expect([broken, failures]).toEqual([[], []]);
});

test("what cannot be made a text breaks a run like any error", async () => {
  const { broken } = await play("setTimeout(() => { throw Object.create(null); }, 9000);");
  const detail = "g-00001: a timer of the program failed: something that cannot be shown";
  expect(broken).toEqual([{ name: "uncaught", ok: false, detail }]);
});
