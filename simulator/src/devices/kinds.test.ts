import type { Agent } from "@blindrelay/agent-sdk";
import { describe, expect, test } from "vitest";
import { KINDS } from "./kinds.ts";
import { Questions } from "./questions.ts";

/** Runs only a device program's handlers; params and results pass through JSON, as on the wire. */
function run(kind: (typeof KINDS)[number], name: string) {
  const handlers = new Map<string, (params: unknown) => unknown>();
  const agent = {
    name,
    handle: (method: string, fn: (params: unknown) => unknown) => handlers.set(method, fn),
  };
  kind.program(agent as unknown as Agent);
  return (method: string, params: unknown): unknown =>
    JSON.parse(JSON.stringify(handlers.get(method)?.(JSON.parse(JSON.stringify(params)))));
}

function kindNamed(name: string): (typeof KINDS)[number] {
  return KINDS.find((kind) => kind.name === name) as (typeof KINDS)[number];
}

describe.each(KINDS)("a device of kind $name", (kind) => {
  test("answers every question of its interview correctly, for any seed", () => {
    for (let seed = 0; seed < 50; seed++) {
      const call = run(kind, `device, seed ${seed}`);
      const interview = kind.interview(`device, seed ${seed}`);
      for (let i = 0; i < 20; i++) {
        const question = interview.ask();
        expect(question.right(call(question.method, question.params))).toBe(true);
      }
    }
  });

  test("gives no correct answer to a question that was not asked", () => {
    const interview = kind.interview("device");
    for (const answer of [undefined, null, {}, [], "", 0, { reading: "1", percent: "40" }]) {
      expect(interview.ask().right(answer)).toBe(false);
    }
  });
});

test("a sensor may be further than it was asked, if calls are repeated", () => {
  for (const repeats of [false, true]) {
    const interview = kindNamed("sensor").interview("sensor-1");
    const call = run(kindNamed("sensor"), "sensor-1");
    const question = interview.ask(repeats);
    call(question.method, question.params);
    expect(question.right(call(question.method, question.params))).toBe(repeats);
  }
});

test("an answer of another start than the question's proves nothing about either", () => {
  let starts = 1;
  const questions = new Questions("sensor", "sensor-1", () => starts);
  const open = questions.next({});
  starts = 2;
  const call = run(kindNamed("sensor"), "sensor-1");
  expect(open.right(call(open.method, open.params))).toBe(true);
  const next = questions.next({});
  expect(next.right(call(next.method, next.params))).toBe(true);
});

describe("a misrouted answer", () => {
  test("of another sensor is detected", () => {
    const interview = kindNamed("sensor").interview("sensor-1");
    const other = run(kindNamed("sensor"), "sensor-2");
    const question = interview.ask();
    expect(question.right(other(question.method, question.params))).toBe(false);
  });

  test("that a sensor gave before is detected", () => {
    const interview = kindNamed("sensor").interview("sensor-1");
    const call = run(kindNamed("sensor"), "sensor-1");
    const first = call("sensor.read", {});
    expect(interview.ask().right(first)).toBe(true);
    expect(interview.ask().right(first)).toBe(false);
  });

  test("of a valve that did not move is detected", () => {
    const interview = kindNamed("valve").interview("valve-1");
    const stuck = { percent: -1, moves: 0 };
    interview.ask();
    expect(interview.ask().right(stuck)).toBe(false);
  });
});

test("a valve whose move got no answer may be at its old or its new position", () => {
  const interview = kindNamed("valve").interview("valve-1");
  const { percent } = interview.ask().params as { percent: number };
  expect(percent).not.toBe(0);
  expect(interview.ask().right({ percent: 0 })).toBe(true);
  interview.ask();
  expect(interview.ask().right({ percent })).toBe(true);
});

test.each([[100], [3_000]])(
  "a valve may be where it was before %i moves without an answer",
  (n) => {
    const interview = kindNamed("valve").interview("valve-1");
    for (let asked = 0; asked < 2 * n; asked += 1) interview.ask();
    interview.ask();
    expect(interview.ask().right({ percent: 0 })).toBe(true);
  },
);

test("a valve may return to where a move put it that may be executed twice, until it restarts", () => {
  const valve = kindNamed("valve").interview("valve-1");
  const move = (repeats: boolean): object => {
    const question = valve.ask(repeats);
    expect(question.right(question.params)).toBe(true);
    valve.ask();
    return question.params as object;
  };
  const repeated = move(true);
  move(false);
  move(false);
  valve.ask();
  expect(valve.ask().right(repeated)).toBe(true);
  valve.restarted();
  valve.ask();
  expect(valve.ask().right(repeated)).toBe(false);
});

test("a valve may be where it was at any time since it was asked", () => {
  const valve = kindNamed("valve").interview("valve-1");
  const move = (): object => {
    const question = valve.ask();
    expect(question.right(question.params)).toBe(true);
    return question.params as object;
  };
  const before = move();
  const early = valve.ask();
  const between = move();
  expect(valve.ask().right(before)).toBe(false);
  const after = move();
  const late = valve.ask();
  expect([before, between, after].map((each) => early.right(each))).toEqual([true, true, true]);
  expect([before, between, after].map((each) => late.right(each))).toEqual([false, false, true]);
});

test("questions that are open at once get answers in any order", () => {
  const sensor = kindNamed("sensor").interview("sensor-1");
  const read = run(kindNamed("sensor"), "sensor-1");
  const [one, two] = [sensor.ask(), sensor.ask()];
  const [first, second] = [read("sensor.read", {}), read("sensor.read", {})];
  expect([one.right(second), two.right(first), sensor.ask().right(first)]).toEqual([
    true,
    true,
    false,
  ]);

  const valve = kindNamed("valve").interview("valve-1");
  const [move, , other] = [valve.ask(), valve.ask(), valve.ask()];
  expect(other?.right(other.params)).toBe(true);
  expect(move?.right(move.params)).toBe(true);
  // Either may have come last; whoever moves it afterwards decides.
  expect(valve.ask().right(move?.params)).toBe(true);
  const last = valve.ask();
  expect(last.right(last.params)).toBe(true);
  expect(valve.ask().right(move?.params)).toBe(false);
});

test.each([[-1], [101], [Number.NaN], ["40"], [undefined], [null]])(
  "a valve refuses to open to %s percent and stays where it is",
  (percent) => {
    const call = run(kindNamed("valve"), "valve-1");
    call("valve.open", { percent: 40 });
    expect(() => call("valve.open", { percent })).toThrow("percent must be a number");
    expect(call("valve.state", {})).toEqual({ percent: 40, moves: 1 });
  },
);
