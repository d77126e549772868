/** A pushed program is stored completely and confirmed, or not at all, whenever the power fails. */
import { createHash } from "node:crypto";
import { encodeJson } from "@blindrelay/protocol/crypto";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { EspruinoFlash } from "../testing/espruino-flash.ts";
import {
  answerPush,
  failTrial,
  newTransfer,
  type PushPort,
  type PushState,
  slotOf,
  startPush,
} from "./push.ts";

const PROGRAMS = ["program", "program.1"] as const;
const OLD = "module.exports=(agent)=>{old(agent)};";
const PART = 24;

const sha256 = (text: string): string => createHash("sha256").update(text, "latin1").digest("hex");
const idOf = (text: string): string => sha256(text).slice(0, 16);
const programOf = (n: number): string => `module.exports=(agent)=>{agent.handle("m${n}",f)};`;

/** One run of a device over a flash that outlives it. */
class Life {
  readonly state: PushState;
  restarts = 0;
  private readonly transfer = newTransfer();
  private port: PushPort;

  constructor(flash: EspruinoFlash) {
    const name = (slot: number): string => PROGRAMS[slot] as string;
    this.port = {
      storage: {
        read: (file) => flash.read(file) ?? null,
        write: (file, text) => {
          if (!flash.write(file, text)) throw new Error("full");
        },
      },
      maxPlaintext: 384,
      onTrial: false,
      hasWatchdog: false,
      room: (slot) => flash.getFree() + (flash.read(name(slot)) ?? "").length,
      erase: (slot) => flash.erase(name(slot)),
      write: (slot, at, size, part) => {
        if (!flash.write(name(slot), part, at, size)) throw new Error("full");
      },
      sha256: (slot) => sha256(flash.read(name(slot)) as string),
      restart: () => this.restarts++,
      confirmed: () => {},
    };
    this.state = startPush(this.port.storage);
    this.port = { ...this.port, onTrial: this.state.trial !== null };
  }

  ask(params?: object): Record<string, unknown> {
    return answerPush(this.port, this.transfer, params) as Record<string, unknown>;
  }

  begin(program: string, more: object = {}): void {
    const head = { size: program.length, sha256: sha256(program), version: "2.0.0", seconds: 60 };
    this.ask({ ...head, ...more });
  }

  part(program: string, at: number): void {
    const part = Buffer.from(program.slice(at, at + PART), "latin1");
    this.ask({ at, data: part.toString("base64url") });
  }

  send(program: string): void {
    this.begin(program);
    for (let at = 0; at < program.length; at += PART) this.part(program, at);
    this.ask({ start: true });
  }

  fail(reason: string): void {
    failTrial(this.port.storage, reason);
  }
}

const freshFlash = (): EspruinoFlash => new EspruinoFlash(new Map([["program", OLD]]));
const running = (flash: EspruinoFlash): string | undefined =>
  flash.read(PROGRAMS[slotOf(new Life(flash).state)] as string);

type End = "not confirmed" | "confirming" | "kept";

/**
 * Two runs: one stores the program, one runs it on trial and is told to keep it. Returns how far it
 * came before the power failed in the `step`-th step.
 */
const push = (flash: EspruinoFlash, program: string, step: number | null = null): End => {
  let end: End = "not confirmed";
  flash.cutAfter(step);
  try {
    new Life(flash).send(program);
    const trial = new Life(flash);
    end = "confirming";
    trial.ask({ confirm: idOf(program) });
    end = "kept";
  } catch (error) {
    if (!flash.isCut) throw error;
  }
  flash.cutAfter(null);
  return end;
};

describe("a power cut in a push", () => {
  it("at any step leaves the old program or the new one, complete, and another can be pushed", () => {
    for (const before of [0, 1]) {
      let cuts = 0;
      for (let step = 1; ; step++) {
        const flash = freshFlash();
        let old = OLD;
        // Starting from each slot.
        for (let n = 0; n < before; n++) {
          old = programOf(n);
          push(flash, old);
        }
        const end = push(flash, programOf(8), step);
        expect([old, programOf(8)]).toContain(running(flash));
        // This may have been the trial; from the second start on it is the kept program.
        const kept = running(flash);
        if (end !== "confirming") expect(kept).toBe(end === "kept" ? programOf(8) : old);
        else expect([old, programOf(8)]).toContain(kept);
        expect(running(flash)).toBe(kept);
        push(flash, programOf(9));
        expect(running(flash)).toBe(programOf(9));
        if (end === "kept") break;
        cuts++;
      }
      expect(cuts).toBeGreaterThan(200);
    }
  });

  it("after another leaves a device that runs one of the pushed programs", () => {
    const step = fc.integer({ min: 1, max: 1200 });
    fc.assert(
      fc.property(fc.array(step, { minLength: 1, maxLength: 8 }), (steps) => {
        const flash = freshFlash();
        const offered = [OLD];
        for (const [n, cut] of steps.entries()) {
          offered.push(programOf(n));
          const end = push(flash, programOf(n), cut);
          // The power may fail again right in the next start.
          flash.cutAfter(1 + (cut % 7));
          try {
            new Life(flash);
          } catch {
            // The power failed.
          }
          flash.cutAfter(null);
          const found = running(flash);
          expect(offered).toContain(found);
          if (end === "kept") expect(found).toBe(programOf(n));
        }
        push(flash, "last");
        expect(running(flash)).toBe("last");
      }),
      { numRuns: 30 },
    );
  });
});

