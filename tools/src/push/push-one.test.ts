import { createHash } from "node:crypto";
import { MemoryStorage } from "@blindrelay/agent-sdk/memory";
import { answerPush, newTransfer, type PushPort } from "@blindrelay/agent-sdk/push";
import {
  type Agent,
  CallError,
  type CallErrorCode,
  type CallOptions,
} from "@blindrelay/client-sdk";
import { makeToken } from "@blindrelay/protocol";
import { Failure } from "@blindrelay/protocol/command-line";
import { pushProof } from "@blindrelay/protocol/crypto";
import { nodeSuite } from "@blindrelay/protocol/suites/node";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { type Programs, PushedAgent, TakesNone } from "./push-one.ts";

const TOKEN = `e2e_${"A".repeat(43)}`;
const IDLE = { id: "", version: "", trial: null, failed: null, room: 10_000, part: 216 };
const HOUR_MS = 3_600_000;
const ID = createHash("sha256").update(new Uint8Array(500)).digest("hex").slice(0, 16);
const INFO = { runtime: "espruino 2v29 PUCKJS", methods: ["system.push"] };
const PROGRAM: Programs = {
  ofRuntime: async (runtime) =>
    runtime === INFO.runtime
      ? { map: { files: ["pump.js"], marks: null }, bytes: new Uint8Array(500), version: "2.0.0" }
      : null,
};
const OPTIONS = {
  ...{ seconds: 60, pushKey: null, waits: false },
  ...{ progress: () => undefined, sends: () => undefined },
};

/** An agent with calls answered by `answer`; a thrown string is the agent's refusal. */
const agentThat = (answer: (method: string, params: object | undefined) => unknown) => {
  const notices: string[] = [];
  const call = async (method: string, params?: object): Promise<unknown> => answer(method, params);
  const handle = { call } as unknown as Agent;
  const pushed = new PushedAgent("pump-7", handle, TOKEN, (text) => notices.push(text));
  return { pushed, notices };
};

const refuse = (message: string): never => {
  throw new CallError("REMOTE", message, { remote: { code: -32000, message } });
};

/** Answers like a board that accepts every push; `before` may throw instead. */
const board = (before: (params: object, calls: number) => void) => {
  let state: typeof IDLE | object = IDLE;
  let id = "";
  let calls = 0;
  return agentThat((method, params = {}) => {
    before(params, ++calls);
    if (method === "system.info") return INFO;
    if ("sha256" in params) id = String(params.sha256).slice(0, 16);
    if ("start" in params) state = { ...IDLE, trial: id };
    if ("confirm" in params) state = { ...IDLE, id };
    return state;
  });
};

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

/** Resolves with the outcome, whatever it waits for. */
const ended = async <T>(work: Promise<T>): Promise<T | Failure> => {
  const settled = work.catch((error) => error);
  await vi.runAllTimersAsync();
  return settled;
};

