/**
 * Programs pushed over the relay to a chip, through the real relay and the real bridge. They are
 * byte code: the chip has no parser.
 */
import { createHash } from "node:crypto";
import { readFileSync, writeFileSync } from "node:fs";
import { setTimeout as wait } from "node:timers/promises";
import { compileForChip } from "@blindrelay/agent-sdk/testing/chip/build";
import { CHIP_EXIT } from "@blindrelay/agent-sdk/testing/chip/chip";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Ended } from "../cli/processes.ts";
import { PushLives } from "./cut-lives.ts";
import { type Caller, ChipFolder, ChipHouse, chip, whySkipped, withoutChip } from "./house.ts";

/** To run more: PUSH_CUTS=200 npx vitest run test/src/chip/push.test.ts */
const CUTS = Number(process.env.PUSH_CUTS ?? 40);
/** What a life writes that receives a push, restarts and keeps the program: some more words. */
const CUT_WORDS = 1100;
/** With PUSH_FAILURES=10 each kind of failure, so many times. */
const TIMES = Number(process.env.PUSH_FAILURES ?? 0);
/** More than is free while a program's RAM is kept that fills its slot. */
const TAKEN = 40_000;
const BIG = `"${"x".repeat(14_000)}";`;
/** On a machine that is busy a start takes seconds. */
const WATCHDOG_MS = 6000;
const POLL_MS = 100;

/** Of a mixture of two programs, the numbers would differ. */
const text = (n: number, body = ""): string => `export default (agent) => {
  const first = ${n}, filler = "${`${n} `.repeat(200)}";
  ${body}
  agent.handle("which", () => [first, Number(filler.slice(filler.lastIndexOf(" ", filler.length - 2))), ${n}]);
};
`;
const compiled = (n: number, body?: string): Uint8Array => compileForChip(chip, text(n, body));
const sha256 = (bytes: Uint8Array): string => createHash("sha256").update(bytes).digest("hex");
const idOf = (bytes: Uint8Array): string => sha256(bytes).slice(0, 16);

interface Status {
  readonly id: string;
  readonly trial: string | null;
  readonly failed: { readonly id: string; readonly reason: string } | null;
  readonly part: number;
}

/** A chip, as seen by those who push to it. */
class PushedChip {
  readonly house = new ChipHouse();
  private caller: Caller = () => Promise.reject(new Error("not opened"));
  private files = 0;

  async open(): Promise<void> {
    const image = await this.house.folder.image("agent");
    await this.house.open(image, { pushes: { watchdogMs: WATCHDOG_MS } });
    this.caller = await this.house.caller();
  }

  private cli(words: readonly string[]): Promise<Ended> {
    const { world, agentToken } = this.house;
    const env = { BLINDRELAY_AGENT_ID: "chip", BLINDRELAY_AGENT_TOKEN: agentToken };
    return world.house.cli([...words], env);
  }

  /** By the command. */
  command(bytes: string | Uint8Array): Promise<Ended> {
    this.files++;
    const file = this.house.folder.path(`${this.files}.bin`);
    writeFileSync(file, bytes);
    return this.cli(["push", "chip", file, "--timeout", "60"]);
  }

  /** Sends it, and starts the trial. */
  async send(bytes: Uint8Array, seconds = 60): Promise<void> {
    const { part } = await this.status();
    const head = { size: bytes.length, sha256: sha256(bytes), version: "1.0.0", seconds };
    await this.caller("system.push", head);
    for (let at = 0; at < bytes.length; at += part) {
      const data = Buffer.from(bytes.subarray(at, at + part)).toString("base64url");
      await this.caller("system.push", { at, data });
    }
    await this.caller("system.push", { start: true });
  }

  status(): Promise<Status> {
    return this.caller("system.push") as Promise<Status>;
  }

  /** Waits until the program is on trial, or what became of it. */
  async begun(id: string): Promise<Status> {
    for (;;) {
      const status = await this.status();
      if (status.trial === id || status.id === id || status.failed?.id === id) return status;
      await wait(POLL_MS);
    }
  }

  async ended(id: string): Promise<Status> {
    for (;;) {
      const status = await this.begun(id);
      if (status.trial === null) return status;
      await wait(POLL_MS);
    }
  }

  confirm(id: string): Promise<unknown> {
    return this.caller("system.push", { confirm: id });
  }

  /** Has the first program take memory. */
  take(): Promise<unknown> {
    return this.caller("take");
  }

