/**
 * Every migration in order. A released one is never changed; a correction becomes the next number.
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

export interface Migration {
  readonly name: string;
  readonly up: (db: Kysely<unknown>) => Promise<void>;
}

export const MIGRATIONS: readonly Migration[] = [
  { name: "0001-initial", up: initial },
  { name: "0002-idempotency", up: idempotency },
  { name: "0003-releases", up: releases },
  { name: "0004-admin", up: admin },
  { name: "0005-grace", up: grace },
  { name: "0006-one-live-token", up: oneLiveToken },
  { name: "0007-notices", up: notices },
  { name: "0008-agent-lists", up: agentLists },
  { name: "0009-agent-epochs", up: agentEpochs },
  { name: "0010-notice-numbers", up: noticeNumbers },
  { name: "0011-agent-nodes", up: agentNodes },
  { name: "0012-agent-lists-with-node", up: agentListsWithNode },
  { name: "0013-held-by-users", up: heldByUsers },
  { name: "0014-live-sessions", up: liveSessions },
];
