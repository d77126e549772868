/** Offers of a hostile relay, composed of everything that was ever signed. */
import { createHash, generateKeyPairSync, type KeyObject, sign } from "node:crypto";
import {
  type ListedRelease,
  listedReleaseText,
  type ReleaseSignature,
  releaseText,
} from "@blindrelay/protocol/releases";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { StoragePort } from "../ports.ts";
import { ConfigError, ReleaseError } from "./errors.ts";
import { type ReleaseTrust, type Signed, trustOf } from "./release-trust.ts";

interface Signer {
  readonly x: string;
  readonly id: string;
  readonly key: KeyObject;
}

const SIGNERS = Array.from({ length: 4 }, (): Signer => {
  const { publicKey, privateKey } = generateKeyPairSync("ed25519");
  const x = publicKey.export({ format: "jwk" }).x as string;
  const hash = createHash("sha256").update(Buffer.from(x, "base64url")).digest("hex");
  return { x, id: hash.slice(0, 16), key: privateKey };
});
const [ANN, BEN, CAT, STRANGER] = SIGNERS as [Signer, Signer, Signer, Signer];
const PINNED = [ANN, BEN, CAT];

const SHA = createHash("sha256").update("firmware").digest("hex");
const RELEASE: ListedRelease = {
  ...{ runtime: "node", channel: "stable", version: "1.1.0", size: 8, sha256: SHA },
  ...{ list: 7, not_after: 2_000 },
};

const signText = (text: string, by: Signer): string =>
  sign(null, Buffer.from(text), by.key).toString("base64url");
const by = (signer: Signer, release = RELEASE): ReleaseSignature => ({
  key_id: signer.id,
  signature: signText(listedReleaseText(release), signer),
});

const memory = (): StoragePort & { readonly texts: Map<string, string> } => {
  const texts = new Map<string, string>();
  return {
    texts,
    read: (name) => texts.get(name) ?? null,
    write: (name, text) => void texts.set(name, text),
  };
};

/** What a device says of offers, one after another: "trusted" or the problem. */
const device = (more: Partial<ReleaseTrust> = {}) => {
  const publicKeys = PINNED.map(({ x }) => x);
  const rest = { storage: memory(), now: () => 1_000 };
  const check = trustOf({ publicKeys, threshold: 2, ...rest, ...more });
  return (signatures: readonly ReleaseSignature[], release = RELEASE): string => {
    const { list, not_after, ...first } = release;
    const signed: Signed = {
      ...{ list, not_after, signatures },
      signature: signText(releaseText(first), ANN),
    };
    try {
      check(first, signed);
      return "trusted";
    } catch (error) {
      if (error instanceof ReleaseError) return error.problem;
      throw error;
    }
  };
};

test("as many different keys as the threshold must have signed", () => {
  const says = device();
  expect(says([by(ANN), by(CAT)])).toBe("trusted");
  expect(says([by(STRANGER), by(BEN), by(ANN)])).toBe("trusted");
  expect(says([by(ANN)])).toBe("untrusted");
  expect(says([by(ANN), by(ANN), by(ANN)])).toBe("untrusted");
  expect(says([by(ANN), by(STRANGER)])).toBe("untrusted");
  expect(says([by(ANN), { ...by(ANN), key_id: BEN.id }])).toBe("untrusted");
  expect(device({ threshold: 1 })([by(BEN)])).toBe("trusted");
});

test("a spoilt signature does not hide a good one by the same key", () => {
  const spoilt = { key_id: ANN.id, signature: by(BEN).signature };
  expect(device()([spoilt, by(ANN), by(BEN)])).toBe("trusted");
});

test("the first text alone is not enough, and is for devices without a threshold", () => {
  const first = { key_id: ANN.id, signature: signText(releaseText(RELEASE), ANN) };
  expect(device()([first, by(BEN)])).toBe("untrusted");
  expect(device({ threshold: 1 })([])).toBe("untrusted");
  const check = trustOf({ publicKeys: [ANN.x] });
  const none = { list: null, not_after: null, signatures: [] };
  expect(() => check(RELEASE, { ...none, signature: first.signature })).not.toThrow();
  expect(() => check(RELEASE, { ...none, signature: by(ANN).signature })).toThrow(ReleaseError);
});

test("nothing holds after its end, where the device knows the time", () => {
  const signatures = [by(ANN), by(BEN)];
  expect(device({ now: () => 2_000 })(signatures)).toBe("trusted");
  expect(device({ now: () => 2_001 })(signatures)).toBe("expired");
  expect(device({ now: () => null })(signatures)).toBe("trusted");
});

describe("the list number", () => {
  const of = (list: number, channel = "stable") => {
    const release = { ...RELEASE, list, channel };
    return [[by(ANN, release), by(BEN, release)], release] as const;
  };

  test("never falls, also after a restart, and is each channel's own", () => {
    const storage = memory();
    expect(device({ storage })(...of(7))).toBe("trusted");
    expect(device({ storage })(...of(7))).toBe("trusted");
    expect(device({ storage })(...of(9))).toBe("trusted");
    expect(device({ storage })(...of(8))).toBe("superseded");
    expect(device({ storage })(...of(3, "beta"))).toBe("trusted");
    expect(device({ storage })(...of(8))).toBe("superseded");
    expect(storage.texts).toEqual(new Map([["releases", '{"stable":9,"beta":3}']]));
  });

  test("of an offer that is not trusted, or that has ended, changes nothing", () => {
    const storage = memory();
    const [, release] = of(99);
    expect(device({ storage })([by(ANN, release)], release)).toBe("untrusted");
    expect(device({ storage, now: () => 9_999 })(...of(99))).toBe("expired");
    expect(storage.texts.size).toBe(0);
  });

  test.each(["", "{", "null", "[]", "{}", '{"stable":"7"}', '{"stable":-1}'])(
    "is not begun anew where the medium holds %j",
    (text) => {
      const storage = memory();
      storage.texts.set("releases", text);
      expect(device({ storage })(...of(7))).toBe("disk");
      expect(storage.texts.get("releases")).toBe(text);
    },
  );

  test("that cannot be stored is trusted by nobody", () => {
    const storage: StoragePort = {
      read: () => null,
      write: () => {
        throw new Error("no room");
      },
    };
    expect(device({ storage })(...of(7))).toBe("disk");
  });
});

