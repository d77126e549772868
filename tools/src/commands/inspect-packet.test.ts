/** Explanations of packets: valid ones, each kind of fault, and captures that contain them. */
import { makeToken } from "@blindrelay/protocol";
import {
  deriveSessionKeys,
  extractPrk,
  jsonBytes,
  sealPacket,
  toBase64url,
} from "@blindrelay/protocol/crypto";
import { nodeSuite } from "@blindrelay/protocol/suites/node";
import { expect, it } from "vitest";
import type { Secret } from "../config/settings.ts";
import { explainPacket, packetsIn } from "./inspect-packet.ts";

const SECRET: Secret = {
  agentToken: makeToken("e2e", new Uint8Array(32).fill(7)),
  version: "1",
  deviceKey: null,
};
const C = toBase64url(new Uint8Array(16).fill(1));
const SID = `${C}.${toBase64url(new Uint8Array(16).fill(2))}`;

const seal = (sid: string, seq: number, value: unknown, toAgent = true): string => {
  const suite = nodeSuite();
  const keys = deriveSessionKeys(suite, extractPrk(suite, "pump-7", SECRET.agentToken), "1", sid);
  const plaintext = value === undefined ? new Uint8Array(0) : jsonBytes(value);
  return sealPacket(suite, toAgent ? keys.c2a : keys.a2c, "1", sid, seq, plaintext);
};

const explain = (text: string, agentId: string | null = "pump-7", secret: Secret | null = SECRET) =>
  explainPacket(text, JSON.parse(text), agentId, () => secret);

it("distinguishes opening, answer and data, opens them, and gives their direction", () => {
  expect(explain(seal(C, 0, undefined))).toMatchObject({
    kind: "opening",
    client_part: C,
    agent_part: null,
    plaintext_bytes: 0,
    opened: true,
    direction: "client to agent",
    problem: null,
  });
  expect(explain(seal(SID, 0, undefined, false))).toMatchObject({
    kind: "answer",
    direction: "agent to client",
  });
  expect(explain(seal(SID, 3, { id: 1 }))).toMatchObject({ kind: "data", content: { id: 1 } });
});

it("leaves packets sealed without their secret, and reports a wrong secret", () => {
  const text = seal(SID, 1, { id: 1 });
  expect(explain(text, null)).toMatchObject({ opened: null, content: null, problem: null });
  expect(explain(text, "pump-7", null)).toMatchObject({ opened: null });
  expect(explain(text, "pump-8")).toMatchObject({
    opened: false,
    problem: expect.stringContaining("does not verify"),
  });
});

it.each([
  [{ v: "5" }, /v must be/],
  [{ sid: 5 }, /sid is missing/],
  [{ sid: "short.x" }, /client's part of sid has 5/],
  [{ sid: `${C}.` }, /agent's part of sid has 0/],
  [{ sid: C }, /goes with seq 0 only/],
  [{ seq: "1" }, /seq is missing/],
  [{ seq: 4294967296 }, /seq must be written/],
  [{ seq: 0 }, /nothing but a tag/],
  [{ p: "AA" }, /shorter than a tag/],
  [{ p: `${"A".repeat(30)}==` }, /padded/],
  [{ p: "!".repeat(30) }, /canonical/],
  [{ type: "relay" }, /makes it a message/],
])("names the problem: %j", (change, problem) => {
  const text = JSON.stringify({ ...JSON.parse(seal(SID, 1, { id: 1 })), ...change });
  expect(explain(text)).toMatchObject({
    kind: null,
    opened: null,
    problem: expect.stringMatching(problem),
  });
});

it("sees how seq is written, not only its value", () => {
  const text = seal(SID, 1, { id: 1 }).replace('"seq":1', '"seq":1.0');
  expect(explain(text).problem).toMatch(/seq must be written as a plain whole number.*1\.0/);
});

it("finds packets in envelopes, captures and log lines, with their agent", () => {
  const packet = seal(SID, 1, { id: 1 });
  const envelope = JSON.stringify({ type: "relay", agent_id: "pump-7", payload: packet });
  const found = { text: packet, value: JSON.parse(packet) };
  expect(packetsIn(packet)).toEqual([{ ...found, agentId: null }]);
  expect(packetsIn(envelope)).toEqual([{ ...found, agentId: "pump-7" }]);
  expect(packetsIn(`12:00 sent ${envelope}`)).toEqual([{ ...found, agentId: "pump-7" }]);
  const capture = JSON.stringify({ time: 1, direction: "in", text: envelope });
  expect(packetsIn(capture)).toEqual([{ ...found, agentId: "pump-7" }]);
  for (const line of ["", "hello", "{", '{"type":"ping"}', "}{"])
    expect(packetsIn(line)).toEqual([]);
});
