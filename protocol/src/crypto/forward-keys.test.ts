/** Every step of suites "3" and "4" gives the known answers of vectors/forward-secrecy.json. */
import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { asciiBytes, concatBytes, toHex } from "../encoding/bytes.ts";
import { nodeSuite } from "../suites/node.ts";
import { nodeX25519 as x25519 } from "../suites/node-x25519.ts";
import {
  deriveAgentPrivate,
  deriveDataKeys,
  deriveHandshakeKeys,
  deriveStart,
  nextDh,
  nextSeed,
} from "./forward-keys.ts";
import { deriveAgentPart, nextEpochSecret } from "./keys.ts";
import { parsePacket, sealPacket } from "./packet.ts";
import { extractPrk } from "./secret-keys.ts";
import type { ForwardVersion } from "./suite.ts";

interface Slots {
  readonly count: number;
  readonly seed: string;
}
interface Sealed {
  readonly plaintext: string;
  readonly packet: string;
}
type Texts<Name extends string> = Readonly<Record<Name, string>>;
type Vector = Texts<"agent_id" | "agent_token" | "device_random" | "epoch_secret" | "dh" | "C"> &
  Texts<"A" | "sid" | "x" | "X" | "client_seq_1" | "y" | "Y" | "Z" | "agent_seq_1"> &
  Texts<"opening" | "answer" | "dh_after_store" | "epoch_secret_after_window"> & {
    readonly v: ForwardVersion;
    readonly pinned: boolean;
    readonly slots_before_start: Slots;
    readonly slots_after_start: Slots;
    readonly boot_count: number;
    readonly serial_number: string | null;
    readonly device_key: Texts<"private" | "public"> | null;
    readonly keys_of_sid: Texts<"chain">;
    readonly Z_pinned: string | null;
    readonly data_keys: Texts<"confirm">;
    readonly data: Sealed;
    readonly reply: Sealed;
    readonly data_at_last_seq: Sealed;
  };
type OtherX = Texts<"X" | "client_seq_1" | "y" | "Y" | "Z" | "confirm" | "agent_seq_1"> & {
  readonly v: ForwardVersion;
};
interface File {
  readonly seed_ratchet: readonly Slots[];
  readonly vectors: readonly Vector[];
  readonly non_canonical_X: readonly OtherX[];
  readonly refusals: readonly { readonly name: string; readonly packet: string }[];
}

const file = JSON.parse(
  readFileSync(new URL("../../vectors/forward-secrecy.json", import.meta.url), "utf8"),
) as File;
const suite = nodeSuite();
const bytes = (hex: string): Uint8Array => Uint8Array.from(Buffer.from(hex, "hex"));
const none = new Uint8Array(0);
const zero = "no shared value";
const hexOf = (value: Uint8Array | null): string => (value === null ? zero : toHex(value));

const startOf = (one: Vector) => {
  const prk = extractPrk(suite, one.agent_id, one.agent_token);
  const seed = bytes(one.slots_before_start.seed);
  const random = bytes(one.device_random);
  return { prk, ...deriveStart(suite, seed, prk, one.boot_count, random, one.serial_number) };
};

