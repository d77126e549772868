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
 * [portable]
 */
import type { Suite } from "@blindrelay/protocol/crypto";
import { asciiBytes, crc32, toHex, utf8Bytes } from "@blindrelay/protocol/crypto";
import type { StoragePort } from "../ports.ts";

const SLOTS = ["boot.0", "boot.1"];
const HEADER = "blindrelay-boot 1";
const TOKEN_LABEL = "blindrelay|boot-count";
/** Exact in every runtime, and more than the starts that any medium survives. */
const MAX_COUNT = 4294967295;

/**
 * Why an agent may not start. `missing`: never provisioned; `unreadable`: the storage has no valid
 * count; `otherToken`: the count belongs to another agent_token; `medium`: the storage failed, or
 * returned something else; `usedToken`: provisioning was called with the old token.
 */
export type BootCountProblem = "missing" | "unreadable" | "otherToken" | "medium" | "usedToken";

export type BootCountResult =
  | { readonly ok: true; readonly count: number }
  | { readonly ok: false; readonly problem: BootCountProblem; readonly advice: string };

const ADVICE: { readonly [problem in BootCountProblem]: string } = {
  missing: "there is no boot count: provision this agent with a new agent_token",
  unreadable: "the boot count is not readable: provision this agent with a new agent_token",
  otherToken:
    "the boot count belongs to another agent_token: use that one, or provision with a new one",
  medium: "the storage does not keep what is written: the agent must not start on it",
  usedToken: "provisioning wants an agent_token that was never used here: make a new one",
};

interface Slot {
  readonly kind: "absent" | "broken" | "valid";
  readonly count: number;
  readonly hash: string;
}

const ABSENT: Slot = { kind: "absent", count: 0, hash: "" };
const BROKEN: Slot = { kind: "broken", count: 0, hash: "" };

const refused = (problem: BootCountProblem): BootCountResult => ({
  ok: false,
  problem: problem,
  advice: ADVICE[problem],
});

/** HMAC-SHA256 under a fixed label: reveals only whether two tokens are equal. */
const hashToken = (suite: Suite, agentToken: string): string =>
  toHex(suite.hmac(suite.hmacKey(asciiBytes(TOKEN_LABEL)), utf8Bytes(agentToken)));

const slotChecksum = (text: string): string => {
  const hex = (crc32(asciiBytes(text)) >>> 0).toString(16);
  return "00000000".substring(hex.length) + hex;
};

const encodeSlot = (count: number, hash: string): string => {
  const text = `${HEADER} ${count} ${hash}`;
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
  if (parts.length !== 5 || !isCount(parts[2] as string)) return BROKEN;
  const count = Number(parts[2]);
  const hash = parts[3] as string;
  return hash.length === 64 && encodeSlot(count, hash) === text
    ? { kind: "valid", count: count, hash: hash }
    : BROKEN;
};

/** Writes a slot; returns whether it contains the text now. Throws what the storage throws. */
const writeSlot = (storage: StoragePort, index: number, text: string): boolean => {
  storage.write(SLOTS[index] as string, text);
  return storage.read(SLOTS[index] as string) === text;
};

const readSlots = (storage: StoragePort): Slot[] => [
  decodeSlot(storage.read(SLOTS[0] as string)),
  decodeSlot(storage.read(SLOTS[1] as string)),
];

const raise = (storage: StoragePort, hash: string): BootCountResult => {
  const slots = readSlots(storage);
  const a = slots[0] as Slot;
  const b = slots[1] as Slot;
  if (a.kind === "absent" && b.kind === "absent") return refused("missing");
  if (a.kind !== "valid" && b.kind !== "valid") return refused("unreadable");
  // Even if only one of them belongs to another token: provisioning was interrupted, and the other
  // slot's count under our token is lost.
  if (a.kind === "valid" && a.hash !== hash) return refused("otherToken");
  if (b.kind === "valid" && b.hash !== hash) return refused("otherToken");

  const both = a.kind === "valid" && b.kind === "valid";
  // ABSENT and BROKEN count as 0, so the higher one is the valid one.
  const higher = a.count >= b.count ? 0 : 1;
  const lower = 1 - higher;
  const count = Math.max(a.count, b.count);
  if (count + 2 > MAX_COUNT) return refused("unreadable");
  if (!writeSlot(storage, lower, encodeSlot(count + 1, hash))) return refused("medium");
  if (both) return { ok: true, count: count + 1 };
  if (!writeSlot(storage, higher, encodeSlot(count + 2, hash))) return refused("medium");
  return { ok: true, count: count + 2 };
};

/**
 * The count of this start, durable on the medium on return. Call it once for every AgentCore,
 * before constructing it, under the lock that prevents two processes from using one storage.
 */
export const raiseBootCount = (
  storage: StoragePort,
  suite: Suite,
  agentToken: string,
): BootCountResult => {
  try {
    return raise(storage, hashToken(suite, agentToken));
  } catch {
    return refused("medium");
  }
};

const provision = (storage: StoragePort, hash: string): BootCountResult => {
  for (const slot of readSlots(storage)) {
    if (slot.kind === "valid" && slot.hash === hash) return refused("usedToken");
  }
  for (let index = 0; index < 2; index++) {
    if (!writeSlot(storage, index, encodeSlot(1, hash))) return refused("medium");
  }
  return { ok: true, count: 1 };
};

/**
 * Writes count 1 and the token's hash into both slots; the first start raises it to 2. Refuses a
 * token if its hash is already there: its counts may have been used.
 */
export const provisionBootCount = (
  storage: StoragePort,
  suite: Suite,
  agentToken: string,
): BootCountResult => {
  try {
    return provision(storage, hashToken(suite, agentToken));
  } catch {
    return refused("medium");
  }
};
