/** A pushed program is stored completely and confirmed, or not at all, whenever the power fails. */
import { createHash } from "node:crypto";
import { makeToken } from "@blindrelay/protocol";
import { encodeJson, pushProof } from "@blindrelay/protocol/crypto";
import { nodeSuite } from "@blindrelay/protocol/suites/node";
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

const AGENT = "pump-7";
const KEY = makeToken("push", new Uint8Array(32).fill(7));
const SERIAL_FILES = ["push-serial.0", "push-serial.1"];
const suite = nodeSuite();

/** What somebody with a push key adds to a push's first call. */
const proven = (program: string, serial: number, key = KEY, agent = AGENT): object => ({
  serial,
  proof: pushProof(suite, key, agent, serial, program.length, sha256(program)),
});

/** One run of a device over a flash that outlives it. */
class Life {
  readonly state: PushState;
  restarts = 0;
  confirmations = 0;
  private readonly transfer = newTransfer();
  private port: PushPort;

  constructor(flash: EspruinoFlash, key: string | null = null) {
    const name = (slot: number): string => PROGRAMS[slot] as string;
    this.port = {
      key,
      agentId: AGENT,
      suite,
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
      confirmed: () => this.confirmations++,
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

  send(program: string, more: object = {}): void {
    this.begin(program, more);
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
    expect(trial.confirmations).toBe(1);
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
      const before = new Life(flash, KEY);
      const largest = proven(programOf(1), Number.MAX_SAFE_INTEGER);
      before.begin(programOf(1), { version: '"'.repeat(32), ...largest });
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
    push(flash, programOf(2));
    new Life(flash).send(programOf(3));
    expect(() => new Life(flash).ask({ confirm: idOf(programOf(2)) })).toThrow("not on trial");
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

  it("is said to have failed by the good program, not by itself", () => {
    const flash = freshFlash();
    new Life(flash).send(programOf(1));
    const trial = new Life(flash);
    trial.fail("x".repeat(201));
    expect(trial.ask()).toMatchObject({ trial: idOf(programOf(1)), failed: null });
    expect(() => trial.ask({ confirm: idOf(programOf(1)) })).toThrow("not on trial");
    const failed = { id: idOf(programOf(1)), reason: "x".repeat(80) };
    expect(new Life(flash).ask()).toMatchObject({ trial: null, failed });
    // Nothing is on trial now that could fail.
    new Life(flash).fail("again");
    expect(new Life(flash).ask()).toMatchObject({ failed });
    expect(() => new Life(flash).ask({ confirm: "" })).toThrow("not on trial");
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
    expect(life.ask({ unknown: 1 })).toEqual({ stored: 0 });
    expect(() => life.ask({ start: true })).toThrow("not whole");
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
    expect(() => other.ask({ start: true })).toThrow("not stored as sent");
    expect(running(flash)).toBe(OLD);
  });

  it.each([
    { version: "x".repeat(32) },
    { version: '"'.repeat(32) },
    { seconds: 1 },
    { seconds: 3600 },
  ])("may have a head of %j", (more) => {
    const life = new Life(freshFlash());
    life.begin(programOf(1), more);
    expect(life.ask({ at: 0, data: "AAAA" })).toEqual({ stored: 3 });
  });

  it("may fill the other slot, whose content goes first, and no more than that", () => {
    const flash = freshFlash();
    new Life(flash).send(programOf(1));
    new Life(flash).fail("no sensor");
    const { room } = new Life(flash).ask() as { room: number };
    expect(room).toBe(flash.getFree() + programOf(1).length);
    const whole = "x".repeat(room);
    expect(() => new Life(flash).begin(`${whole}x`)).toThrow("no room");
    expect(flash.read("program.1")).toBe(programOf(1));
    new Life(flash).begin(whole);
    expect(flash.read("program.1")).toBeUndefined();
    push(flash, programOf(2));
    expect(new Life(flash).ask()).toMatchObject({ room: flash.getFree() + OLD.length });
  });

  it("comes in parts that fit a call, in whole groups of base64", () => {
    expect(new Life(freshFlash()).ask()).toMatchObject({ part: 192, watchdog: false });
  });

  it("is begun anew after a part that was not stored, and not continued", () => {
    const flash = freshFlash();
    const life = new Life(flash);
    life.begin(programOf(1));
    life.part(programOf(1), 0);
    const { write } = flash;
    flash.write = () => false;
    expect(() => life.part(programOf(1), PART)).toThrow("full");
    flash.write = write;
    expect(() => life.part(programOf(1), PART)).toThrow("not the next part");
    life.send(programOf(1));
    expect(running(flash)).toBe(programOf(1));
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

describe("a device with a push key", () => {
  const program = programOf(1);
  const start = (flash: EspruinoFlash): Life => new Life(flash, KEY);

  it("takes a proven program, and answers with its serial from then on", () => {
    const flash = freshFlash();
    const life = start(flash);
    expect(life.ask()).toMatchObject({ serial: 0 });
    life.send(program, proven(program, 5));
    const trial = start(flash);
    expect(trial.ask()).toMatchObject({ trial: idOf(program), serial: 5 });
    trial.ask({ confirm: idOf(program) });
    expect(start(flash).ask()).toMatchObject({ id: idOf(program), serial: 5 });
    // The key was taken away: whoever may call it pushes again, and the serial stays.
    const open = new Life(flash);
    open.send(programOf(2));
    expect(open.ask()).toMatchObject({ serial: 5 });
  });

  it("takes a hash in upper case, proven as it was sent", () => {
    const flash = freshFlash();
    const upper = sha256(program).toUpperCase();
    const proof = pushProof(suite, KEY, AGENT, 5, program.length, upper);
    const life = start(flash);
    life.begin(program, { sha256: upper, serial: 5, proof });
    life.send(program, { sha256: upper, serial: 5, proof }); // the first call again
    expect(start(flash).ask()).toMatchObject({ trial: idOf(program), serial: 5 });
  });

  const of = (change: object) => ({ ...proven(program, 5), ...change });
  const canonical = (proven(program, 5) as { proof: string }).proof;
  /** The same bytes with another last character, as lenient decoders accept it. */
  const digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
  const last = digits.indexOf(canonical.slice(-1));
  const loose = canonical.slice(0, -1) + digits[last + 1];
  const bytes = (text: string): string => Buffer.from(text, "base64url").toString("hex");

  it.each([
    ["no proof", {}, "it wants a push key: push --push-key FILE"],
    ["a proof under __proto__", JSON.parse(`{"__proto__":${JSON.stringify(of({}))}}`), "wants"],
    ["an empty proof", of({ proof: "" }), "not proven"],
    ["a proof that is no text", of({ proof: [canonical] }), "not proven"],
    ["another key's", proven(program, 5, makeToken("push", new Uint8Array(32))), "not proven"],
    ["another device's", proven(program, 5, KEY, "pump-71"), "not proven"],
    ["another program's", proven(programOf(2), 5), "not proven"],
    ["another serial's", of({ serial: 6 }), "not proven"],
    ["a padded one", of({ proof: `${canonical}=` }), "not proven"],
    ["one with other low bits", of({ proof: loose }), "not proven"],
    ["another size", of({ size: program.length + 1 }), "not proven"],
    ["another hash", of({ sha256: sha256("x") }), "not proven"],
    ["no serial", of({ serial: undefined }), "not proven"],
    ["a serial as a text", of({ serial: "5" }), "not proven"],
    ["serial 0", proven(program, 0), "not proven"],
    ["serial -1", proven(program, -1), "not proven"],
    ["serial 1.5", proven(program, 1.5), "not proven"],
    ["serial 2^53", proven(program, 2 ** 53), "not proven"],
    ["an infinite serial", proven(program, Number.POSITIVE_INFINITY), "not proven"],
  ])("refuses %s, and changes nothing", (_what, more, reason) => {
    expect([bytes(loose), loose]).toEqual([bytes(canonical), expect.not.stringMatching(canonical)]);
    const flash = freshFlash();
    const before = programOf(3);
    start(flash).send(before, proven(before, 1));
    start(flash).ask({ confirm: idOf(before) });
    const life = start(flash);
    life.begin(programOf(4), proven(programOf(4), 2));
    const files = new Map(flash.files);
    expect(() => life.begin(program, more)).toThrow(reason);
    expect(flash.files).toEqual(files);
    // The push in progress goes on.
    for (let at = 0; at < programOf(4).length; at += PART) life.part(programOf(4), at);
    life.ask({ start: true });
    expect(running(flash)).toBe(programOf(4));
  });

  it("takes no serial twice, nor a lower one, also after restarts and with other programs", () => {
    const flash = freshFlash();
    start(flash).begin(program, proven(program, 5));
    for (const serial of [5, 4, 1]) {
      const life = start(flash);
      expect(() => life.begin(program, proven(program, serial))).toThrow("must be above 5");
      const other = programOf(2);
      expect(() => life.begin(other, proven(other, serial))).toThrow("must be above 5");
      expect(life.ask()).toMatchObject({ serial: 5 });
    }
    // After flashing by cable, which discards pushed programs and their record.
    for (const name of ["push.0", "push.1", "program.1"]) flash.erase(name);
    expect(() => start(flash).begin(program, proven(program, 5))).toThrow("must be above 5");
    start(flash).begin(program, proven(program, Number.MAX_SAFE_INTEGER));
    expect(start(flash).ask()).toMatchObject({ serial: Number.MAX_SAFE_INTEGER });
  });

  it("answers the first call of the push in progress again, and forgets nothing of it", () => {
    const flash = freshFlash();
    const life = start(flash);
    const head = { size: program.length, sha256: sha256(program), version: "2.0.0", seconds: 60 };
    const call = { ...head, ...proven(program, 5) };
    expect(life.ask(call)).toEqual({ stored: 0 });
    expect(life.ask(call)).toEqual({ stored: 0 });
    life.part(program, 0);
    expect(life.ask(call)).toEqual({ stored: PART });
    for (let at = 0; at < program.length; at += PART) life.part(program, at);
    life.ask({ start: true });
    // It is over.
    expect(() => life.ask(call)).toThrow("on trial");
    const later = start(flash);
    later.fail("no sensor");
    expect(() => start(flash).ask(call)).toThrow("must be above 5");
  });

  it("begins anew with another proven program while a push is in progress", () => {
    const flash = freshFlash();
    const life = start(flash);
    life.begin(programOf(2), proven(programOf(2), 5));
    life.part(programOf(2), 0);
    life.send(program, proven(program, 6));
    expect(running(flash)).toBe(program);
  });

  it("begins anew with the same program under a later serial, and keeps that", () => {
    const life = start(freshFlash());
    life.begin(program, proven(program, 5));
    life.part(program, 0);
    life.begin(program, proven(program, 6));
    expect(life.ask()).toMatchObject({ serial: 6 });
    expect(() => life.part(program, PART)).toThrow("not the next part");
  });

  it("takes the first call of a push no more that a failed part ended", () => {
    const flash = freshFlash();
    const life = start(flash);
    life.begin(program, proven(program, 5));
    flash.write = () => false;
    expect(() => life.part(program, 0)).toThrow("full");
    expect(() => life.begin(program, proven(program, 5))).toThrow("must be above 5");
  });

  it("takes no other program under the serial of the push in progress, which goes on", () => {
    const flash = freshFlash();
    const life = start(flash);
    life.begin(program, proven(program, 5));
    life.part(program, 0);
    const other = programOf(2);
    expect(() => life.begin(other, proven(other, 5))).toThrow("must be above 5");
    for (let at = PART; at < program.length; at += PART) life.part(program, at);
    life.ask({ start: true });
    expect(running(flash)).toBe(program);
  });

  it("stores nothing of a program if its serial is not stored", () => {
    const flash = freshFlash();
    const { write } = flash;
    flash.write = (name, ...rest) =>
      SERIAL_FILES.includes(name) || write.call(flash, name, ...rest);
    const life = start(flash);
    expect(() => life.begin(program, proven(program, 5))).toThrow("does not keep");
    expect(() => life.part(program, 0)).toThrow("not the next part");
    expect(life.ask()).toMatchObject({ serial: 0 });
  });

  it("spends no serial on a program for which it has no room", () => {
    const flash = freshFlash();
    const large = "x".repeat(10_000_000);
    expect(() => start(flash).begin(large, proven(large, 5))).toThrow("no room");
    expect(start(flash).ask()).toMatchObject({ serial: 0 });
  });

  it("never takes a serial again that it took, whenever the power fails", () => {
    for (let before = 0; before < 3; before++) {
      for (let step = 1, isOver = false; !isOver; step++) {
        const flash = freshFlash();
        for (let n = 1; n <= before; n++) start(flash).begin(programOf(n), proven(programOf(n), n));
        const serial = before + 1;
        flash.files.set("program.1", "of an older push");
        flash.cutAfter(step);
        try {
          start(flash).begin(program, proven(program, serial));
          isOver = true;
        } catch (error) {
          if (!flash.isCut) throw error;
        }
        flash.cutAfter(null);
        const { serial: kept } = start(flash).ask();
        expect(isOver ? [serial] : [before, serial]).toContain(kept);
        for (let old = 1; old <= (kept as number); old++) {
          expect(() => start(flash).begin(program, proven(program, old))).toThrow("above");
        }
        // Where nothing of it was accepted, nothing else was changed.
        if (kept === before) expect(flash.read("program.1")).toBe("of an older push");
        start(flash).begin(program, proven(program, serial + 1));
      }
    }
  });
});
