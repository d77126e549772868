import { expect, test } from "vitest";
import type { Plan } from "../scenario/plan.ts";
import { leastMemory } from "./checks.ts";
import type { Clients } from "./clients.ts";

test("of each group of boards, the least free memory of the first twenty that know it", async () => {
  const board = (group: string) => ({ group, engine: "espruino" });
  const devices = [
    { group: "nodes" },
    ...Array.from({ length: 25 }, () => board("valves")),
    board("mute"),
    board("away"),
  ];
  const asked: number[] = [];
  const callOnce = async (n: number): Promise<unknown> => {
    asked.push(n);
    if (devices[n]?.group === "away") throw new Error("offline");
    return { free_memory: devices[n]?.group === "mute" ? null : 1000 - n };
  };
  const least = await leastMemory({ devices } as Plan, { callOnce } as unknown as Clients);
  expect([...least]).toEqual([["valves", 980]]);
  expect(asked).toEqual([...Array.from({ length: 20 }, (_, i) => 1 + i), 26, 27]);
});
