/**
 * The seed beside a boot count (section 2b), for bootcount.ts: `<hash> <seed, 64 hex digits>` where
 * a slot without one has the hash alone. Boards that speak only suites "1" and "2" have
 * espruino/boot-seed.ts in its place.
 *
 * [portable]
 */
import type { Suite } from "@blindrelay/protocol/crypto";
import { asciiBytes, fromHex, toHex } from "@blindrelay/protocol/crypto";

const SEED_AT = 65;
const LENGTH = 129;

/** Of a slot's text, split at its spaces; undefined for other texts. */
export const ownerOf = (parts: readonly string[]): string | undefined =>
  parts.length === 6 ? `${parts[3]} ${parts[4]}` : parts[3];

export const hashOf = (owner: string): string => owner.substring(0, SEED_AT - 1);

/** The format number of a slot. */
export const formatOf = (owner: string): number => (owner.length > SEED_AT ? 2 : 1);

/** The seed of a slot's owner that `nextOwner` accepts; 32 bytes. */
export const seedOf = (owner: string): Uint8Array =>
  fromHex(owner.substring(SEED_AT)) as Uint8Array;

export const withSeed = (hash: string, seed: Uint8Array | null | undefined): string =>
  seed === null || seed === undefined ? hash : `${hash} ${toHex(seed)}`;

/** `hash` with the seed that replaces this owner's; null if there is none. */
export const nextOwner = (suite: Suite, hash: string, owner: string): string | null => {
  if (owner.length !== LENGTH || fromHex(owner.substring(SEED_AT)) === null) return null;
  const next = suite.hmac(suite.hmacKey(seedOf(owner)), asciiBytes("seed"));
  return withSeed(hash, next);
};
