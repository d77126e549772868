import type { RemotePort } from "@blindrelay/client-sdk/serial";
import { expect, test } from "vitest";
import { SerialOracle, SerialUser } from "./serial.ts";

/** A program that has written three bytes to a port, from number 0 on. */
const written = () => {
  const violations: string[] = [];
  const oracle = new SerialOracle((what) => violations.push(what));
  oracle.opened("first");
  const numbers = { opening: "first", readAt: 0, sendAt: 0, sentTo: 0, kept: { end: 0 } };
  const user = new SerialUser(oracle, "main", () => numbers as unknown as RemotePort);
  user.writes(Uint8Array.of(1, 2, 3));
  return {
    violations,
    user,
    takesTheThird: () => oracle.took("first", "main", 2, Uint8Array.of(3)),
  };
};

test("a byte that the device lacks is missed as soon as it has the next one", () => {
  const { violations, takesTheThird } = written();
  takesTheThird();
  expect(violations).toEqual(["byte 1 of main is missing, and nothing was said"]);
});

test("nobody misses what was told as lost, or what its program left behind", () => {
  const told = written();
  const outcome = "unknown" as const;
  told.user.lost({ direction: "to the device", outcome, from: 0, bytes: 2 });
  told.takesTheThird();
  const left = written();
  left.user.leaves();
  left.takesTheThird();
  expect([...told.violations, ...left.violations]).toEqual([]);
});
