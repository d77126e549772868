import type { WriteStream } from "node:tty";
import { expect, test, vi } from "vitest";
import { Progress } from "./progress.ts";

/** The lines that a person would see, after carriage returns and erasing. */
function screen(isTTY: boolean, columns = 80) {
  let raw = "";
  const out = { isTTY, columns, write: (text: string) => (raw += text) };
  const shown = (): string[] =>
    raw.split("\n").map((line) => {
      let text = "";
      for (const part of line.split("\r")) {
        if (part.startsWith("\x1b[K")) text = part.slice(3);
        else text = part.replace("\x1b[K", "") || text;
      }
      return text;
    });
  return { out: out as unknown as WriteStream, shown, raw: () => raw };
}

test("in a pipe there are messages, but no progress", () => {
  vi.useFakeTimers();
  const { out, raw } = screen(false);
  const progress = new Progress(out);
  progress.say("relay at somewhere");
  progress.start("agents made", 1000, () => 1000);
  vi.advanceTimersByTime(1_000);
  progress.stop();
  progress.stop();
  vi.useRealTimers();
  expect(raw()).toBe("relay at somewhere\n");
});

test("on a terminal the step's line is redrawn in place, and lines that stay go above it", () => {
  vi.useFakeTimers();
  const { out, shown } = screen(true);
  const progress = new Progress(out);
  let done = 0;
  progress.start("calls answered correctly", 10, () => done);
  done = 5;
  vi.advanceTimersByTime(100);
  expect(shown()).toEqual(["████████████░░░░░░░░░░░░  5 of 10 calls answered correctly, 0.10 s"]);
  progress.say("something happened");
  expect(shown()).toHaveLength(2);
  expect(shown()[0]).toBe("something happened");
  done = 10;
  progress.stop();
  vi.useRealTimers();
  expect(shown()[1]).toBe("████████████████████████  10 of 10 calls answered correctly, 0.10 s");
});

test("a step may show its status instead of the time", () => {
  const { out, shown } = screen(true);
  const progress = new Progress(out);
  progress.start(
    "s of seed 7",
    600,
    () => 300,
    () => "20 online, 1,234 right, 2 failed",
  );
  progress.stop();
  expect(shown()[0]).toBe(
    "████████████░░░░░░░░░░░░  300 of 600 s of seed 7, 20 online, 1,234 right, 2 failed".slice(
      0,
      79,
    ),
  );
});

test("a narrow terminal gets a line that does not wrap", () => {
  const { out, shown } = screen(true, 40);
  const progress = new Progress(out);
  progress.start("calls answered correctly", 10, () => 10);
  progress.stop();
  expect(Math.max(...shown().map((line) => line.length))).toBeLessThan(40);
});
