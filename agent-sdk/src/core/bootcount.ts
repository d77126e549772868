/**
 * Section 2, "Boot count": a number that is never used twice with one agent_token, whatever happens
 * to the power. It is raised, flushed, read back and compared before anything is sent.
 *
 * Two slots contain `blindrelay-boot 1 <count> <hash of agent_token> <CRC-32 of all before>`. A
 * write goes to the slot without the current count, so a torn write leaves that count readable.
 *
 * Invariant: the two slots are never more than one apart. So an unreadable slot can have contained
 * at most one more than the other, and one count is skipped: first the broken slot is set to `count
 * + 1`, which is never used, then the other to `count + 2`. Writing `count + 2` directly over the
 * broken slot would violate the invariant: if that failed in turn, the other slot would lead to
 * `count + 2` again.
 *
 * Provisioning continues from the highest count of any token, so that a secret which comes back
 * after another one never finds its old counts again. Files made elsewhere do not know that count:
 * they carry a *marker*, a slot text with count 0 in a file of its own. The next start turns it
 * into a count, unless the slots already contain one of that token, and then spoils it; a copy of
 * the same files changes nothing.
 *
 * Suites "3" and "4" keep a *seed* behind the hash (section 2b, boot-seed.ts), in slots of format
 * 2. A start replaces it in both slots before it uses the one before, so that no later reader of
 * the medium finds what earlier starts used. Both are written before a start succeeds, so there the
 * higher slot never lacks a count that was used.
 *
 * [portable]
 */
import type { Suite } from "@blindrelay/protocol/crypto";
import { asciiBytes, crc32, toHex, utf8Bytes } from "@blindrelay/protocol/crypto";
import type { StoragePort } from "../ports.ts";
import { formatOf, hashOf, nextOwner, ownerOf, seedOf, withSeed } from "./boot-seed.ts";

const SLOTS = ["boot.0", "boot.1"];
const MARKER = "boot.marker";
/** What a marker becomes; anything but a marker would do. */
const TAKEN = "taken";
const HEADER = "blindrelay-boot ";
const TOKEN_LABEL = "blindrelay|boot-count";
/** Exact in every runtime, and more than the starts that any medium survives. */
const MAX_COUNT = 4294967295;

/**
 * Why an agent may not start. `missing`: never provisioned; `unreadable`: the storage has no valid
 * count; `otherToken`: the count belongs to another agent_token; `medium`: the storage failed, or
 * returned something else; `usedToken`: provisioning was called with the old token; `usedUp`: there
 * is no higher count.
 */
export type BootCountProblem =
  | "missing"
  | "unreadable"
  | "otherToken"
  | "medium"
  | "usedToken"
  | "usedUp";

export type BootCountResult =
  /** `seed`: of this start, 32 bytes, already replaced on the medium; absent without seeds. */
  | { readonly ok: true; readonly count: number; readonly seed?: Uint8Array }
  | { readonly ok: false; readonly problem: BootCountProblem; readonly advice: string };

const NEW_TOKEN = ": provision this agent with a new agent_token";

const ADVICE: { readonly [problem in BootCountProblem]: string } = {
  missing: `there is no boot count${NEW_TOKEN}`,
  unreadable: `the boot count is not readable${NEW_TOKEN}`,
  otherToken:
    "the boot count belongs to another agent_token: use that one, or provision with a new one",
  medium: "the storage does not keep what is written: the agent must not start on it",
  usedToken: "provisioning wants an agent_token that was never used here: make a new one",
  usedUp: "no boot count is left: erase the storage, and provision with a new agent_token",
};

interface Slot {
  readonly kind: "absent" | "broken" | "valid";
  readonly count: number;
  /** The hash of agent_token, in format 2 with a space and the seed behind it. */
  readonly owner: string;
}

const ABSENT: Slot = { kind: "absent", count: 0, owner: "" };
const BROKEN: Slot = { kind: "broken", count: 0, owner: "" };

const refused = (problem: BootCountProblem): BootCountResult => ({
  ok: false,
  problem: problem,
  advice: ADVICE[problem],
});

/** HMAC-SHA256 under a fixed label: reveals only whether two tokens are equal. */
export const hashToken = (suite: Suite, agentToken: string): string =>
  toHex(suite.hmac(suite.hmacKey(asciiBytes(TOKEN_LABEL)), utf8Bytes(agentToken)));

const slotChecksum = (text: string): string => {
  const hex = (crc32(asciiBytes(text)) >>> 0).toString(16);
  return "00000000".substring(hex.length) + hex;
};

const encodeSlot = (count: number, owner: string): string => {
  const text = `${HEADER + formatOf(owner)} ${count} ${owner}`;
  return `${text} ${slotChecksum(text)}\n`;
};

const isCount = (text: string): boolean => {
  const count = Number(text);
  return count >= 1 && count <= MAX_COUNT && String(Math.floor(count)) === text;
};

/** The exact inverse of encodeSlot; any other text is broken. */
const decodeSlot = (text: string | null): Slot => {
  if (text === null) return ABSENT;
  const parts = text.split(" ");
  const owner = ownerOf(parts);
  if (owner === undefined || !isCount(parts[2] as string)) return BROKEN;
  const count = Number(parts[2]);
  return hashOf(owner).length === 64 && encodeSlot(count, owner) === text
    ? { kind: "valid", count: count, owner: owner }
    : BROKEN;
};

