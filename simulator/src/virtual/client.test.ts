import { expect, test } from "vitest";
import type { Scenario } from "../scenario/schema.ts";
import { loadPrograms } from "./programs.ts";
import { runVirtual } from "./run.ts";

const SCENARIO: Scenario = {
  name: "as commands",
  duration: "2m",
  devices: [{ group: "lamps", count: 1, kind: "echo" }],
  clients: [{ name: "c", devices: "lamps", every: "20s", leaves: true }],
};

test("a client that leaves comes for each of its calls, and is not missed", async () => {
  let connects = 0;
  const { report } = await runVirtual(SCENARIO, {
    seed: 1,
    programs: loadPrograms(SCENARIO, "."),
    watch: (what, who) => {
      if (what === "connect" && who.startsWith("c/1")) connects += 1;
    },
  });
  expect(report.ok).toBe(true);
  const { sent, ok } = report.calls;
  expect(ok).toBe(sent);
  expect(connects).toBe(sent);
});

test("a client that was refused and left does not come again beside its next visit", async () => {
  const scenario: Scenario = {
    ...SCENARIO,
    clients: [{ name: "c", devices: "lamps", every: "4900ms", leaves: true }],
    faults: [{ kind: "store.away", at: "40s", for: "20s" }],
  };
  let open = 0;
  let most = 0;
  await runVirtual(scenario, {
    seed: 1,
    programs: loadPrograms(scenario, "."),
    watch: (what, who) => {
      if (!who.startsWith("c/1")) return;
      if (what === "connect") most = Math.max(most, ++open);
      if (what === "close") open -= 1;
    },
  });
  expect(most).toBe(1);
});
