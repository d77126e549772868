/**
 * Which offered releases a device trusts: by keys that are pinned on it, and with a threshold also
 * by the second signed text, its end and its list number.
 */
import { createHash, createPublicKey, type KeyObject, verify } from "node:crypto";
import { reasonOfError } from "@blindrelay/protocol/net";
import {
  RELEASE_KEY_ID_DIGITS,
  type ReleaseSignature,
  releaseSigners,
  releaseText,
  type SignedRelease,
} from "@blindrelay/protocol/releases";
import type { StoragePort } from "../ports.ts";
import { ConfigError, ReleaseError } from "./errors.ts";

export interface ReleaseTrust {
  /** Pinned Ed25519 public keys: 32 bytes as base64url. */
  readonly publicKeys: readonly string[];
  /**
   * How many of `publicKeys` must have signed a release. With it only the second signed text
   * counts, with its list number and its end. Default: one, over the first text.
   */
  readonly threshold?: number;
  /** Keeps the last list number of each channel, in `releases`; needed with a threshold. */
  readonly storage?: StoragePort;
  /**
   * Unix seconds now, or null where the device does not know the time, which then ends no release.
   * Default: the system's clock.
   */
  readonly now?: () => number | null;
}

/** What an offer brings to be trusted; null and empty without the second text. */
export interface Signed {
  readonly signature: string;
  readonly list: number | null;
  readonly not_after: number | null;
  readonly signatures: readonly ReleaseSignature[];
}

/** Throws a ReleaseError unless the offer is to be trusted; keeps its list number. */
type Check = (release: SignedRelease, offered: Signed) => void;

type Keys = ReadonlyMap<string, KeyObject>;

/** Throws a ConfigError for keys that are none, and for a threshold that cannot be met. */
export const trustOf = (trust: ReleaseTrust): Check => {
  const keys = new Map(trust.publicKeys.map(pinnedKey));
  if (keys.size === 0) throw new ConfigError("publicKeys: pin at least one release key");
  const { threshold, storage, now = () => Math.floor(Date.now() / 1000) } = trust;
  if (threshold === undefined) return (release, offered) => checkFirst(release, offered, keys);
  if (!Number.isInteger(threshold) || threshold < 1 || threshold > keys.size) {
    throw new ConfigError(`threshold: from 1 to the ${keys.size} different keys of publicKeys`);
  }
  if (storage === undefined) throw new ConfigError("storage: a threshold needs one");
  return (release, offered) => {
    checkSecond(release, offered, keys, threshold, now());
    keepList(storage, release, offered.list as number);
  };
};

const checkFirst = (release: SignedRelease, { signature }: Signed, keys: Keys): void => {
  const text = releaseText(release);
  if ([...keys.values()].some((key) => isBy(key, text, signature))) return;
  throw new ReleaseError("untrusted", `no pinned key signed ${nameOf(release)}`);
};

const checkSecond = (
  release: SignedRelease,
  { list, not_after, signatures }: Signed,
  keys: Keys,
  threshold: number,
  now: number | null,
): void => {
  const signers =
    list === null || not_after === null
      ? []
      : releaseSigners(
          { ...release, list, not_after },
          signatures,
          [...keys.keys()],
          (id, text, signature) => isBy(keys.get(id) as KeyObject, text, signature),
        );
  if (signers.length < threshold) {
    const few = `${signers.length} pinned keys, not ${threshold}, signed the second text of`;
    throw new ReleaseError("untrusted", `${few} ${nameOf(release)}`);
  }
  if (now !== null && now > (not_after as number)) {
    const end = new Date((not_after as number) * 1000);
    throw new ReleaseError("expired", `${nameOf(release)} was good until ${textOf(end)}`);
  }
};

const nameOf = ({ version, runtime, channel }: SignedRelease): string =>
  `${version} for ${runtime}|${channel}`;

/** A number of seconds may be beyond what a Date holds. */
const textOf = (end: Date): string =>
  Number.isNaN(end.getTime()) ? "a far end" : end.toISOString();

/** Whether a key signed the ASCII text. `signature`: base64url. */
const isBy = (key: KeyObject, text: string, signature: string): boolean =>
  verify(null, Buffer.from(text, "ascii"), key, Buffer.from(signature, "base64url"));

const LISTS = "releases";

/** Throws unless `list` is not below the channel's last one, which it becomes, durably. */
const keepList = (storage: StoragePort, release: SignedRelease, list: number): void => {
  const lists = readLists(storage);
  const last = lists.get(release.channel) ?? 0;
  if (list < last) {
    const why = `is of list ${list}, and one of list ${last} was seen`;
    throw new ReleaseError("superseded", `${nameOf(release)} ${why}`);
  }
  if (list === last) return;
  try {
    storage.write(LISTS, JSON.stringify(Object.fromEntries(lists.set(release.channel, list))));
  } catch (error) {
    const { text } = reasonOfError(error);
    throw new ReleaseError("disk", `the list number cannot be stored: ${text}`, error);
  }
};

/** The last list number of each channel. What cannot be read is no reason to begin again. */
const readLists = (storage: StoragePort): Map<string, number> => {
  try {
    const text = storage.read(LISTS);
    if (text === null) return new Map();
    const entries: [string, unknown][] = Object.entries(JSON.parse(text));
    const lists = entries.filter((entry): entry is [string, number] => isCount(entry[1]));
    if (lists.length === 0 || lists.length < entries.length) throw new Error("no list numbers");
    return new Map(lists);
  } catch (error) {
    const { text } = reasonOfError(error);
    throw new ReleaseError("disk", `the last list numbers cannot be read: ${text}`, error);
  }
};

export const isCount = (value: unknown): value is number =>
  Number.isSafeInteger(value) && (value as number) >= 0;

/** By its id, so that a key that is pinned twice is one key. */
const pinnedKey = (text: string): [string, KeyObject] => {
  try {
    const key = createPublicKey({ key: { kty: "OKP", crv: "Ed25519", x: text }, format: "jwk" });
    const bytes = Buffer.from(key.export({ format: "jwk" }).x as string, "base64url");
    return [createHash("sha256").update(bytes).digest("hex").slice(0, RELEASE_KEY_ID_DIGITS), key];
  } catch (error) {
    throw new ConfigError("publicKeys: Ed25519 public keys, 32 bytes as base64url", error);
  }
};
