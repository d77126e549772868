import { expect, test } from "vitest";
import { checkScenario } from "../scenario/load.ts";
import type { Scenario } from "../scenario/schema.ts";
import { drawScenario } from "../search/draw.ts";
import { modelSuite, modelX25519 } from "./model-suite.ts";
import { loadPrograms } from "./programs.ts";
import { type Crypto, runVirtual } from "./run.ts";

const bytes = (length: number, from: number): Uint8Array =>
  Uint8Array.from({ length }, (_, i) => i * 7 + from);

test("what the model seals is unreadable, and opens with the same key, nonce and header only", () => {
  const suite = modelSuite();
  const text = Buffer.from('{"jsonrpc":"2.0","method":"pump.state"}');
  const key = suite.aeadKey("1", bytes(32, 1));
  const sealed = suite.seal(key, bytes(12, 2), bytes(20, 3), text);
  const open = (k = key, nonce = bytes(12, 2), aad = bytes(20, 3), packet = sealed) =>
    suite.open(k, nonce, aad, Uint8Array.from(packet));

  expect(sealed).toHaveLength(text.length + 16);
  expect(Buffer.from(sealed).includes("json")).toBe(false);
  expect(Buffer.from(open() as Uint8Array)).toEqual(text);
  expect(open(suite.aeadKey("1", bytes(32, 9)))).toBeNull();
  expect(open(key, bytes(12, 9))).toBeNull();
  expect(open(key, bytes(12, 2), bytes(20, 9))).toBeNull();
  for (let i = 0; i < sealed.length; i++) {
    const changed = Uint8Array.from(sealed);
    changed[i] = (changed[i] as number) ^ 4;
    expect(open(key, undefined, undefined, changed)).toBeNull();
  }
  expect(suite.open(key, bytes(12, 2), bytes(20, 3), bytes(15, 0))).toBeNull();
});

test("both sides of a model's exchange get the same value, and no other pair does", () => {
  const [a, b, c] = [1, 2, 3].map((from) => modelX25519.pair(bytes(32, from)));
  const shared = (one = a, other = b) => one?.shared(other?.publicKey() as Uint8Array);
  expect(shared()).toHaveLength(32);
  expect(shared(b, a)).toEqual(shared());
  expect(shared(a, c)).not.toEqual(shared());
  expect(shared(b, c)).not.toEqual(shared());
});

/** `BLINDRELAY_SCENARIOS=500` compares more of them. */
const RANDOM = Number(process.env.BLINDRELAY_SCENARIOS ?? 6);
/** Before it: one with six bridges, which takes longer than all others together. */
const FIRST_SEED = 5;

const timelineOf = async (scenario: Scenario, seed: number, crypto: Crypto) => {
  const programs = loadPrograms(scenario, ".");
  const { report } = await runVirtual(scenario, { seed, programs, crypto, keepsTimeline: true });
  expect(report.crypto).toBe(crypto);
  return [report.trace, report.stopped, report.failures, report.latency_ms];
};

test("a run takes the same course with the model as with real cryptography", async () => {
  for (let seed = FIRST_SEED; seed < FIRST_SEED + RANDOM; seed++) {
    const { scenario } = checkScenario(drawScenario(seed), ".");
    const [real, model] = [
      await timelineOf(scenario, seed, "real"),
      await timelineOf(scenario, seed, "model"),
    ];
    expect([seed, ...model]).toEqual([seed, ...real]);
  }
});