describe.each(file.vectors)("suite $v, pinned key: $pinned", (one) => {
  const { v, sid } = one;
  const { prk, epoch, dh } = startOf(one);
  const handshake = deriveHandshakeKeys(suite, prk, v, sid);
  const [x, y] = [bytes(one.X), bytes(one.Y)];
  const pinned = one.Z_pinned === null ? null : bytes(one.Z_pinned);
  const exchange = { x, y, shared: bytes(one.Z), pinned };
  const data = deriveDataKeys(suite, v, sid, handshake.chain, exchange);

  it("moves the seed and derives a start", () => {
    expect(toHex(nextSeed(suite, bytes(one.slots_before_start.seed)))).toBe(
      one.slots_after_start.seed,
    );
    expect([toHex(epoch), toHex(dh)]).toEqual([one.epoch_secret, one.dh]);
    expect(deriveAgentPart(suite, epoch, v, one.C)).toBe(one.A);
    expect(toHex(nextDh(suite, dh))).toBe(one.dh_after_store);
    expect(toHex(nextEpochSecret(suite, epoch))).toBe(one.epoch_secret_after_window);
  });

  it("agrees on a value from both sides", () => {
    expect(toHex(x25519.publicKey(bytes(one.x)))).toBe(one.X);
    const agentPrivate = deriveAgentPrivate(suite, dh, v, sid, x);
    expect([toHex(agentPrivate), toHex(x25519.publicKey(agentPrivate))]).toEqual([one.y, one.Y]);
    expect(hexOf(x25519.shared(agentPrivate, x))).toBe(one.Z);
    expect(hexOf(x25519.shared(bytes(one.x), y))).toBe(one.Z);
    if (one.device_key === null) return;
    expect(hexOf(x25519.shared(bytes(one.device_key.private), x))).toBe(one.Z_pinned);
    expect(hexOf(x25519.shared(bytes(one.x), bytes(one.device_key.public)))).toBe(one.Z_pinned);
  });

  it("seals every packet of the session", () => {
    const opening = deriveHandshakeKeys(suite, prk, v, one.C);
    const proof = concatBytes(y, data.confirm);
    expect(toHex(handshake.chain)).toBe(one.keys_of_sid.chain);
    expect(toHex(data.confirm)).toBe(one.data_keys.confirm);
    expect(sealPacket(suite, opening.c2a, v, one.C, 0, none)).toBe(one.opening);
    expect(sealPacket(suite, handshake.a2c, v, sid, 0, none)).toBe(one.answer);
    expect(sealPacket(suite, handshake.c2a, v, sid, 1, x)).toBe(one.client_seq_1);
    expect(sealPacket(suite, handshake.a2c, v, sid, 1, proof)).toBe(one.agent_seq_1);
    const sealed = (keys: typeof data.c2a, seq: number, { plaintext }: Sealed): string =>
      sealPacket(suite, keys, v, sid, seq, asciiBytes(plaintext));
    expect(sealed(data.c2a, 2, one.data)).toBe(one.data.packet);
    expect(sealed(data.a2c, 2, one.reply)).toBe(one.reply.packet);
    expect(sealed(data.c2a, 0xffffffff, one.data_at_last_seq)).toBe(one.data_at_last_seq.packet);
  });
});

it.each(file.non_canonical_X)("suite $v accepts a public value that is not canonical", (other) => {
  const one = file.vectors.find(({ v, pinned }) => v === other.v && !pinned);
  if (one === undefined) throw new Error(`no vector of suite ${other.v}`);
  const { v, sid } = one;
  const { prk, dh } = startOf(one);
  const x = bytes(other.X);
  const agentPrivate = deriveAgentPrivate(suite, dh, v, sid, x);
  const shared = x25519.shared(agentPrivate, x);
  expect([toHex(agentPrivate), hexOf(shared)]).toEqual([other.y, other.Z]);
  const y = x25519.publicKey(agentPrivate);
  const { chain, a2c } = deriveHandshakeKeys(suite, prk, v, sid);
  const exchange = { x, y, shared: shared ?? none, pinned: null };
  const { confirm } = deriveDataKeys(suite, v, sid, chain, exchange);
  expect([toHex(y), toHex(confirm)]).toEqual([other.Y, other.confirm]);
  expect(sealPacket(suite, a2c, v, sid, 1, concatBytes(y, confirm))).toBe(other.agent_seq_1);
});

it("moves the seed from start to start", () => {
  const [first, ...later] = file.seed_ratchet;
  let seed = bytes(first?.seed ?? "");
  for (const { seed: expected } of later) {
    seed = nextSeed(suite, seed);
    expect(toHex(seed)).toBe(expected);
  }
  expect(later.length).toBeGreaterThan(0);
});

it("gives no shared value for a public value of small order", () => {
  const points = file.refusals.flatMap(
    ({ name }) => /small-order [XY] \d+: (\w+)/.exec(name)?.[1] ?? [],
  );
  expect(new Set(points).size).toBe(14);
  for (const point of new Set(points)) {
    expect(hexOf(x25519.shared(new Uint8Array(32).fill(0x77), bytes(point)))).toBe(zero);
  }
});

it("reads no packet of these suites where only 1 and 2 are spoken", () => {
  for (const one of file.vectors) expect(parsePacket(one.data.packet)).toBeNull();
});
