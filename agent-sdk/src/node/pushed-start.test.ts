/**
 * Programs pushed to an agent on Node: the contents of its state folder from one start to the next.
 */
import { createHash } from "node:crypto";
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { makeToken } from "@blindrelay/protocol";
import { pushProof } from "@blindrelay/protocol/crypto";
import { nodeSuite } from "@blindrelay/protocol/suites/node";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import type { Agent } from "../core/agent.ts";
import type { AgentCore } from "../core/agent-core.ts";
import { lockState } from "./lock.ts";
import { endTrial, type PushedStart, pushedStart } from "./pushed-start.ts";
import { folderStorage } from "./storage.ts";

const AGENT = {} as Agent;
const sha256 = (text: string): string => createHash("sha256").update(text).digest("hex");
const idOf = (text: string): string => sha256(text).slice(0, 16);

let folder: string;
let ran: string[];
let logged: string[];
let lives: Life[];

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "blindrelay-push-"));
  ran = [];
  logged = [];
  lives = [];
});
afterEach(() => {
  for (const life of lives) life.start.stop();
  vi.useRealTimers();
  rmSync(folder, { recursive: true, force: true });
});

/**
 * A process that runs the agent. A program that begins with `!` cannot be loaded, `?` never
 * finishes.
 */
class Life {
  readonly start: PushedStart;
  restarts = 0;
  /** What failed before a restart, or "". */
  readonly ends: string[] = [];
  private answer: (params?: unknown) => unknown = () => undefined;

  constructor(key: string | null = null) {
    const load = async (path: string) => {
      const text = readFileSync(path, "utf8");
      if (text === "?") await new Promise(() => undefined);
      if (text.startsWith("!")) throw new Error(text.slice(1));
      return () => void ran.push(text);
    };
    const restart = () => void this.restarts++;
    const log = (_level: string, message: string) => void logged.push(message);
    const ending = (text: string) => void this.ends.push(text);
    this.start = pushedStart(folder, { load, restart }, key, nodeSuite(), log, ending);
    const add = (_method: string, handler: (params?: unknown) => unknown) => {
      this.answer = handler;
    };
    const core = { maxPlaintext: 384, agent: { id: "pump-7" }, dispatcher: { add } };
    this.start.takePushes(core as unknown as AgentCore);
    lives.push(this);
  }

  ask(params?: object): Record<string, unknown> {
    return this.answer(params) as Record<string, unknown>;
  }

  send(program: string): void {
    const bytes = Buffer.from(program);
    this.ask({ size: bytes.length, sha256: sha256(program), version: "2.0.0", seconds: 60 });
    for (let at = 0; at < bytes.length; at += 24) {
      this.ask({ at, data: bytes.subarray(at, at + 24).toString("base64url") });
    }
    this.ask({ start: true });
  }

  run = async (): Promise<void> => this.start.program?.(AGENT);
}

const push = async (program: string): Promise<void> => {
  new Life().send(program);
  const trial = new Life();
  await trial.run();
  trial.ask({ confirm: idOf(program) });
  ran = [];
};

const FIRST = "the first program that was pushed, of 2 or 3 parts, °C";
const SECOND = "the second";

it("runs the caller's own program until one is pushed, and that one from then on", async () => {
  expect([new Life().start.program, new Life().start.version]).toEqual([null, null]);
  await push(FIRST);
  for (const _restart of [1, 2]) {
    const life = new Life();
    await life.run();
    expect([life.start.version, life.ask().trial]).toEqual(["2.0.0", null]);
  }
  expect(ran).toEqual([FIRST, FIRST]);
});

it("never overwrites the running program", async () => {
  await push(FIRST);
  const holds = () => readdirSync(folder).filter((name) => name.startsWith("program."));
  expect(holds()).toEqual(["program.1.mjs"]);
  const life = new Life();
  life.ask({ size: 5, sha256: sha256("12345"), version: "", seconds: 60 });
  life.ask({ at: 0, data: Buffer.from("1234").toString("base64url") });
  expect(readFileSync(join(folder, "program.1.mjs"), "utf8")).toBe(FIRST);
  await push(SECOND);
  expect(holds()).toEqual(["program.0.mjs", "program.1.mjs"]);
  expect(readFileSync(join(folder, "program.1.mjs"), "utf8")).toBe(FIRST);
});

it("asks to be restarted after storing one and sending its answer", () => {
  vi.useFakeTimers();
  const life = new Life();
  life.send(FIRST);
  expect(life.restarts).toBe(0);
  vi.runAllTimers();
  expect(life.restarts).toBe(1);
});

