/**
 * Trials of pushed programs in the built file, on the subset's board under a virtual clock: what
 * runs when a program fails, and how soon.
 */
import { createHash } from "node:crypto";
import { fileURLToPath } from "node:url";
import { makeToken } from "@blindrelay/protocol";
import { pushProof } from "@blindrelay/protocol/crypto";
import { nodeSuite } from "@blindrelay/protocol/suites/node";
import { beforeEach, describe, expect, it } from "vitest";
import { bootCode, LOAD } from "../../build/boot.ts";
import { buildForBoard } from "../../build/espruino.ts";
import { readPush } from "../core/push.ts";
import { ManualTimer } from "../memory/index.ts";
import type { TimerPort } from "../ports.ts";
import { EspruinoFlash } from "../testing/espruino-flash.ts";
import { SubsetBoard, type Surroundings } from "../testing/espruino-subset.ts";
import { storageFiles } from "./files.ts";

const ENTRY = fileURLToPath(new URL("../testing/espruino-push.ts", import.meta.url));
const SDK = buildForBoard(ENTRY).stored;
const TRIAL_MS = 120_000;
const WATCHDOG_MS = 25_000;
const FEED_MS = 3_000;
const HOUR_MS = 3_600_000;

const CONFIG = {
  url: "ws://relay.example/wss",
  agent_id: "board",
  relay_token: makeToken("agent", new Uint8Array(32).fill(1)),
  agent_token: makeToken("e2e", new Uint8Array(32).fill(2)),
  v: "2",
};

/** Nothing answers: the agent tries again for as long as it lives. */
const DEAD_NET: Surroundings["net"] = {
  connect: () => ({ on: () => {}, write: () => true, end: () => {} }),
};

const says = (name: string, more = ""): string =>
  `module.exports=(agent)=>{agent.handle("which",()=>1);console.log("${name}");${more}};`;

/** A board that starts again by itself, from flash. */
class Board {
  readonly timer = new ManualTimer();
  readonly flash = new EspruinoFlash(new Map());
  /** The programs that ran, in order, and when they began. */
  readonly ran: { name: string; at: number }[] = [];
  readonly printed: string[] = [];
  free = 4000;
  watchdogSeconds = 26;
  life: SubsetBoard | null = null;
  /** Its turns after a time are lost, but not the feeding of its watchdog. */
  losesTurns = false;

  constructor(more: object = {}) {
    const files = {
      blindrelay: SDK,
      "blindrelay.json": JSON.stringify({ ...CONFIG, ...more }),
      program: says("old"),
      ".bootcde": bootCode("1.0.0", true),
    };
    for (const [name, text] of Object.entries(files)) this.flash.files.set(name, text);
    new SubsetBoard(this.flash.files).evaluate(`${LOAD}$br.provision()`);
    this.start();
  }

  start(): void {
    this.life?.powerOff();
    const { timer, watchdogSeconds } = this;
    const lossy: TimerPort = {
      now: () => timer.now(),
      set: (ms, fn) =>
        timer.set(ms, () => {
          if (!this.losesTurns || [FEED_MS, WATCHDOG_MS].includes(ms)) fn();
        }),
      clear: (handle) => timer.clear(handle),
    };
    this.life = new SubsetBoard(this.flash.files, {
      timer: lossy,
      watchdogSeconds,
      net: DEAD_NET,
      storage: this.flash,
      free: () => this.free,
      restart: () => {
        // With its memory.
        this.free = 4000;
        delete (this.flash as { read?: unknown }).read;
        this.losesTurns = false;
        this.start();
      },
      print: (line) => {
        this.printed.push(line);
        if (!line.includes(" ")) this.ran.push({ name: line, at: timer.now() });
      },
    });
    this.life.boot();
  }

