import { type Agent, CallError, type CallErrorCode } from "@blindrelay/client-sdk";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { Failure } from "../failure.ts";
import { PushedAgent } from "./push-one.ts";

const TOKEN = `e2e_${"A".repeat(43)}`;
const IDLE = { id: "", version: "", trial: null, failed: null, room: 10_000, part: 216 };
const PROGRAM = { bytes: new Uint8Array(500), version: "2.0.0" };
const OPTIONS = { seconds: 60, progress: () => undefined };

/** One whose calls `answer` answers; throws a string as an agent's refusal. */
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

/** Answers as a board that takes every push; `before` may throw instead. */
const board = (before: (params: object, calls: number) => void) => {
  let state: typeof IDLE | object = IDLE;
  let id = "";
  let calls = 0;
  return agentThat((_method, params = {}) => {
    before(params, ++calls);
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

/** Resolves with what it came to, whatever it waits for. */
const ended = async <T>(work: Promise<T>): Promise<T | Failure> => {
  const settled = work.catch((error) => error);
  await vi.runAllTimersAsync();
  return settled;
};

describe("an agent that is away for a moment", () => {
  const AWAY: CallErrorCode[] = ["AGENT_OFFLINE", "OUTCOME_UNKNOWN", "UNREACHABLE"];

  it.each(AWAY)("is waited for before its first answer: %s", async (code) => {
    let calls = 0;
    const { pushed, notices } = agentThat(() => {
      if (++calls < 4) throw new CallError(code, "away");
      return { runtime: "espruino 2v29 PUCKJS" };
    });
    expect(await ended(pushed.runtime())).toBe("espruino 2v29 PUCKJS");
    expect(notices).toEqual(["pump-7 is away: waiting for it"]);
  });

  it("is waited for at any call of a push before it is to start", async () => {
    for (let at = 1; at <= 5; at++) {
      const { pushed } = board((_params, calls) => {
        if (calls === at) throw new CallError("OUTCOME_UNKNOWN", "away");
      });
      expect(await ended(pushed.push(PROGRAM, OPTIONS))).toMatchObject({ unchanged: false });
    }
  });

  it.each([
    ["not the next part", "data"],
    ["it is not whole", "start"],
  ])("and forgot what it held is sent it again: %s", async (reason, key) => {
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

describe("an agent that stays away", () => {
  it.each([
    ["AGENT_OFFLINE", 4],
    ["TIMED_OUT", 6],
  ] as const)("ends every step of a push: %s, exit code %i", async (code, exitCode) => {
    const away = () => {
      throw new CallError(code, "away");
    };
    for (const end of [
      await ended(agentThat(away).pushed.runtime()),
      await ended(agentThat(away).pushed.push(PROGRAM, OPTIONS)),
      await ended(board((_params, calls) => calls > 2 && away()).pushed.push(PROGRAM, OPTIONS)),
    ]) {
      expect(end).toBeInstanceOf(Failure);
      expect((end as Failure).exitCode).toBe(exitCode);
    }
  });

  it("is not waited for where each call takes its whole time", async () => {
    let calls = 0;
    const { pushed } = agentThat(() => {
      calls++;
      vi.advanceTimersByTime(20_000);
      throw new CallError("TIMED_OUT", "away");
    });
    await ended(pushed.runtime());
    expect(calls).toBe(2);
  });
});
