import { type Agent, CallError } from "@blindrelay/client-sdk";
import fc from "fast-check";
import { expect, it, vi } from "vitest";
import { LogReader, type LogReport } from "./logs.ts";

const COUNT = 20;

/** Told by a reader of a device that gives these answers, and then the last one for ever. */
const read = async (pages: readonly unknown[]) => {
  const told: LogReport[] = [];
  let calls = 0;
  const call = async (): Promise<unknown> => {
    const page = pages[Math.min(calls, pages.length - 1)];
    if (++calls > 1000) throw new Error("it asks for ever");
    return page;
  };
  const reader = new LogReader(
    { id: "pump-7", call } as unknown as Agent,
    (report) => told.push(report),
    () => {},
    async () => {},
  );
  const error = await reader.read(COUNT).then(
    () => null,
    (reason: unknown) => reason,
  );
  return { told, error };
};

const page = (boot: number, numbers: readonly number[]) => ({
  boot,
  dropped: 0,
  restart: { reason: "reset", text: "" },
  lines: numbers.map((n) => ({ n, at_ms: 1, level: "info", text: "" })),
});
const lies = fc.record({
  boot: fc.integer({ min: 1, max: 2 }),
  numbers: fc.array(fc.oneof(fc.integer({ min: -2, max: 40 }), fc.maxSafeInteger()), {
    maxLength: 3,
  }),
});

it("ends with each device, whatever it answers", async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(lies, { minLength: 1, maxLength: 12 }), async (drawn) => {
      const { told, error } = await read(drawn.map(({ boot, numbers }) => page(boot, numbers)));
      if (error !== null) expect(error).toBeInstanceOf(CallError);
      let reached = Number.MIN_SAFE_INTEGER;
      for (const report of told) {
        if (report.kind === "start") reached = Number.MIN_SAFE_INTEGER;
        if (report.kind !== "line") continue;
        expect(report.n).toBeGreaterThan(reached);
        reached = report.n;
      }
    }),
  );
});

it.each([
  ["one start after another", [1, 2, 1, 2, 1, 2].map((boot) => page(boot, [9]))],
  ["lines that it was not asked for", [page(1, [9]), page(1, [2]), page(1, [2])]],
  ["something else", [null]],
])("fails where the answer is %s", async (what, pages) => {
  const { error } = await read(pages);
  expect(error).toMatchObject({ code: "BAD_ANSWER", message: expect.stringContaining(what) });
});

it("tells no line of a start before that start", async () => {
  const told: string[] = [];
  const listeners = new Map<string, (...args: unknown[]) => void>();
  const answers = [page(1, []), page(1, [1]), page(1, []), page(2, []), page(2, [1])];
  const agent = {
    id: "pump-7",
    call: async () => answers.shift() ?? page(2, []),
    on: (what: string, fn: (...args: unknown[]) => void) => listeners.set(what, fn),
  };
  const reader = new LogReader(
    agent as unknown as Agent,
    (report) => told.push(report.kind === "start" ? `start ${report.boot}` : report.kind),
    () => {},
    // While the device is asked what it runs, it logs its first line.
    async () => listeners.get("event")?.("system.logged", page(0, [1])),
  );
  vi.useFakeTimers();
  reader.follow();
  await vi.advanceTimersByTimeAsync(1_000);
  vi.useRealTimers();
  expect(told).toEqual(["start 1", "line", "start 2", "line"]);
});

it.each([
  ["a line 2^53 - 1", page(1, [Number.MAX_SAFE_INTEGER])],
  ["2^53 - 1 lost lines", { ...page(1, []), dropped: Number.MAX_SAFE_INTEGER }],
])("hears of the next start of a device that claims %s", async (_what, claimed) => {
  const told: string[] = [];
  let answer = claimed;
  const agent = { id: "pump-7", call: async () => answer, on: () => undefined };
  const reader = new LogReader(
    agent as unknown as Agent,
    (report) => told.push(report.kind === "start" ? `start ${report.boot}` : report.kind),
    () => {},
    async () => {},
  );
  vi.useFakeTimers();
  reader.follow();
  await vi.advanceTimersByTimeAsync(1_000);
  told.length = 0;
  answer = page(2, [1]);
  await vi.advanceTimersByTimeAsync(60_000);
  vi.useRealTimers();
  expect(told).toEqual(["start 2", "line"]);
});

it.each(["lines", "dropped"])("takes no %s that is no whole number", async (what) => {
  for (const number of [1e308, Number.POSITIVE_INFINITY, 0.5]) {
    const lie = what === "dropped" ? { dropped: number } : page(1, [number]);
    const { error } = await read([{ ...page(1, []), ...lie }]);
    expect(error).toMatchObject({ code: "BAD_ANSWER" });
  }
});

it.each([
  ["a new boot at each answer", (asked: number) => page(asked, [1]), [9]],
  ["a gap after each answer", () => page(1, []), [9]],
])("asks a device that claims %s a few times a second at most", async (_what, answer, gap) => {
  vi.useFakeTimers();
  let asked = 0;
  let hear = (_event: string, _data: unknown): void => undefined;
  const agent = {
    id: "pump-7",
    call: async () => {
      // Without an end nothing else would ever run.
      if (++asked > 1000) return new Promise(() => undefined);
      hear("system.logged", page(0, gap));
      return answer(asked);
    },
    on: (what: string, fn: typeof hear) => {
      if (what === "event") hear = fn;
    },
  };
  new LogReader(
    agent as unknown as Agent,
    () => undefined,
    () => undefined,
    async () => undefined,
  ).follow();
  await vi.advanceTimersByTimeAsync(10_000);
  vi.useRealTimers();
  expect(asked).toBeGreaterThan(5);
  expect(asked).toBeLessThan(60);
});