/** Throws if the file does not contain the text afterwards. */
const writeFile = (storage: StoragePort, name: string, text: string): void => {
  storage.write(name, text);
  if (storage.read(name) !== text) throw new Error();
};

const writeSlot = (storage: StoragePort, index: number, count: number, owner: string): void =>
  writeFile(storage, SLOTS[index] as string, encodeSlot(count, owner));

const readSlots = (storage: StoragePort): Slot[] => [
  decodeSlot(storage.read(SLOTS[0] as string)),
  decodeSlot(storage.read(SLOTS[1] as string)),
];

/** Whether the slots belong to these tokens; false while its provisioning is incomplete. */
const isOwn = (slots: readonly Slot[], hashes: readonly string[]): boolean => {
  let own = false;
  for (const slot of slots) {
    if (slot.kind !== "valid") continue;
    if (hashes.indexOf(hashOf(slot.owner)) < 0) return false;
    own = true;
  }
  return own;
};

/** ABSENT and BROKEN count as 0, so a valid slot is the higher one. */
const higherOf = (slots: readonly Slot[]): number =>
  (slots[0] as Slot).count >= (slots[1] as Slot).count ? 0 : 1;

const provision = (storage: StoragePort, owner: string): BootCountResult => {
  const slots = readSlots(storage);
  if (isOwn(slots, [hashOf(owner)])) return refused("usedToken");
  const higher = higherOf(slots);
  const count = (slots[higher] as Slot).count + 1;
  if (count + 2 > MAX_COUNT) return refused("usedUp");
  // The lower one first, as the invariant requires.
  writeSlot(storage, 1 - higher, count, owner);
  writeSlot(storage, higher, count, owner);
  return { ok: true, count: count };
};

/** Turns a marker of this token, if there is one, into a count; returns what prevented it. */
const takeMarker = (storage: StoragePort, hash: string): BootCountResult | null => {
  const text = storage.read(MARKER);
  if (text === null) return null;
  const owner = ownerOf(text.split(" "));
  if (owner === undefined || hashOf(owner) !== hash || text !== encodeSlot(0, owner)) return null;
  // Neither can be read: they may be this token's, and a folder that was copied again would begin
  // its counts anew. A first provisioning that a power cut ends leaves no such slots.
  const slots = readSlots(storage);
  if ((slots[0] as Slot).kind === "broken" && (slots[1] as Slot).kind === "broken")
    return refused("unreadable");
  const result = provision(storage, owner);
  if (!result.ok && result.problem !== "usedToken") return result;
  writeFile(storage, MARKER, TAKEN);
  return null;
};

const raise = (
  storage: StoragePort,
  suite: Suite,
  hash: string,
  from: readonly string[],
): BootCountResult => {
  const failed = takeMarker(storage, hash);
  if (failed !== null) return failed;
  const slots = readSlots(storage);
  const higher = higherOf(slots);
  const lower = 1 - higher;
  const count = (slots[higher] as Slot).count;
  if ((slots[0] as Slot).kind === "absent" && (slots[1] as Slot).kind === "absent")
    return refused("missing");
  if (count === 0) return refused("unreadable");
  // Even if only one of them belongs to another token: provisioning was interrupted, and must be
  // completed.
  if (!isOwn(slots, from.concat([hash]))) return refused("otherToken");
  if (count + 2 > MAX_COUNT) return refused("usedUp");
  const owner = (slots[higher] as Slot).owner;
  const next = nextOwner(suite, hash, owner);
  if (next !== null) {
    writeSlot(storage, lower, count + 1, next);
    writeSlot(storage, higher, count + 1, next);
    return { ok: true, count: count + 1, seed: seedOf(owner) };
  }
  const both = (slots[lower] as Slot).count > 0;
  writeSlot(storage, lower, count + 1, hash);
  if (both) return { ok: true, count: count + 1 };
  writeSlot(storage, higher, count + 2, hash);
  return { ok: true, count: count + 2 };
};

/**
 * The count of this start, durable on the medium on return. Call it once for every AgentCore,
 * before constructing it, under the lock that prevents two processes from using one storage.
 * `from`: hashes of secrets that this one replaced over the air, which the slots may still name.
 */
export const raiseBootCount = (
  storage: StoragePort,
  suite: Suite,
  agentToken: string,
  from?: readonly string[],
): BootCountResult => {
  try {
    return raise(storage, suite, hashToken(suite, agentToken), from === undefined ? [] : from);
  } catch {
    return refused("medium");
  }
};

/**
 * Binds the slots to a token, with 1 + the highest count that is readable there, whichever token it
 * belonged to; the first start raises it. Refuses a token that the slots belong to already. If a
 * power cut left them with two tokens, either of these can be provisioned. `seed`: 32 random bytes
 * for packet versions "3" and "4", kept nowhere else.
 */
export const provisionBootCount = (
  storage: StoragePort,
  suite: Suite,
  agentToken: string,
  seed?: Uint8Array | null,
): BootCountResult => {
  try {
    return provision(storage, withSeed(hashToken(suite, agentToken), seed));
  } catch {
    return refused("medium");
  }
};

/** The file that provisions the storage into which it is copied, at the next start. */
export const bootCountMarker = (
  suite: Suite,
  agentToken: string,
  seed?: Uint8Array | null,
): { readonly name: string; readonly content: string } => ({
  name: MARKER,
  content: encodeSlot(0, withSeed(hashToken(suite, agentToken), seed)),
});