describe("an agent that is offline for a moment", () => {
  const AWAY: CallErrorCode[] = ["AGENT_OFFLINE", "OUTCOME_UNKNOWN", "UNREACHABLE"];

  it.each(AWAY)("is waited for before its first answer: %s", async (code) => {
    const { pushed, notices } = board((_params, calls) => {
      if (calls < 4) throw new CallError(code, "away");
    });
    expect(await ended(pushed.push(PROGRAM, OPTIONS))).toMatchObject({ unchanged: false });
    expect(notices).toEqual(["pump-7 is offline: waiting for it"]);
  });

  it("is waited for with a ping while it sleeps, with the program already built", async () => {
    const asked: unknown[] = [];
    const call = async (method: string, _params: unknown, { waitForAgent }: CallOptions) => {
      asked.push(waitForAgent ? method : "another call");
      if (asked.length === 2) await new Promise((woken) => setTimeout(woken, HOUR_MS));
      if (asked.length === 3) throw new CallError("OUTCOME_UNKNOWN", "it fell asleep");
      return method === "system.info" ? INFO : { ...IDLE, id: ID };
    };
    const notices: string[] = [];
    const handle = { call } as unknown as Agent;
    const pushed = new PushedAgent("pump-7", handle, TOKEN, (text) => notices.push(text));
    const programs: Programs = {
      ofRuntime: async (runtime) => {
        asked.push(`built for ${runtime}`);
        return PROGRAM.ofRuntime(INFO.runtime);
      },
    };
    const done = await ended(pushed.push(programs, { ...OPTIONS, waits: true }));
    expect(done).toMatchObject({ unchanged: true });
    const first = ["built for espruino", "system.ping", "another call", "system.ping"];
    expect(asked.slice(0, 4)).toEqual(first);
    expect(notices).toEqual([
      "pump-7 is offline: waiting for it",
      "pump-7 is offline: waiting for it",
    ]);
  });

  it("is waited for at any call of a push before its start", async () => {
    for (let at = 1; at <= 6; at++) {
      const { pushed } = board((_params, calls) => {
        if (calls === at) throw new CallError("OUTCOME_UNKNOWN", "away");
      });
      expect(await ended(pushed.push(PROGRAM, OPTIONS))).toMatchObject({ unchanged: false });
    }
  });

  it.each([
    ["an answer", () => undefined],
    ["an error", () => refuse("the result has 402 bytes, at most 384 fit")],
  ])("is waited for again after system.info brought %s late", async (_what, told) => {
    const late = { ofRuntime: () => PROGRAM.ofRuntime(INFO.runtime) };
    const { pushed } = board((_params, calls) => {
      if (calls < 3) vi.advanceTimersByTime(19_000);
      if (calls === 2) told();
      if (calls === 1 || calls === 3) throw new CallError("TIMED_OUT", "away");
    });
    expect(await ended(pushed.push(late, OPTIONS))).toMatchObject({ unchanged: false });
  });

  it.each([
    ["not the next part", "data"],
    ["it is not whole", "start"],
  ])("and lost what it had stored is sent it again: %s", async (reason, key) => {
    let refused = false;
    const { pushed } = board((params) => {
      if (refused || !(key in params)) return;
      refused = true;
      refuse(reason);
    });
    expect(await ended(pushed.push(PROGRAM, OPTIONS))).toMatchObject({ unchanged: false });
    expect(refused).toBe(true);
  });
});