test.each<Partial<ReleaseTrust>>([
  { threshold: 0 },
  { threshold: 1.5 },
  { threshold: 4 },
  { threshold: 2, publicKeys: [ANN.x, ANN.x] },
  { threshold: 1, publicKeys: [] },
  { threshold: 1, publicKeys: ["short"] },
])("a threshold that cannot be met is an error of the configuration: %j", (wrong) => {
  expect(() => device(wrong)).toThrow(ConfigError);
  expect(() => trustOf({ publicKeys: [ANN.x], threshold: 1 })).toThrow(ConfigError);
});

/** What owners signed at some time: each of these by each of their keys, in both forms. */
const SIGNED: readonly ListedRelease[] = [
  RELEASE,
  { ...RELEASE, list: 8 },
  { ...RELEASE, list: 8, not_after: 900 },
  { ...RELEASE, version: "1.2.0", list: 9 },
  { ...RELEASE, sha256: "ab".repeat(32) },
  { ...RELEASE, channel: "beta", list: 8 },
  { ...RELEASE, runtime: "espruino" },
  // Its numbers are another one's in another order.
  { ...RELEASE, size: 7, list: 8 },
  { ...RELEASE, list: 2_000, not_after: 7 },
];
const SIGNATURES = SIGNERS.map((signer) =>
  SIGNED.map((release) => ({
    second: by(signer, release).signature,
    first: signText(releaseText(release), signer),
  })),
);

const piece = fc.record({
  named: fc.nat(3),
  signer: fc.nat(3),
  release: fc.nat(SIGNED.length - 1),
  kind: fc.constantFrom("second", "second", "second", "first", "bent", "cut", "padded"),
  bit: fc.nat(511),
});

type Piece = typeof piece extends fc.Arbitrary<infer T> ? T : never;

const textOf = ({ signer, release, kind, bit }: Piece) => {
  const made = SIGNATURES[signer]?.[release] as { first: string; second: string };
  if (kind === "first") return made.first;
  if (kind === "cut") return made.second.slice(0, -2);
  if (kind === "padded") return `${made.second}==`;
  if (kind === "second") return made.second;
  const bytes = Buffer.from(made.second, "base64url");
  bytes[bit >> 3] = (bytes[bit >> 3] as number) ^ (1 << (bit & 7));
  return bytes.toString("base64url");
};

const offer = fc.record({
  release: fc.nat(SIGNED.length - 1),
  change: fc.constantFrom<Partial<ListedRelease>>(
    ...[{}, {}, {}, {}],
    ...[{ list: 8 }, { list: 7 }, { not_after: 5_000 }, { size: 7 }, { version: "1.1.0" }],
    ...[{ sha256: `${SHA}|7`, list: 2_000, not_after: 7 }, { channel: "stable" }, { list: 2_000 }],
  ),
  pieces: fc.array(piece, { maxLength: 6 }),
  /** So many of the first pieces are over this release, and by whom they name. */
  fitting: fc.nat(4),
});

test("any mixture of what was signed is trusted only as it was signed, by enough keys", () => {
  let trusted = 0;
  fc.assert(
    fc.property(
      fc.array(offer, { minLength: 1, maxLength: 6 }),
      fc.constantFrom(1, 2, 3),
      (offers, threshold) => {
        const says = device({ threshold });
        const lasts = new Map<string, number>();
        for (const { release, change, pieces, fitting } of offers) {
          const offered = { ...(SIGNED[release] as ListedRelease), ...change };
          const used = pieces.map((each, i) =>
            i < fitting ? { ...each, release, signer: each.named } : each,
          );
          const signatures = used.map((each) => ({
            key_id: (SIGNERS[each.named] as Signer).id,
            signature: textOf(each),
          }));
          const good = used.filter(
            ({ named, signer, release: over, kind }) =>
              named === signer &&
              named < PINNED.length &&
              (kind === "second" || kind === "padded") &&
              JSON.stringify(SIGNED[over]) === JSON.stringify(offered),
          );
          const last = lasts.get(offered.channel) ?? 0;
          const expected =
            new Set(good.map(({ named }) => named)).size < threshold
              ? "untrusted"
              : offered.not_after < 1_000
                ? "expired"
                : offered.list < last
                  ? "superseded"
                  : "trusted";
          expect(says(signatures, offered)).toBe(expected);
          if (expected !== "trusted") continue;
          trusted += 1;
          lasts.set(offered.channel, offered.list);
        }
      },
    ),
    { numRuns: Number(process.env.RELEASE_OFFERS ?? 500) },
  );
  expect(trusted).toBeGreaterThan(50);
});