describe("a trial", () => {
  it("is kept once it is confirmed, and answers for itself", () => {
    const flash = freshFlash();
    const first = new Life(flash);
    first.send(programOf(1));
    expect(first.restarts).toBe(1);
    const trial = new Life(flash);
    expect(trial.state.trial).toMatchObject({ id: idOf(programOf(1)), version: "2.0.0" });
    expect(trial.ask()).toMatchObject({ id: "", trial: idOf(programOf(1)), failed: null });
    trial.ask({ confirm: idOf(programOf(1)) });
    trial.ask({ confirm: idOf(programOf(1)) });
    expect(trial.ask()).toMatchObject({ id: idOf(programOf(1)), version: "2.0.0", trial: null });
    expect(running(flash)).toBe(programOf(1));
  });

  it.each([
    ["throws", (life: Life) => life.fail("no sensor"), "no sensor"],
    ["restarts the device", () => {}, "it restarted before it was confirmed"],
  ])("that %s has failed, and the previous program runs", (_what, end, reason) => {
    const flash = freshFlash();
    push(flash, programOf(1));
    new Life(flash).send(programOf(2));
    end(new Life(flash));
    expect(running(flash)).toBe(programOf(1));
    const { id, failed } = new Life(flash).ask();
    expect([id, failed]).toEqual([idOf(programOf(1)), { id: idOf(programOf(2)), reason }]);
    expect(() => new Life(flash).ask({ confirm: idOf(programOf(2)) })).toThrow("not on trial");
  });

  it.each(["датчик не отвечает на запрос", '"'.repeat(80), "ü".repeat(80), "\u0000".repeat(80)])(
    "leaves room in the shortest plaintext for the reason of its failure: %j",
    (reason) => {
      const flash = freshFlash();
      const before = new Life(flash);
      before.begin(programOf(1), { version: '"'.repeat(32) });
      for (let at = 0; at < programOf(1).length; at += PART) before.part(programOf(1), at);
      before.ask({ start: true });
      new Life(flash).fail(reason);
      const result = new Life(flash).ask();
      expect((result.failed as { reason: string }).reason).not.toBe("");
      const answer = { jsonrpc: "2.0", id: 4_294_967_295, result };
      expect((encodeJson(answer) as string).length).toBeLessThanOrEqual(384);
    },
  );

  it("is not run if there is no room for its record", () => {
    const flash = freshFlash();
    new Life(flash).send(programOf(1));
    flash.bytes = 0;
    expect(running(flash)).toBe(OLD);
  });

  it("is not started if its record is not stored", () => {
    const flash = freshFlash();
    const { write } = flash;
    flash.write = (name, ...rest) => name.startsWith("push.") || write.call(flash, name, ...rest);
    const life = new Life(flash);
    expect(() => life.send(programOf(1))).toThrow("does not keep");
    expect(life.restarts).toBe(0);
  });

  it("is confirmed only by its own id, and only while it runs", () => {
    const flash = freshFlash();
    const first = new Life(flash);
    first.send(programOf(1));
    expect(() => first.ask({ confirm: idOf(programOf(1)) })).toThrow("not on trial");
    expect(() => new Life(flash).ask({ confirm: idOf(OLD) })).toThrow("not on trial");
  });

  it("that failed is not confirmed, even if the medium had no room for its record", () => {
    const flash = freshFlash();
    new Life(flash).send(programOf(1));
    const trial = new Life(flash);
    const { bytes } = flash;
    flash.bytes = 0;
    trial.fail("no sensor");
    const good = new Life(flash);
    expect(slotOf(good.state)).toBe(0);
    flash.bytes = bytes;
    expect(good.ask()).toMatchObject({ id: "", trial: null });
    expect(() => good.ask({ confirm: idOf(programOf(1)) })).toThrow("not on trial");
  });

  it("refuses another push", () => {
    const flash = freshFlash();
    new Life(flash).send(programOf(1));
    expect(() => new Life(flash).begin(programOf(2))).toThrow("on trial");
  });
});

describe("the pushed data", () => {
  it("is not used before it is complete, in order, and stored as it was sent", () => {
    const flash = freshFlash();
    const life = new Life(flash);
    expect(() => life.part(programOf(1), 0)).toThrow("not the next part");
    life.begin(programOf(1));
    expect(() => life.part(programOf(1), PART)).toThrow("not the next part");
    life.part(programOf(1), 0);
    life.part(programOf(1), 0);
    expect(() => life.ask({ at: -3, data: "AAAA" })).toThrow("not the next part");
    expect(() => life.ask({ start: true })).toThrow("not whole");

    const other = new Life(flash);
    other.begin(programOf(1), { sha256: sha256(programOf(2)) });
    for (let at = 0; at < programOf(1).length; at += PART) other.part(programOf(1), at);
    expect(() => other.ask({ start: true })).toThrow("not stored as it was sent");
    expect(running(flash)).toBe(OLD);
  });

  it.each([
    [{ size: 0 }, "no room"],
    [{ size: 1.5 }, "no room"],
    [{ size: 10_000_000 }, "no room"],
    [{ sha256: "abc" }, "not a push"],
    [{ version: "x".repeat(33) }, "not a push"],
    [{ version: "ü".repeat(11) }, "not a push"],
    [{ seconds: 3601 }, "not a push"],
    [{ seconds: "60" }, "not a push"],
  ])("is refused if its head is invalid: %j", (more, reason) => {
    const flash = freshFlash();
    expect(() => new Life(flash).begin(programOf(1), more)).toThrow(reason);
    expect(running(flash)).toBe(OLD);
  });

  it.each(["", "A", "AA==", "!!!!", 5, null])("is refused if a part is %j", (data) => {
    const life = new Life(freshFlash());
    life.begin(programOf(1));
    expect(() => life.ask({ at: 0, data })).toThrow("not a part");
  });
});
