/**
 * Every migration in order. A released one is never changed; a correction becomes the next number.
 * Within a minor version they are additive (CONTRIBUTING.md, "How to add"): the version before must
 * still start on the store, because during a deployment it may have to.
 */
import type { Kysely } from "kysely";
import { up as firstSchema } from "./0014-first-schema.ts";
import { up as knownAddresses } from "./0015-known-addresses.ts";
import { up as leftReleases } from "./0016-left-releases.ts";
import { up as labels } from "./0017-labels.ts";
import { up as accessKeys } from "./0018-access-keys.ts";
import { up as listedReleases } from "./0019-listed-releases.ts";

export interface Migration {
  readonly name: string;
  /**
   * Whether a version that does not know it may run on the result: it adds tables, indexes, and
   * columns that may be left out. `additive.test.ts` checks that.
   */
  readonly additive: boolean;
  /** Earlier migrations that it replaces, which stores are still recorded to have. */
  readonly replaces?: readonly string[];
  readonly up: (db: Kysely<unknown>) => Promise<void>;
}

export const MIGRATIONS: readonly Migration[] = [
  {
    name: "0014-live-sessions",
    additive: false,
    replaces: [
      ...["0001-initial", "0002-idempotency", "0003-releases", "0004-admin", "0005-grace"],
      ...["0006-one-live-token", "0007-notices", "0008-agent-lists", "0009-agent-epochs"],
      ...["0010-notice-numbers", "0011-agent-nodes", "0012-agent-lists-with-node"],
      "0013-held-by-users",
    ],
    up: firstSchema,
  },
  { name: "0015-known-addresses", additive: true, up: knownAddresses },
  { name: "0016-left-releases", additive: true, up: leftReleases },
  { name: "0017-labels", additive: true, up: labels },
  { name: "0018-access-keys", additive: true, up: accessKeys },
  { name: "0019-listed-releases", additive: true, up: listedReleases },
];
