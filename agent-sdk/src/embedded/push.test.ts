/** Byte code that is pushed to a small device: on trial, kept, or gone at the next start. */
import { createHash } from "node:crypto";
import { makeToken } from "@blindrelay/protocol";
import { asciiBytes, asciiText } from "@blindrelay/protocol/crypto";
import { nodeSuite } from "@blindrelay/protocol/suites/node";
import { beforeEach, describe, expect, it } from "vitest";
import type { Program } from "../core/agent.ts";
import { keepLog } from "../core/give-log.ts";
import { ManualTimer, MemoryStorage, memoryNetwork, seededRandom } from "../memory/index.ts";
import { byteCodeBuild, type ProgramSlots, startWithPushes } from "./push.ts";
import { provisionAgent } from "./start.ts";

const BUILD = "0123456789abcdef";
const AGENT_TOKEN = makeToken("e2e", new Uint8Array(32).fill(1));
const RELAY_TOKEN = makeToken("agent", new Uint8Array(32));

/** What stands for byte code: a program's name. */
const codeOf = (name: string, build = BUILD): Buffer =>
  Buffer.concat([Buffer.from("brbc"), Buffer.from(build, "hex"), Buffer.from(name)]);
const sha256 = (bytes: Uint8Array): string => createHash("sha256").update(bytes).digest("hex");
const idOf = (bytes: Uint8Array): string => sha256(bytes).slice(0, 16);

/** Of the device, over all its starts. */
const storage = new MemoryStorage();
let slots: Buffer[];
let ended: string;
let restarts: number;

/** One start. */
class Start {
  readonly timer = new ManualTimer();
  ran = "nothing";
  readonly logged: string[] = [];
  private readonly core;

  constructor(programs: { readonly [name: string]: Program } = {}) {
    const ports = {
      timer: this.timer,
      link: memoryNetwork({ timer: this.timer, accept: () => false }),
      random: seededRandom(1),
      storage,
      suite: nodeSuite(),
      log: (_level: string, message: string) => this.logged.push(message),
    };
    const port: ProgramSlots = {
      build: BUILD,
      room: 1000,
      erase: (slot) => {
        slots[slot] = Buffer.alloc(0);
      },
      write: (slot, at, part) => {
        slots[slot] = Buffer.concat([(slots[slot] as Buffer).subarray(0, at), part]);
      },
      sha256: (slot, size) => sha256((slots[slot] as Buffer).subarray(0, size)),
      load: (slot) => (agent) => {
        this.ran = (slots[slot] as Buffer).subarray(12).toString();
        programs[this.ran]?.(agent);
      },
      restart: () => restarts++,
      ended,
      hasWatchdog: true,
    };
    const options = {
      ...{ url: "ws://relay.test/wss", agentId: "pump", runtime: "test" },
      ...{ relayToken: RELAY_TOKEN, agentToken: AGENT_TOKEN },
      keepLog: keepLog(),
      program: () => {
        this.ran = "own";
      },
    };
    this.core = startWithPushes(ports, options, port, null);
  }

  /** The answer of `system.push`; throws its refusal. */
  // biome-ignore lint/suspicious/noExplicitAny: tests examine arbitrary JSON.
  ask(params?: object, method = "system.push"): any {
    const request = JSON.stringify({ jsonrpc: "2.0", id: 1, method, params });
    let text = "";
    this.core.dispatcher.receive(asciiBytes(request), "sid", 0, (answer) => {
      text = asciiText(answer as Uint8Array);
      return true;
    });
    const { result, error } = JSON.parse(text);
    if (error !== undefined) throw new Error(error.message);
    return result;
  }

  send(code: Uint8Array): void {
    const seconds = 60;
    this.ask({ size: code.length, sha256: sha256(code), version: "2.0.0", seconds });
    this.ask({ at: 0, data: Buffer.from(code).toString("base64url") });
    this.ask({ start: true });
  }
}

beforeEach(() => {
  storage.write("push.0", "");
  storage.write("push.1", "");
  slots = [Buffer.alloc(0), Buffer.alloc(0)];
  ended = "";
  restarts = 0;
});
provisionAgent({ storage, suite: nodeSuite() }, AGENT_TOKEN);

