/**
 * The known answers and refusals of suites "3" and "4", as the SDKs of Node and browsers speak
 * them.
 */
import { readFileSync } from "node:fs";
import type { Suite, X25519, X25519Pair } from "@blindrelay/protocol/crypto";
import { nobleSuite } from "@blindrelay/protocol/suites/noble";
import { nobleX25519 } from "@blindrelay/protocol/suites/noble-x25519";
import { nodeSuite } from "@blindrelay/protocol/suites/node";
import { nodeX25519 } from "@blindrelay/protocol/suites/node-x25519";
import { checkForward, type ForwardFile } from "@blindrelay/protocol/testing/forward";
import { describe, expect, it } from "vitest";
import { processRecorder } from "../instruments/nonces/recorder.ts";

const url = new URL("../../../protocol/vectors/forward-secrecy.json", import.meta.url);
const forward = JSON.parse(readFileSync(url, "utf8")) as ForwardFile;
const check = (suite: Suite, x25519: X25519): string[] =>
  checkForward(suite, x25519, forward, undefined, () => processRecorder().startScope());

describe.each([
  ["node", nodeSuite(), nodeX25519],
  ["noble", nobleSuite(), nobleX25519],
])("suites 3 and 4 of %s", (_name, suite, x25519) => {
  it("agree with every derivation, conversation and refusal", () => {
    expect(check(suite, x25519)).toEqual([]);
  });

  it.each<[string, (own: Uint8Array) => Partial<X25519Pair>]>([
    [
      "accepts zero",
      (own) => ({ shared: (other) => x25519.pair(own).shared(other) ?? new Uint8Array(32) }),
    ],
    [
      "ignores its private value",
      () => ({ shared: (other) => x25519.pair(new Uint8Array(32)).shared(other) }),
    ],
    [
      "has another base point",
      (own) => ({ publicKey: () => x25519.pair(own.map((byte) => byte ^ 8)).publicKey() }),
    ],
  ])("notice an X25519 that %s", (_what, change) => {
    const pair = (value: Uint8Array) => {
      const own = value.slice();
      return { ...x25519.pair(own), ...change(own) };
    };
    expect(check(suite, { ...x25519, pair })).not.toEqual([]);
  });
});