describe("an agent with a push key", () => {
  const key = makeToken("push", new Uint8Array(32).fill(3));
  const withKey = { ...OPTIONS, pushKey: key };

  /** The serials and proofs of the first calls that it gets. */
  const guarded = (serialOf: (calls: number) => number | undefined, taken: (n: number) => void) => {
    const heads: { serial?: number; proof?: string; size: number; sha256: string }[] = [];
    let state: object = IDLE;
    let calls = 0;
    const { pushed } = agentThat((method, params = {}) => {
      if (method === "system.info") return INFO;
      if ("size" in params) {
        heads.push(params as (typeof heads)[number]);
        taken(heads.length);
      }
      if ("start" in params) state = { ...IDLE, trial: ID };
      if ("confirm" in params) state = { ...IDLE, id: ID };
      return { ...state, serial: serialOf(++calls) };
    });
    return { pushed, heads };
  };

  it("gets a proof under the next serial", async () => {
    const { pushed, heads } = guarded(
      () => 41,
      () => undefined,
    );
    expect(await ended(pushed.push(PROGRAM, withKey))).toMatchObject({ unchanged: false });
    const [head] = heads;
    const proof = pushProof(nodeSuite(), key, "pump-7", 42, 500, head?.sha256 as string);
    expect(heads).toEqual([expect.objectContaining({ serial: 42, proof })]);
  });

  it("gets another one if it restarted, or somebody else's push took that serial", async () => {
    let last = 0;
    const { pushed, heads } = guarded(
      () => last,
      (n) => {
        last = 7;
        if (n === 1) refuse("the serial must be above 7");
        if (n === 2) throw new CallError("OUTCOME_UNKNOWN", "away");
        last = 8;
      },
    );
    expect(await ended(pushed.push(PROGRAM, withKey))).toMatchObject({ unchanged: false });
    expect(heads.map(({ serial }) => serial)).toEqual([1, 8, 8]);
  });

  it("that is too old to say its serial gets the first", async () => {
    const { pushed, heads } = guarded(
      () => undefined,
      () => undefined,
    );
    await ended(pushed.push(PROGRAM, withKey));
    expect(heads).toEqual([expect.objectContaining({ serial: 1 })]);
  });

  it.each([Number.MAX_SAFE_INTEGER, 2 ** 53 - 2, -1, 0.5, "5", null, {}])(
    "whose serial is %j gets no proof",
    async (serial) => {
      const { pushed, heads } = guarded(
        () => serial as number,
        () => undefined,
      );
      const end = await ended(pushed.push(PROGRAM, withKey));
      expect([end, heads]).toEqual([expect.objectContaining({ exitCode: 3 }), []]);
    },
  );

  it("takes later programs whatever an impostor under its secret said of its serial", async () => {
    const device: PushPort = {
      ...{ key, agentId: "pump-7", suite: nodeSuite(), storage: new MemoryStorage() },
      ...{ maxPlaintext: 400, room: () => 10_000, erase: () => undefined, write: () => undefined },
      ...{ sha256: () => "", restart: () => undefined, onTrial: false, hasWatchdog: true },
      confirmed: () => undefined,
    };
    const serialOf = (one: PushPort) => answerPush(one, newTransfer(), {}) as { serial: number };
    for (const said of [2 ** 53 - 2, 2 ** 53 - 3, 2 ** 52]) {
      const { pushed, heads } = guarded(
        () => said,
        () => refuse("the push is over"),
      );
      expect(await ended(pushed.push(PROGRAM, withKey))).toMatchObject({ exitCode: 3 });
      for (const head of heads) answerPush(device, newTransfer(), head);
    }
    const { pushed, heads } = guarded(
      () => serialOf(device).serial,
      () => undefined,
    );
    expect(await ended(pushed.push(PROGRAM, withKey))).toMatchObject({ unchanged: false });
    expect(answerPush(device, newTransfer(), heads[0])).toEqual({ stored: 0 });
    expect(serialOf(device)).toMatchObject({ serial: 1 });
  });

  it("says what it wants, and gets no proof without being asked for one", async () => {
    const { pushed, heads } = guarded(
      () => 0,
      () => refuse("it wants a push key: push --push-key FILE"),
    );
    const end = await ended(pushed.push(PROGRAM, OPTIONS));
    expect(end).toMatchObject({
      exitCode: 3,
      message: "pump-7 does not accept the program: it wants a push key: push --push-key FILE",
    });
    expect(Object.keys(heads[0] ?? {})).toEqual(["size", "sha256", "version", "seconds"]);
  });

  it("of another file is named as the reason", async () => {
    const { pushed, heads } = guarded(
      () => 0,
      () => refuse("not proven by its push key"),
    );
    expect(await ended(pushed.push(PROGRAM, withKey))).toMatchObject({
      exitCode: 3,
      message: expect.stringContaining("--push-key names another key's file"),
    });
    expect(heads).toHaveLength(1);
  });
});

describe("an agent that stays offline", () => {
  it.each([
    ["AGENT_OFFLINE", 4],
    ["TIMED_OUT", 6],
  ] as const)("ends every step of a push: %s, exit code %i", async (code, exitCode) => {
    const away = () => {
      throw new CallError(code, "away");
    };
    for (const end of [
      await ended(agentThat(away).pushed.push(PROGRAM, OPTIONS)),
      await ended(board((_params, calls) => calls > 1 && away()).pushed.push(PROGRAM, OPTIONS)),
      await ended(board((_params, calls) => calls > 3 && away()).pushed.push(PROGRAM, OPTIONS)),
    ]) {
      expect(end).toBeInstanceOf(Failure);
      expect((end as Failure).exitCode).toBe(exitCode);
    }
  });

  it("is not waited for if each call takes its full time", async () => {
    let calls = 0;
    const { pushed } = agentThat(() => {
      calls++;
      vi.advanceTimersByTime(20_000);
      throw new CallError("TIMED_OUT", "away");
    });
    await ended(pushed.push(PROGRAM, OPTIONS));
    expect(calls).toBe(2);
  });
});