const NEW = codeOf("new");

it("runs byte code on trial, and keeps it once it is confirmed", () => {
  const first = new Start();
  expect([first.ran, first.ask()]).toEqual(["own", expect.objectContaining({ build: BUILD })]);
  first.send(NEW);
  expect(restarts).toBe(0);
  first.timer.advance(1000);
  expect(restarts).toBe(1);

  const trial = new Start();
  expect([trial.ran, trial.ask().trial]).toEqual(["new", idOf(NEW)]);
  trial.ask({ confirm: idOf(NEW) });
  trial.timer.advance(120_000);
  expect(restarts).toBe(1);
  const kept = new Start();
  expect([kept.ran, kept.ask()]).toEqual([
    "new",
    expect.objectContaining({ id: idOf(NEW), version: "2.0.0", trial: null }),
  ]);
});

it.each([
  ["text", Buffer.from("export default (agent) => {};"), "it is not byte code"],
  ["less than a head", codeOf("").subarray(0, 11), "it is not byte code"],
  ["of another build", codeOf("new", "fedcba9876543210"), "of build fedcba9876543210: this device"],
])("refuses %s before it is stored", (_what, code, reason) => {
  const start = new Start();
  expect(() => start.send(code)).toThrow(reason);
  expect(() => start.ask({ start: true })).toThrow("it is not whole");
  expect([slots[1]?.length, start.ask().trial]).toEqual([0, null]);
});

describe("returns to the program before", () => {
  const good = codeOf("good");
  beforeEach(() => {
    new Start().send(good);
    new Start().ask({ confirm: idOf(good) });
    new Start().send(NEW);
    restarts = 0;
  });
  const returned = (reason: string): void => {
    const next = new Start();
    const failed = { id: idOf(NEW), reason };
    expect([next.ran, next.ask()]).toEqual(["good", expect.objectContaining({ failed })]);
  };

  it("when the new one throws", () => {
    const fails = (): void => {
      throw new Error("no sensor");
    };
    expect(() => new Start({ new: fails })).toThrow("no sensor");
    expect(restarts).toBe(1);
    returned("no sensor");
  });

  it("when it is not confirmed in time", () => {
    const trial = new Start();
    trial.timer.advance(59_999);
    expect(restarts).toBe(0);
    trial.timer.advance(1);
    expect(restarts).toBe(1);
    returned("it was not confirmed in 60 s");
  });

  it("when it ends the start, with what the host knows of why", () => {
    expect(new Start().ran).toBe("new");
    ended = "memory is full";
    returned("memory is full");
  });

  it("when the power fails during the trial", () => {
    expect(new Start().ran).toBe("new");
    returned("it restarted before it was confirmed");
  });
});

it("says in its log why it restarted", () => {
  const restart = () => new Start().ask({}, "system.log").restart;
  expect(restart().reason).toBe("reset");
  const first = new Start();
  first.send(NEW);
  first.timer.advance(1000);
  const trial = new Start();
  expect(trial.ask({}, "system.log").restart).toEqual({ reason: "push", text: "" });
  trial.timer.advance(60_000);
  expect(restart()).toEqual({ reason: "push", text: "it was not confirmed in 60 s" });
  ended = "memory is full";
  expect(restart()).toEqual({ reason: "memory", text: "memory is full" });
  ended = "";
  expect(restart()).toEqual({ reason: "reset", text: "" });
});

it("goes on without a kept program that cannot be started, and takes another", () => {
  new Start().send(NEW);
  new Start().ask({ confirm: idOf(NEW) });
  const fails = (): void => {
    throw new Error("it is not byte code of this build");
  };
  const start = new Start({ new: fails });
  expect(start.logged).toContain("the program that was pushed and kept cannot be started");
  start.send(codeOf("newer"));
  expect(new Start().ran).toBe("newer");
});

it("reads a build where there is one", () => {
  expect([byteCodeBuild(NEW), byteCodeBuild(new Uint8Array())]).toEqual([BUILD, null]);
});