  /** What `system.push` answers. */
  ask(params?: object): { [member: string]: unknown } {
    const request = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "system.push", params });
    this.life?.evaluate(`$br.ask(${JSON.stringify(request)},(a)=>{told=a})`);
    this.timer.advance(1);
    const { result, error } = JSON.parse(this.life?.evaluate("told") as string);
    return result ?? error;
  }

  /** Starts it on trial. */
  push(program: string): void {
    const bytes = Buffer.from(program, "latin1");
    const sha256 = createHash("sha256").update(bytes).digest("hex");
    this.ask({ size: bytes.length, sha256, version: "2", seconds: TRIAL_MS / 1000 });
    this.ask({ at: 0, data: bytes.toString("base64url") });
    expect(this.ask({ start: true })).toEqual({ stored: bytes.length });
    this.timer.advance(499);
  }

  keep(program: string): void {
    this.push(program);
    const { trial } = this.ask();
    this.ask({ confirm: trial });
    expect(this.ask()).toMatchObject({ id: trial, trial: null });
  }

  /** Nothing can be allocated any more, and so nothing be read or stored. */
  useAllMemory(): void {
    this.free = 20;
    this.flash.read = () => {
      throw new Error("out of memory");
    };
  }

  get names(): string[] {
    return this.ran.map(({ name }) => name);
  }

  get failed(): string | undefined {
    return readPush(storageFiles(this.flash)).failed?.reason;
  }

  /** Milliseconds from the start of the pushed program to that of the old one, which then stays. */
  back(): number {
    this.timer.advance(HOUR_MS);
    expect(this.names).toEqual(["old", this.names[1], "old"]);
    return (this.ran[2]?.at as number) - (this.ran[1]?.at as number);
  }
}

let board: Board;
beforeEach(() => {
  board = new Board();
});

describe("a program on trial", () => {
  it("that throws, having registered handlers, is gone at once", () => {
    board.push(says("throws", 'throw new Error("no sensor");'));
    expect(board.back()).toBeLessThan(10);
    expect(board.failed).toBe("no sensor");
  });

  it("that throws later is gone at once", () => {
    board.push(says("late", 'setTimeout(() => { throw new Error("no answer"); }, 1000);'));
    expect(board.back()).toBeLessThan(1_010);
    expect(board.failed).toBe("no answer");
    expect(board.printed).toContain("Uncaught Error: no answer");
  });

  it("whose error the engine loses is gone at once, too", () => {
    board.push(says("lost", "setTimeout(() => { throw undefined; }, 1000);"));
    expect(board.back()).toBeLessThan(1_010);
    expect(board.failed).toBe("it threw");
  });

  it("that hangs is gone when the watchdog resets the board", () => {
    board.push(says("hangs"));
    board.life?.hang();
    expect(board.back()).toBeLessThanOrEqual(WATCHDOG_MS);
    expect(board.failed).toBe("it restarted before it was confirmed");
  });

  it("that runs out of memory is gone at once, though the engine has freed it again", () => {
    board.push(says("eats"));
    board.timer.advance(1_000);
    board.life?.starve();
    expect(board.back()).toBeLessThan(1_010);
    expect(board.failed).toBe("it ran out of memory");
  });

  it("that leaves too little memory is gone soon, though its failure cannot be stored", () => {
    board.push(says("greedy"));
    board.useAllMemory();
    // Nor is there any for another timer.
    board.life?.evaluate("setTimeout = () => { throw new Error(); }");
    expect(board.back()).toBeLessThan(3 * FEED_MS);
    expect(board.failed).toBe("it restarted before it was confirmed");
  });

  it("that leaves too little memory to restart is gone when the watchdog resets the board", () => {
    board.push(says("greedy", 'load = setTimeout = () => { throw new Error("no memory"); };'));
    board.useAllMemory();
    expect(board.back()).toBeLessThan(2 * FEED_MS + WATCHDOG_MS);
  });

  it("that is not confirmed in time is gone", () => {
    board.push(says("mute"));
    const ms = board.back();
    expect(ms).toBeGreaterThanOrEqual(TRIAL_MS);
    expect(ms).toBeLessThan(TRIAL_MS + FEED_MS);
    expect(board.failed).toBe("it was not confirmed in time");
  });

  it("stays on trial in its own answers until another runs", () => {
    board.push(says("late", 'load = () => {}; setTimeout(() => { throw new Error("a"); }, 10);'));
    const { trial } = board.ask();
    board.life?.evaluate("setTimeout = () => {}");
    board.timer.advance(20);
    expect(board.names).toEqual(["old", "late"]);
    expect(board.failed).toBe("a");
    board.life?.evaluate("");
    expect(board.ask()).toMatchObject({ trial, failed: null });
    expect(board.ask({ size: 1 })).toMatchObject({ message: "a program is on trial" });
  });
});

