/**
 * Every migration in order. A released one is never changed; a correction becomes the next number.
 * Within a minor version they are additive (CONTRIBUTING.md, "How to add"): the version before must
 * still start on the store, because during a deployment it may have to.
 */
import type { Kysely } from "kysely";
import { up as initial } from "./0001-initial.ts";
import { up as idempotency } from "./0002-idempotency.ts";
import { up as releases } from "./0003-releases.ts";
import { up as admin } from "./0004-admin.ts";
import { up as grace } from "./0005-grace.ts";
import { up as oneLiveToken } from "./0006-one-live-token.ts";
import { up as notices } from "./0007-notices.ts";
import { up as agentLists } from "./0008-agent-lists.ts";
import { up as agentEpochs } from "./0009-agent-epochs.ts";
import { up as noticeNumbers } from "./0010-notice-numbers.ts";
import { up as agentNodes } from "./0011-agent-nodes.ts";
import { up as agentListsWithNode } from "./0012-agent-lists-with-node.ts";
import { up as heldByUsers } from "./0013-held-by-users.ts";
import { up as liveSessions } from "./0014-live-sessions.ts";
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
  readonly up: (db: Kysely<unknown>) => Promise<void>;
}

export const MIGRATIONS: readonly Migration[] = [
  { name: "0001-initial", additive: false, up: initial },
  { name: "0002-idempotency", additive: false, up: idempotency },
  { name: "0003-releases", additive: false, up: releases },
  { name: "0004-admin", additive: false, up: admin },
  { name: "0005-grace", additive: false, up: grace },
  { name: "0006-one-live-token", additive: false, up: oneLiveToken },
  { name: "0007-notices", additive: false, up: notices },
  { name: "0008-agent-lists", additive: false, up: agentLists },
  { name: "0009-agent-epochs", additive: false, up: agentEpochs },
  { name: "0010-notice-numbers", additive: false, up: noticeNumbers },
  { name: "0011-agent-nodes", additive: false, up: agentNodes },
  { name: "0012-agent-lists-with-node", additive: false, up: agentListsWithNode },
  { name: "0013-held-by-users", additive: false, up: heldByUsers },
  { name: "0014-live-sessions", additive: false, up: liveSessions },
  { name: "0015-known-addresses", additive: true, up: knownAddresses },
  { name: "0016-left-releases", additive: true, up: leftReleases },
  { name: "0017-labels", additive: true, up: labels },
  { name: "0018-access-keys", additive: true, up: accessKeys },
  { name: "0019-listed-releases", additive: true, up: listedReleases },
];
