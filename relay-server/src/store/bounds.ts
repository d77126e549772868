/**
 * The bound of each table: how many rows one owner may have, and how long rows are kept once nobody
 * needs them (docs/limits.md, "Retention"). So the store stays bounded, whatever users and
 * devices do. A table that is not listed here does not compile, and `bounds.test.ts` grows each of
 * them.
 */
import { IDEMPOTENCY_TTL_S, RETIRED_TOKEN_KEPT_S } from "@blindrelay/protocol";
import { MAX_KEYS } from "@blindrelay/protocol/schema/rest";
import { MAX_LABELS } from "@blindrelay/protocol/selector";
import type { Tables } from "./tables.ts";

const DAY_MS = 86_400_000;

export interface Bound {
  /** Who can add rows: `admins` by REST, `operators` by commands on the data folder. */
  readonly grownBy: "operators" | "admins" | "users";
  /** How many rows an owner may have, apart from those of the last minutes; null: see `why`. */
  readonly perOwner: number | null;
  readonly owner: "relay" | "user" | "agent" | "token" | "release";
  /** Rows are deleted this long after they have ended, or were written; null: never. */
  readonly keptMs: number | null;
  /** What the bound consists of, where the numbers do not say it. */
  readonly why?: string;
}

const RETIRED_MS = RETIRED_TOKEN_KEPT_S * 1000;

export const BOUNDS = {
  settings: {
    grownBy: "operators",
    perOwner: 3,
    owner: "relay",
    keptMs: null,
  },
  users: {
    grownBy: "admins",
    perOwner: null,
    owner: "relay",
    keptMs: null,
    why: "made by admins only",
  },
  recovery_codes: { grownBy: "users", perOwner: 10, owner: "user", keptMs: null },
  agents: {
    grownBy: "users",
    perOwner: null,
    owner: "user",
    keptMs: null,
    why: "agentsPerUser and metadataBytesPerUser",
  },
  agent_labels: {
    grownBy: "users",
    perOwner: MAX_LABELS,
    owner: "agent",
    keptMs: null,
    why: "deleted with the agent",
  },
  /** As many valid ones, and as many that were removed. */
  access_keys: { grownBy: "users", perOwner: 2 * MAX_KEYS, owner: "user", keptMs: RETIRED_MS },
  /** Ended ones: each agent, and each account, has one that is valid. */
  tokens: { grownBy: "users", perOwner: 20_000, owner: "user", keptMs: RETIRED_MS },
  /** Ended ones: of those that are valid each token and login has at most 1,000. */
  sessions: { grownBy: "users", perOwner: 20_000, owner: "user", keptMs: RETIRED_MS },
  /** Half of them for the account's access keys. */
  idempotency: {
    grownBy: "users",
    perOwner: 2000,
    owner: "user",
    keptMs: IDEMPOTENCY_TTL_S * 1000,
  },
  /** No upload takes that long; an older one without a release was left by a crash. */
  uploads: {
    grownBy: "admins",
    perOwner: 1,
    owner: "release",
    keptMs: DAY_MS,
  },
  upload_parts: {
    grownBy: "admins",
    perOwner: null,
    owner: "release",
    keptMs: DAY_MS,
    why: "maxReleaseBytes",
  },
  releases: {
    grownBy: "admins",
    perOwner: null,
    owner: "relay",
    keptMs: null,
    why: "made by admins only",
  },
  release_offers: {
    grownBy: "users",
    perOwner: 1,
    owner: "agent",
    keptMs: null,
    why: "of each release; deleted with the agent",
  },
  /** A month more than a year, so that a yearly audit may be late. 10,000 are about 3 MB. */
  audit: { grownBy: "users", perOwner: 10_000, owner: "user", keptMs: 400 * DAY_MS },
  /** A node that the database could not reach for a day has lost its links as well. */
  notices: { grownBy: "users", perOwner: 20_000, owner: "user", keptMs: DAY_MS },
  known_addresses: { grownBy: "users", perOwner: 20, owner: "user", keptMs: 90 * DAY_MS },
} as const satisfies { readonly [table in keyof Tables]: Bound };

/**
 * Ended tokens of one account or agent. Those that were valid for the shortest time go first: what
 * a loop of rotations makes displaces itself, and never the token that a device may still hold.
 */
export const ENDED_TOKENS_PER_OWNER = 100;