describe("a program that was kept", () => {
  it("runs on while the agent tries to come online, and after it was stopped", () => {
    board.keep(says("kept"));
    board.timer.advance(HOUR_MS);
    board.life?.evaluate("$br.stop()");
    board.timer.advance(HOUR_MS);
    expect(board.names).toEqual(["old", "kept"]);
  });

  it("may throw later, for the console to report", () => {
    board.keep(says("kept", 'setTimeout(() => { throw new Error("late"); }, 60000);'));
    board.timer.advance(HOUR_MS);
    expect(board.printed).toContain("Uncaught Error: late");
    expect(board.names).toEqual(["old", "kept"]);
  });

  it.each([
    ["hangs", 0, () => board.life?.hang()],
    ["leaves too little memory", 0, () => board.useAllMemory()],
    // Of its next connect, and noticed some time later.
    ["loses the turn of the link's timer", 150_000, () => (board.losesTurns = true)],
  ])("starts again if it %s", (_what, noticedMs, fail) => {
    board.keep(says("kept"));
    board.timer.advance(HOUR_MS);
    fail();
    board.timer.advance(noticedMs + WATCHDOG_MS);
    expect(board.names).toEqual(["old", "kept", "kept"]);
    board.timer.advance(HOUR_MS);
    expect(board.names).toHaveLength(3);
  });

  it("leaves the watchdog to Espruino after reset() and save()", () => {
    board.keep(says("kept"));
    board.life?.reset();
    board.timer.advance(HOUR_MS);
    expect(board.names).toEqual(["old", "kept"]);
  });
});

describe("a board", () => {
  it("whose watchdog counts to 8 s uses that", () => {
    board.watchdogSeconds = 8.3;
    board.push(says("hangs"));
    expect(board.ask()).toMatchObject({ watchdog: true });
    board.life?.hang();
    expect(board.back()).toBeLessThan(10_000);
  });

  it("without a watchdog says so, and its agent runs on", () => {
    board.watchdogSeconds = 0;
    board.keep(says("kept"));
    board.start();
    board.timer.advance(HOUR_MS);
    expect(board.ask()).toMatchObject({ trial: null, watchdog: false });
    expect(board.names).toEqual(["old", "kept", "kept"]);
  });
});