it("returns to the old program after a trial that throws or is not confirmed in time", async () => {
  vi.useFakeTimers();
  await push(FIRST);
  new Life().send("!no sensor");
  const throws = new Life();
  await expect(throws.run()).rejects.toThrow("no sensor");
  expect(throws.restarts).toBe(1);
  expect(new Life().ask()).toMatchObject({ id: idOf(FIRST), failed: { reason: "no sensor" } });

  new Life().send(SECOND);
  const late = new Life();
  await late.run();
  vi.advanceTimersByTime(60_000);
  expect(late.restarts).toBe(1);
  const back = new Life();
  await back.run();
  expect(back.ask().failed).toMatchObject({ reason: "it was not confirmed in 60 s" });
  expect([throws.ends[0], late.ends.at(-1)]).toEqual(["no sensor", "it was not confirmed in 60 s"]);
  expect(ran).toEqual([SECOND, FIRST]);
});

it("has no time limit once it is confirmed", async () => {
  vi.useFakeTimers();
  new Life().send(FIRST);
  const trial = new Life();
  await trial.run();
  trial.ask({ confirm: idOf(FIRST) });
  vi.advanceTimersByTime(3_600_000);
  expect(trial.restarts).toBe(0);
  expect(trial.ask()).toMatchObject({ id: idOf(FIRST), trial: null });
});

it("continues without a kept program that can no longer be loaded", async () => {
  await push(FIRST);
  writeFileSync(join(folder, "program.1.mjs"), "!damaged");
  const life = new Life();
  await life.run();
  expect([life.restarts, logged.length]).toEqual([0, 1]);
  await push(SECOND);
  await new Life().run();
  expect(ran).toEqual([SECOND]);
});

it("continues without a kept program that never finishes its start", async () => {
  await push(FIRST);
  vi.useFakeTimers();
  writeFileSync(join(folder, "program.1.mjs"), "?");
  const life = new Life();
  const started = life.run();
  await vi.advanceTimersByTimeAsync(60_000);
  await started;
  expect([life.restarts, logged.length]).toEqual([0, 1]);
});

it("does not touch a trial that runs under another agent's lock", async () => {
  new Life().send(FIRST);
  const lock = await lockState(folder);
  const trial = new Life();
  await trial.run();
  expect(await endTrial(folder, "exit code 7")).toBe(false);
  expect(trial.ask({ confirm: idOf(FIRST) })).toMatchObject({ id: idOf(FIRST) });
  await lock.release();
});

it("does not report a trial as ended if that cannot be stored", async () => {
  new Life().send(FIRST);
  await new Life().run();
  // The place of the next record.
  mkdirSync(join(folder, "push.1.new"));
  expect(await endTrial(folder, "exit code 7")).toBe(false);
});

it("gets the reason for the end of a trial from its supervisor", async () => {
  expect(await endTrial(folder, "exit code 3")).toBe(false);
  new Life().send(FIRST);
  // Stored but not started: it has not failed, and the next start may have the same result.
  expect(await endTrial(folder, "exit code 2")).toBe(false);
  await new Life().run();
  expect(await endTrial(folder, "exit code 3")).toBe(true);
  expect(await endTrial(folder, "exit code 3")).toBe(false);
  const told = () => folderStorage(folder).read("log.last");
  expect(told()).toBe("push\nexit code 3");
  expect(await endTrial(folder, "SIGABRT, as out of memory")).toBe(false);
  expect(told()).toBe("memory\nSIGABRT, as out of memory");
  const life = new Life();
  expect([life.start.program, life.ask().failed]).toEqual([
    null,
    { id: idOf(FIRST), reason: "exit code 3" },
  ]);
});

it("takes with a push key only what is proven for this agent, and no serial twice", () => {
  const key = makeToken("push", new Uint8Array(32).fill(3));
  const size = FIRST.length;
  const head = { size, sha256: sha256(FIRST), version: "2.0.0", seconds: 60 };
  const proven = (agentId: string) => ({
    ...head,
    ...{ serial: 4, proof: pushProof(nodeSuite(), key, agentId, 4, size, head.sha256) },
  });
  expect(() => new Life(key).ask(head)).toThrow("push --push-key FILE");
  expect(() => new Life(key).ask(proven("pump-8"))).toThrow("not proven");
  expect(new Life(key).ask(proven("pump-7"))).toEqual({ stored: 0 });
  expect(() => new Life(key).ask(proven("pump-7"))).toThrow("must be above 4");
  expect(new Life(key).ask().serial).toBe(4);
  expect(readdirSync(folder)).toEqual(["push-serial.1"]);
});
