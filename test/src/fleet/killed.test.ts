/** A command that is killed while it calls a fleet, and resumed: what the agents count decides. */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { broken, callKilled, FleetWorld, journalLines } from "./world.ts";

const COUNT = 200;
const world = new FleetWorld();

beforeAll(() =>
  world.open(COUNT, (n, ran) => (agent) => {
    agent.handle("act", async () => {
      ran();
      await new Promise((done) => setTimeout(done, 30));
      return { n };
    });
  }),
);
afterAll(() => world.close());

describe("a call to two hundred agents", () => {
  it("that is killed and resumed runs on each exactly once, or is reported as unknown", async () => {
    const journal = join(world.folder, "killed.jsonl");
    const { outcomes, killed } = await callKilled(world, journal, 2);
    expect(killed).toBe(2);
    expect(broken(world, outcomes)).toEqual([]);
    expect(outcomes.size).toBe(COUNT);
    // A settled journal is only printed.
    const before = new Map(world.runs);
    const args = ["call", "--where", "id~unit-*", "act", "--resume", journal, "--json"];
    const again = await world.command(args).ended;
    expect(again.stdout.trim().split("\n")).toHaveLength(COUNT);
    expect(world.runs).toEqual(before);
  });

  it("that was killed with calls in flight has them unknown, and other calls refused", async () => {
    const journal = join(world.folder, "cut.jsonl");
    const args = ["call", "--where", "id~unit-*", "act", "--resume", journal, "--json"];
    world.runs.clear();
    expect((await world.command(args).ended).code).toBe(0);
    const lines = journalLines(journal);
    const cut = lines.filter(({ agent_id, outcome }) => agent_id !== world.ids[3] || !outcome);
    writeFileSync(journal, cut.map((line) => `${JSON.stringify(line)}\n`).join(""));
    const { code, stdout } = await world.command(args).ended;
    expect([code, world.runs.get(world.ids[3] as string)]).toEqual([1, 1]);
    const line = stdout.split("\n").find((text) => text.includes(world.ids[3] as string)) ?? "{}";
    expect(JSON.parse(line)).toMatchObject({ outcome: "unknown" });
    const other = await world.command(["call", "--where", "id~x*", "act", "--resume", journal])
      .ended;
    expect([other.code, other.stderr]).toEqual([2, expect.stringContaining("its where is")]);
  });

  it("that a signal ends with its last call in flight is done, and leaves nothing", async () => {
    world.runs.clear();
    const running = world.command(["call", "--where", `id=${world.ids[5]}`, "act"]);
    while (world.runs.size === 0) await new Promise((done) => setTimeout(done, 1));
    const { code, stderr } = await running.stop("SIGINT");
    expect([code, stderr]).toEqual([0, expect.stringContaining("1 agents: 1 ok")]);
    expect(stderr).not.toContain("--resume");
  });
});
