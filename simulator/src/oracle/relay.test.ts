import { hash } from "node:crypto";
import { expect, test } from "vitest";
import { RelayOracle } from "./relay.ts";

/** A session of which one packet is saved, and three are delivered; what a drain then reports. */
const drained = (crashes: boolean): string[] => {
  const violations: string[] = [];
  const view = { isOnline: () => true, isAlone: true, outboxBytes: 0 };
  const oracle = new RelayOracle((_, what) => violations.push(what), view);
  const wire = { who: () => "c0/1#1" };
  oracle.received(wire, '{"type":"auth","api_token":"account"}');
  oracle.sent(wire, '{"type":"auth_response","session_token":"session"}', 0);
  for (let n = 0; n < 3; n++) oracle.delivered(wire);
  oracle.requestsSaved(hash("sha256", "session"), 1);
  if (crashes) oracle.crashed();
  oracle.drained();
  return violations;
};

test("a relay that drained has stored what each session used", () => {
  expect(drained(false)).toEqual(["a drained relay stored 1 of 3 requests"]);
});

test("what a crash lost is not expected", () => {
  expect(drained(true)).toEqual([]);
});
