import { spawnSync } from "node:child_process";
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import {
  AgentSessions,
  ClientSession,
  DEFAULT_AGENT_LIMITS,
  DEFAULT_CLIENT_TIMINGS,
} from "@blindrelay/protocol/session";
import { nobleSuite } from "@blindrelay/protocol/suites/noble";
import { nodeSuite } from "@blindrelay/protocol/suites/node";
import { describe, expect, test } from "vitest";
import { nodeSuite as relativeNodeSuite } from "../../../../protocol/src/suites/node.ts";
import { spawnedViolations } from "./judge.ts";
import { NonceReuse, processRecorder } from "./recorder.ts";

const bytes = (length: number, fill: number): Uint8Array => new Uint8Array(length).fill(fill);
const KEY = bytes(32, 7);
const NONCE = bytes(12, 1);
const AAD = bytes(3, 2);
const violations = () => processRecorder().takeViolations();

describe.each([
  ["node", nodeSuite],
  ["noble", nobleSuite],
  ["node, by a relative path", relativeNodeSuite],
])("the nonce recorder over the suite %s", (_name, makeSuite) => {
  const suite = makeSuite();

  test.each(["1", "2"] as const)("reports a different plaintext, version %s", (v) => {
    suite.seal(suite.aeadKey(v, KEY), NONCE, AAD, bytes(4, 1));
    expect(() => suite.seal(suite.aeadKey(v, KEY), NONCE, AAD, bytes(4, 2))).toThrow(NonceReuse);
    expect(violations()).toHaveLength(1);
  });

  test("reports a different AAD, even one that only moves its border", () => {
    suite.seal(suite.aeadKey("1", KEY), NONCE, bytes(3, 2), bytes(4, 2));
    expect(() => suite.seal(suite.aeadKey("1", KEY), NONCE, bytes(4, 2), bytes(3, 2))).toThrow();
    expect(violations()).toHaveLength(1);
  });

  test("reports reuse across two suite objects, as with an agent before and after a restart", () => {
    const other = makeSuite();
    suite.seal(suite.aeadKey("1", KEY), NONCE, AAD, bytes(4, 1));
    expect(() => other.seal(other.aeadKey("1", KEY), NONCE, AAD, bytes(4, 2))).toThrow();
    expect(violations()).toHaveLength(1);
  });

  test("accepts the same bytes, a different nonce and a different key", () => {
    suite.seal(suite.aeadKey("1", KEY), NONCE, AAD, bytes(4, 1));
    suite.seal(suite.aeadKey("1", KEY), NONCE, AAD, bytes(4, 1));
    suite.seal(suite.aeadKey("1", KEY), bytes(12, 2), AAD, bytes(4, 2));
    suite.seal(suite.aeadKey("1", bytes(32, 8)), NONCE, AAD, bytes(4, 3));
    expect(violations()).toEqual([]);
  });

  test("knows that suite 2 uses half of a key", () => {
    const twin = Uint8Array.from(KEY).fill(9, 16);
    suite.seal(suite.aeadKey("2", KEY), NONCE, AAD, bytes(4, 1));
    expect(() => suite.seal(suite.aeadKey("2", twin), NONCE, AAD, bytes(4, 2))).toThrow();
    expect(violations()).toHaveLength(1);
  });
});

/** Two agents that start with the same boot count, which the contract forbids. */
const agentWithBootCount = (bootCount: number): AgentSessions =>
  new AgentSessions({
    suite: nodeSuite(),
    agentId: "pump-7",
    agentToken: "a secret of more than thirty-two characters",
    version: "1",
    bootCount,
    deviceRandom: bytes(16, 0),
    serialNumber: null,
    limits: DEFAULT_AGENT_LIMITS,
  });

const replayAfterRestart = (secondBootCount: number): void => {
  const client = new ClientSession({
    suite: nodeSuite(),
    random: (length) => bytes(length, 5),
    agentId: "pump-7",
    agentToken: "a secret of more than thirty-two characters",
    version: "1",
    timings: DEFAULT_CLIENT_TIMINGS,
  });
  const first = agentWithBootCount(1);
  const [opening] = client.open(0);
  const answer = first.receive(opening?.kind === "send" ? opening.text : "", 0);
  const [ping] = client.receive(answer.kind === "answer" ? answer.text : "", 0);
  const text = ping?.kind === "send" ? ping.text : "";
  first.receive(text, 0);
  first.seal(client.sid() ?? "", bytes(10, 1));

  const second = agentWithBootCount(secondBootCount);
  second.receive(text, 1);
  second.seal(client.sid() ?? "", bytes(10, 2));
};

test("the recorder reports a boot count that was not raised, but not a raised one", () => {
  expect(() => replayAfterRestart(1)).toThrow(NonceReuse);
  expect(violations()).toHaveLength(1);
  processRecorder().startScope();
  replayAfterRestart(2);
  expect(violations()).toEqual([]);
});

test("processes that a test spawns are recorded, and checked together", () => {
  const folder = mkdtempSync(join(tmpdir(), "blindrelay-nonces-"));
  const seal = (fill: number): string => `
    import { nodeSuite } from "@blindrelay/protocol/suites/node";
    const suite = nodeSuite();
    const bytes = (length, fill) => new Uint8Array(length).fill(fill);
    suite.seal(suite.aeadKey("1", bytes(32, 7)), bytes(12, 1), bytes(3, 2), bytes(4, ${fill}));
    process.kill(process.pid, "SIGKILL");`;
  const spawn = (fill: number): void => {
    const child = spawnSync(process.execPath, ["--input-type=module", "-e", seal(fill)], {
      cwd: import.meta.dirname,
      env: { ...process.env, BLINDRELAY_TEST_RECORDS: folder },
    });
    expect(child.stderr.toString()).toBe("");
  };
  spawn(1);
  spawn(1);
  expect(readdirSync(folder).filter((name) => name.endsWith(".seals"))).toHaveLength(2);
  expect(spawnedViolations(folder)).toEqual([]);
  spawn(2);
  expect(spawnedViolations(folder)).toHaveLength(1);
  rmSync(folder, { recursive: true });
});

test.each([
  ["last", ["1.seals", "2.seals", "3.seals"]],
  ["between the others", ["1.seals", "3.seals", "2.seals"]],
  ["first", ["2.seals", "3.seals", "1.seals"]],
])("one reuse is one, with the process that did it %s in the folder", (_place, names) => {
  const folder = mkdtempSync(join(tmpdir(), "blindrelay-nonces-"));
  const contents = ["one", "one", "two"];
  for (const [index, name] of names.entries()) {
    writeFileSync(join(folder, name), `place ${contents[index]}\nplace hal`);
  }
  expect(spawnedViolations(folder)).toHaveLength(1);
  rmSync(folder, { recursive: true });
});