  /** The program that runs; "own": none was pushed. */
  async which(): Promise<number | "own"> {
    try {
      const numbers = (await this.caller("which")) as number[];
      expect(new Set(numbers).size, `${numbers}`).toBe(1);
      return numbers[0] as number;
    } catch (error) {
      if ((error as { remote?: { code: number } }).remote?.code === -32601) return "own";
      throw error;
    }
  }
}

/** First those of other sorts than what embedded/push.test.ts has without an engine. */
const FAILURES = [
  ["throws", `${BIG} throw new Error("no sensor");`, "no sensor"],
  ["loops", "for (;;);", "it did not respond in time"],
  ["uses all memory", "const all = []; for (;;) all.push([1, 2, 3]);", "memory is full"],
  ["is not confirmed", "", "it was not confirmed in 2 s"],
  ["rejects later", 'agent.after(900, () => Promise.reject(new Error("no answer")));', "no answer"],
  ["loops later", "agent.after(900, () => { for (;;); });", "it did not respond in time"],
  ["loops in promises", "const f = () => Promise.resolve(1).then(f); f();", /memory|respond/],
  ["recurses", "const f = () => f() + 1; f();", "stack overflow"],
  [
    "uses all memory bit by bit",
    "const all = []; agent.every(50, () => { for (let i = 0; i < 100; i++) all.push({ b: [i] }); });",
    "memory is full",
  ],
] as const;

describe.skipIf(withoutChip)(`a chip that takes programs${whySkipped}`, () => {
  const pushed = new PushedChip();
  beforeAll(() => pushed.open());
  afterAll(() => pushed.house.close());

  it("has no parser in its image", () => {
    const elf = readFileSync(chip.elf);
    expect([elf.includes("fxRunScript"), elf.includes("fxParserTree")]).toEqual([true, false]);
  });

  it("keeps byte code that the command sends, and takes neither text nor another build's", async () => {
    const take = `agent.handle("take", () => new Uint8Array(${TAKEN}).length);`;
    const kept = await pushed.command(compiled(1, take));
    expect([kept.code, kept.stderr]).toEqual([0, ""]);
    const foreign = compiled(2);
    foreign[4] = (foreign[4] as number) ^ 1;
    for (const [bytes, reason] of [
      [text(2), /is text, and the device takes byte code of build [0-9a-f]{16}: compile it/],
      [foreign, /is byte code of build [0-9a-f]{16}, and the device takes/],
    ] as const) {
      const { code, stderr } = await pushed.command(bytes);
      expect([code, stderr]).toEqual([2, expect.stringMatching(reason)]);
    }
    // Nor from others.
    await expect(pushed.send(foreign)).rejects.toThrow("this device takes that of build");
    await expect(pushed.send(Buffer.from(text(2)))).rejects.toThrow("it is not byte code");
    expect([await pushed.which(), (await pushed.status()).trial]).toEqual([1, null]);
  });

  it.each(TIMES > 0 ? FAILURES : FAILURES.slice(0, 3))(
    "returns to the program before, with all its memory, from one that %s",
    async (_what, body, reason) => {
      const before = await pushed.which();
      for (let n = 1; n <= Math.max(1, TIMES); n++) {
        const program = compiled(100 + n, body);
        await pushed.send(program, body === "" ? 2 : 60);
        const { failed } = await pushed.ended(idOf(program));
        expect(failed?.reason).toMatch(reason);
        expect(await pushed.which()).toBe(before);
        expect(await pushed.take()).toBe(TAKEN);
      }
    },
  );
});

describe.skipIf(withoutChip)(`a chip whose power is cut${whySkipped}`, () => {
  const folder = new ChipFolder();
  afterAll(() => folder.close());

  it(`runs the program before or the new one after each of ${CUTS} cuts at chosen words`, async () => {
    const image = await folder.image("push-cuts", { pushed: [1, 2, 3].map((n) => compiled(n)) });
    const lives = new PushLives(folder, image);
    expect(await lives.provision()).toEqual({ code: 0, output: "" });
    const cuts = Array.from({ length: CUTS }, (_, i) => 1 + ((i * 463 + 300) % CUT_WORDS));
    const { code, output } = await lives.run({ cuts });
    expect(code, output.slice(-500)).toBe(CHIP_EXIT.powerCut);
    lives.check(output);
    console.log(`chip: power cuts in a push: ${JSON.stringify(lives.cuts)}, ${lives.kept} kept`);
    expect(lives.kept).toBeGreaterThan(0);
  }, 3_000_000);
});
