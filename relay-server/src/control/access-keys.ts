/** Makes and removes access keys, and says what each may do. */
import { randomUUID } from "node:crypto";
import { type KeyScope, matchesKeySelector } from "@blindrelay/protocol/selector";
import {
  addKey,
  hasSelectors,
  type KeyRefusal,
  noteKeyUsed,
  removeKey,
} from "../store/access-keys.ts";
import { noteAct } from "../store/audit.ts";
import type { Db, Store } from "../store/open.ts";
import type { AccessKeyRow } from "../store/tables.ts";
import { changeStore, type Post } from "./change-store.ts";
import type { ControlContext } from "./context.ts";
import type { Credential, KeyFacts } from "./credentials.ts";
import { drawToken, hashToken } from "./secrets.ts";

interface NewKey {
  readonly name: string;
  readonly scopes: readonly KeyScope[];
  /** A selector by id and labels; null: all agents. */
  readonly where: string | null;
  /** Unix milliseconds; null: until it is removed. */
  readonly expiresAtMs: number | null;
}

/** Makes a key; its token is answered once. */
export const createKey = (
  context: ControlContext,
  userId: string,
  { name, scopes, where, expiresAtMs }: NewKey,
): Promise<{ row: AccessKeyRow; token: string } | KeyRefusal> => {
  const nowMs = context.nowMs();
  const token = drawToken("key");
  const key = {
    id: randomUUID(),
    hash: hashToken(token),
    user_id: userId,
    name,
    scopes: scopes.join(" "),
    selector: where,
    created_at: nowMs,
    expires_at: expiresAtMs,
  };
  return context.store.write(async (tx) => {
    const refusal = await addKey(tx, key);
    if (refusal !== null) return refusal;
    const detail = { name, scopes: key.scopes, ...(where === null ? {} : { where }) };
    const act = { actorId: userId, action: "key.create", subject: key.id, detail } as const;
    await noteAct(tx, nowMs, act);
    return { row: { ...key, last_used_at: null, removed_at: null }, token };
  });
};

/** Removes a key; its session tokens and links end. False if the user has none with that id. */
export const deleteKey = (context: ControlContext, userId: string, id: string): Promise<boolean> =>
  changeStore(context, userId, async (tx, nowMs, post) => {
    const removed = await removeKey(tx, userId, id, nowMs);
    if (removed === undefined) return false;
    const { name } = removed;
    const act = { actorId: userId, action: "key.delete", subject: id, detail: { name } } as const;
    await noteAct(tx, nowMs, act);
    await post("end_key", id);
    return true;
  });

/** Whether an agent exists for the holder of a credential. */
export const sees = (
  { key }: Pick<Credential, "key">,
  agent: { readonly agent_id: string; readonly labels: string },
): boolean => {
  const selector = key?.selector ?? null;
  if (selector === null) return true;
  const labels = JSON.parse(agent.labels) as Record<string, string>;
  return matchesKeySelector(selector, { agent_id: agent.agent_id, labels });
};

/**
 * Has every node look up an agent's labels, which changed or are new, if a key chooses by them.
 * Call it inside the transaction of the change.
 */
export const noteLabels = async (
  tx: Db,
  userId: string,
  agentId: string,
  post: Post,
): Promise<void> => {
  if (await hasSelectors(tx, userId)) await post("agent_labels", agentId);
};

const USE_NOTED_MS = 60_000;

/** Notes that a key was used, at most once a minute. */
export const noteUse = async (store: Store, key: KeyFacts, nowMs: number): Promise<void> => {
  if (nowMs - (key.lastUsedAtMs ?? 0) < USE_NOTED_MS) return;
  // A request that reads works on a store that cannot be written to.
  await store.write((tx) => noteKeyUsed(tx, key.id, nowMs)).catch(() => undefined);
};
