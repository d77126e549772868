/** Which signals drain, which are ignored, and which end the relay at once. */
import { EventEmitter } from "node:events";
import { expect, test } from "vitest";
import { firstSignal } from "./signals.ts";

test("the first signal drains, the second is ignored, a third ends the relay once 5 s have passed", async () => {
  const source = Object.assign(new EventEmitter(), {
    codes: [] as number[],
    exit(code: number) {
      this.codes.push(code);
    },
  });
  const logged: unknown[] = [];
  let now = 0;
  const drains = firstSignal({ warn: (of: unknown) => logged.push(of) }, source, () => now);
  source.emit("SIGTERM", "SIGTERM");
  await drains;
  now = 60_000;
  source.emit("SIGTERM", "SIGTERM"); // the second, however late
  now = 4999;
  source.emit("SIGINT", "SIGINT"); // a third, too early
  expect(logged).toEqual([{ signal: "SIGTERM" }, { signal: "SIGINT" }]);
  expect(source.codes).toEqual([]);
  now = 5000;
  source.emit("SIGINT", "SIGINT");
  expect(source.codes).toEqual([130]);
});