describe("the log of a board", () => {
  const logs = (): { lines: { text: string }[]; restart: object; boot: number } => {
    const request = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "system.log" });
    board.life?.evaluate(`$br.ask(${JSON.stringify(request)},(a)=>{told=a})`);
    board.timer.advance(1);
    return JSON.parse(board.life?.evaluate("told") as string).result;
  };

  it("says that memory ran out, once the watchdog has restarted it", () => {
    board.life?.starve();
    board.useAllMemory();
    board.timer.advance(60_000);
    expect(board.names).toEqual(["old", "old"]);
    expect(logs().restart).toEqual({ reason: "memory", text: "it ran out of memory" });
  });

  it("says so if memory never ran out in a turn, but too little was free", () => {
    board.free = 300;
    board.timer.advance(60_000);
    expect(board.names).toEqual(["old", "old"]);
    expect(logs().restart).toEqual({ reason: "memory", text: "it ran out of memory" });
  });

  it("says that a pushed program failed, and how, when that was thrown by a timer", () => {
    board.push(says("late", 'setTimeout(() => { throw new Error("no answer"); }, 1000);'));
    board.timer.advance(60_000);
    expect(board.names).toEqual(["old", "late", "old"]);
    expect(logs().restart).toEqual({ reason: "push", text: "no answer" });
  });

  it("says that memory ran out, whatever was thrown then", () => {
    board.keep(says("bad", 'setTimeout(()=>{throw new Error("no sensor")},9000);'));
    board.life?.starve();
    board.timer.advance(9_000);
    board.useAllMemory();
    board.timer.advance(60_000);
    expect(logs().restart).toEqual({ reason: "memory", text: "it ran out of memory" });
  });

  it("has what a timer of the program threw, and the console too", () => {
    board.keep(says("bad", 'setTimeout(()=>{throw new Error("no sensor")},9000);'));
    board.timer.advance(9_000);
    expect(logs().lines.map(({ text }) => text)).toContain("uncaught: no sensor");
    expect(board.printed).toContain("Uncaught Error: no sensor");
  });

  it("says that it restarted for another program, and why one was given up", () => {
    board.push(says("fine"));
    board.timer.advance(1000);
    expect(logs().restart).toEqual({ reason: "push", text: "" });
    board.timer.advance(TRIAL_MS + 1000);
    expect(board.names).toEqual(["old", "fine", "old"]);
    expect(logs().restart).toEqual({ reason: "push", text: "it was not confirmed in time" });
    board.push(says("throws", 'throw new Error("no sensor");'));
    board.timer.advance(60_000);
    expect(logs().restart).toEqual({ reason: "push", text: "no sensor" });
  });
});

it("takes with a push key only what was proven, each serial once, over restarts and flashing", () => {
  const key = makeToken("push", new Uint8Array(32).fill(3));
  board = new Board({ push_key: key });
  const program = says("proven");
  const bytes = Buffer.from(program, "latin1");
  const head = {
    ...{ size: bytes.length, version: "2", seconds: TRIAL_MS / 1000 },
    sha256: createHash("sha256").update(bytes).digest("hex"),
  };
  const proven = (serial: number, agent = "board") => ({
    ...{ ...head, serial },
    proof: pushProof(nodeSuite(), key, agent, serial, head.size, head.sha256),
  });
  expect(board.ask()).toMatchObject({ serial: 0 });
  const refusal = "it wants a push key: push --push-key FILE";
  expect(board.ask(head)).toEqual({ code: -32000, message: refusal });
  expect(board.ask(proven(4, "boar"))).toMatchObject({ message: "not proven by its push key" });
  // Above what fits into 32 bits, and beyond what a double tells apart.
  const serial = 2 ** 40 + 1;
  for (const wrong of [2 ** 53, serial + 0.5])
    expect(board.ask(proven(wrong))).toMatchObject({ message: "not proven by its push key" });
  expect(board.ask(proven(serial))).toEqual({ stored: 0 });
  board.ask({ at: 0, data: bytes.toString("base64url") });
  expect(board.ask(proven(serial))).toEqual({ stored: bytes.length });
  board.ask({ start: true });
  board.timer.advance(HOUR_MS);
  expect(board.names).toEqual(["old", "proven", "old"]);
  for (const name of ["push.0", "push.1", "program.1"]) board.flash.erase(name);
  board.start();
  const used = { message: `the serial must be above ${serial}` };
  expect(board.ask(proven(serial))).toMatchObject(used);
  expect(board.ask(proven(serial - 1))).toMatchObject(used);
  expect(board.ask()).toMatchObject({ serial });
  expect(board.ask(proven(serial + 1))).toEqual({ stored: 0 });
});
