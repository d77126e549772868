import { expect, test } from "vitest";
import { PacketOracle } from "./packets.ts";

const SID = "c2Vzc2lvbi1zZXNzaW9u";
const PACKET = `{"v":3,"sid":"${SID}","seq":1,"p":"AAAA"}`;
const ENVELOPE = JSON.stringify({ type: "message", from: "c", payload: PACKET });
const REFUSED = { kind: "refused", reason: "malformed" } as const;

const refusing = (text: string, isCorrupted: boolean): string[] => {
  const violations: string[] = [];
  const oracle = new PacketOracle((kind, what) => violations.push(`${kind}: ${what}`));
  oracle.sent(ENVELOPE);
  if (isCorrupted) oracle.corrupted(text);
  oracle.received("a", text, REFUSED, "", () => true);
  return violations;
};

test("an agent refuses no packet that its client sealed", () => {
  expect(refusing(ENVELOPE, false)).toEqual([
    `delivery: a refused (malformed) ${SID} seq 1, which its client sealed; -1 was the last accepted`,
  ]);
});

test("an agent may refuse what the network changed, if only the envelope", () => {
  expect(refusing(ENVELOPE.replace("type", "ty,e"), true)).toEqual([]);
});
