import { asciiBytes, toHex } from "@blindrelay/protocol/crypto";
import { nodeSuite } from "@blindrelay/protocol/suites/node";
import { nodeX25519 } from "@blindrelay/protocol/suites/node-x25519";
import { expect, test } from "vitest";
import { ForwardOracle } from "./forward.ts";

const bytes = (from: number): Uint8Array => new Uint8Array(32).fill(from);

const oracle = () => {
  const said: string[] = [];
  return { said, watched: new ForwardOracle((what) => said.push(what)) };
};

test("a start may have one seed, which is gone from its medium", () => {
  const { said, watched } = oracle();
  watched.started("a", bytes(1), ["boot count", null]);
  watched.started("a", bytes(2), ["boot count"]);
  expect(said).toEqual([]);
  watched.started("a", bytes(1), []);
  watched.started("a", bytes(3), ["", `blindrelay-boot ${toHex(bytes(3))}`]);
  expect(said).toEqual([
    "a starts twice with one seed",
    "a still has the seed of this start on its medium",
  ]);
});

test("what one session's private value came from must not give another's", () => {
  const { said, watched } = oracle();
  const suite = watched.watch(nodeSuite());
  const derive = (secret: Uint8Array, label: string): Uint8Array =>
    suite.hmac(suite.hmacKey(secret), asciiBytes(label));
  derive(bytes(1), "x25519|3|one");
  derive(bytes(1), "next");
  derive(bytes(2), "x25519|3|two");
  expect(said).toEqual([]);
  expect(derive(bytes(1), "x25519|3|two")).toHaveLength(32);
  expect(said).toEqual(["the secret of one session is still there for another"]);
});

test("a private value is exchanged once, except for the pinned one", () => {
  const { said, watched } = oracle();
  const { pair } = watched.exchanging(nodeX25519, bytes(9));
  const other = nodeX25519.pair(bytes(5)).publicKey();
  const [pinned, own] = [pair(bytes(9)), pair(bytes(1))];
  expect(own.shared(other)).toEqual(nodeX25519.pair(bytes(1)).shared(other));
  for (let i = 0; i < 2; i++) pinned.shared(other);
  expect(said).toEqual([]);
  own.shared(other);
  pair(bytes(1)).shared(other);
  expect(said).toEqual(Array(2).fill("one private value is exchanged twice"));
});