describe("an agent without a watchdog", () => {
  it.each([
    [{ watchdog: false }, INFO.runtime, true],
    [{}, "espruino 2v29 LINUX unicode", true],
    [{}, "espruino 2v29 ESP8266_4MB", true],
    [{}, INFO.runtime, false],
    [{}, "node 26.1.0 ESP8266_4MB", false],
  ])("is named before a push, and if it stays away: %j, %s", async (more, runtime, isNamed) => {
    const programs = { ofRuntime: () => PROGRAM.ofRuntime(INFO.runtime) };
    let isAway = false;
    const { pushed, notices } = agentThat((method, params = {}) => {
      if (isAway) throw new CallError("AGENT_OFFLINE", "away");
      if ("start" in params) isAway = true;
      return method === "system.info" ? { ...INFO, runtime } : { ...IDLE, ...more };
    });
    const { message } = (await ended(pushed.push(programs, OPTIONS))) as Failure;
    expect(notices.join().includes("no watchdog")).toBe(isNamed);
    expect(message).toContain(isNamed ? "until its power is cut" : "by itself");
  });
});

it("is treated as a board if it has too many methods for system.info", async () => {
  const long = () => refuse("the result has 402 bytes, at most 384 fit");
  const { pushed } = board((_params, calls) => calls === 1 && long());
  const boards: string[] = [];
  const programs: Programs = {
    ofRuntime: (runtime) => {
      boards.push(runtime);
      return PROGRAM.ofRuntime(INFO.runtime);
    },
  };
  expect(await ended(pushed.push(programs, OPTIONS))).toMatchObject({ unchanged: false });
  expect(boards).toEqual(["espruino"]);

  const closed = agentThat((method) => {
    if (method === "system.info") return long();
    throw new CallError("REMOTE", "", { remote: { code: -32601, message: "unknown method" } });
  });
  expect(await ended(closed.pushed.push(PROGRAM, OPTIONS))).toBeInstanceOf(Failure);
  expect(await ended(closed.pushed.push(programs, OPTIONS))).toBeInstanceOf(TakesNone);
});

it("a version that is no text is no state, though the program is the one that runs", async () => {
  const state = { ...IDLE, id: ID, version: { toString: 1 } };
  const { pushed } = agentThat((method) => (method === "system.info" ? INFO : state));
  const failure = await ended(pushed.push(PROGRAM, OPTIONS));
  expect(failure).toMatchObject({
    kind: "agentError",
    message: "pump-7 answered system.push with an invalid state",
  });
});

describe("a program that has failed before", () => {
  const FAILED = { ...IDLE, failed: { id: ID, reason: "no pump" } };

  /** `starts`: whether the first call to start it, whose answer is lost, arrives. */
  const losing = (starts: boolean) => {
    let state: object = FAILED;
    let isWhole = false;
    let calls = 0;
    return agentThat((method, params = {}) => {
      if (method === "system.info") return INFO;
      if ("at" in params) isWhole = true;
      if ("start" in params) {
        if (!isWhole) refuse("it is not whole");
        const isLost = ++calls === 1;
        // It fails again, for the same reason.
        if (isLost && starts) isWhole = false;
        if (isLost) throw new CallError("OUTCOME_UNKNOWN", "lost");
        state = { ...IDLE, trial: ID };
      }
      if ("confirm" in params) state = { ...IDLE, id: ID };
      return state;
    });
  };

  it("is started again where the start was lost, and not told to have failed once more", async () => {
    const { pushed } = losing(false);
    expect(await ended(pushed.push(PROGRAM, OPTIONS))).toMatchObject({ unchanged: false });
  });

  it("is told to have failed where it was started and its answer lost", async () => {
    const { pushed } = losing(true);
    const failure = await ended(pushed.push(PROGRAM, OPTIONS));
    expect(failure).toMatchObject({ kind: "expectation" });
    expect((failure as Failure).message).toContain("returned to the previous program: no pump");
  });
});

describe("an agent that does not accept programs", () => {
  it.each([
    [
      "espruino 2v29 PUCKJS",
      [],
      "pump-7 does not accept programs over the relay: it was provisioned with",
    ],
    ["node 26.1.0", ["system.ping"], "it was started without `agent run --allow-push`"],
    ["moddable 8.2", [], "moddable does not support it"],
    ["constructor 1", ["system.push"], "constructor does not support it"],
    [undefined, undefined, "it does not say what it runs on"],
  ])("is distinguished from one that fails: %s with %j", async (runtime, methods, text) => {
    const { pushed } = agentThat(() => ({ runtime, methods }));
    const end = await ended(pushed.push(PROGRAM, OPTIONS));
    expect(end).toBeInstanceOf(TakesNone);
    expect(end).toMatchObject({ exitCode: 3, message: expect.stringContaining(text) });
  });
});
