/**
 * Rotation of the master key (docs/keys-and-backups.md, "Rotating the master key"). The new key is
 * on disk before the store refers to it, the store changes in one transaction, and only then does
 * the new key replace the old one: a crash at any point leaves the old state, or a new one that the
 * next start completes.
 */
import { existsSync } from "node:fs";
import { join } from "node:path";
import { Failure } from "@blindrelay/protocol/command-line";
import { noteAct } from "../store/audit.ts";
import {
  currentTokens,
  dropUnreadable,
  grantGrace,
  replaceKeyCheck,
  rewrap,
  wrappedSecrets,
} from "../store/key-rotation.ts";
import type { Db, Store } from "../store/open.ts";
import { type Data, type DataOptions, openAlone } from "./data-dir.ts";
import { issuePersistent } from "./issue.ts";
import { adoptNextKey, holdNextKey, makeNextKey, masterKeyPath, parseKey } from "./master-key.ts";
import { Secrets } from "./secrets.ts";

const DAY_MS = 86_400_000;

interface RekeyOptions extends DataOptions {
  /** How long the old tokens stay valid; 0: they end at once. */
  readonly graceDays: number;
  /**
   * The new key as text, if keys are passed in variables; otherwise one is generated into a file.
   */
  readonly newMasterKey?: string | undefined;
}

export interface RekeyResult {
  /** New tokens made. */
  readonly accounts: number;
  readonly agents: number;
  /** TOTP secrets that were carried over, and recovery codes that could not be. */
  readonly totpSecrets: number;
  readonly recoveryCodesEnded: number;
  /** How long the old tokens are valid; null: they have ended. */
  readonly oldTokensUntilMs: number | null;
  /** Where the old key is now; null if keys are passed in variables. */
  readonly oldKey: string | null;
}

/**
 * Rotates the key of a store without a running relay. Rejects with a Failure; then nothing has
 * changed.
 */
export const rekey = async (options: RekeyOptions): Promise<RekeyResult> => {
  const { masterKey, newMasterKey } = options;
  if ((masterKey === undefined) !== (newMasterKey === undefined)) {
    throw new Failure(
      "usage",
      "if the key is in BLINDRELAY_MASTER_KEY, put the new one into BLINDRELAY_NEW_MASTER_KEY; if it is a file, set neither",
    );
  }
  const release = holdKeyFile(options);
  if (release === null) throw new Failure("refused", "another rotation runs on this data folder");
  try {
    // Completes an interrupted rotation.
    await using opened = await openAlone({ ...options, holdsNextKey: true });
    return await rotate(options, opened);
  } finally {
    release();
  }
};

/**
 * Before anything is read: another rotation may replace the key between two looks, and leave the
 * next one as the store's only key, which ours would replace. Null if one runs.
 */
const holdKeyFile = ({ data, newMasterKey }: RekeyOptions): (() => void) | null => {
  // A folder without a key, which is refused next, is left as it is.
  const isFile = newMasterKey === undefined && existsSync(masterKeyPath(data));
  return isFile ? holdNextKey(data) : () => undefined;
};

const rotate = async (
  { data, newMasterKey, graceDays }: RekeyOptions,
  { store, secrets, clock }: Data,
): Promise<RekeyResult> => {
  const nowMs = clock.nowMs();
  const until = graceDays === 0 ? null : nowMs + graceDays * DAY_MS;
  const fresh = new Secrets(newMasterKey === undefined ? makeNextKey(data) : given(newMasterKey));
  if (fresh.check() === secrets.check()) {
    throw new Failure("usage", "the new master key is the old one");
  }
  const changed = await rewrite(store, secrets, fresh, until, nowMs);
  const oldKey = newMasterKey === undefined ? adoptNextKey(data, nowMs) : null;
  return { ...changed, oldTokensUntilMs: until, oldKey: oldKey && join(data, oldKey) };
};

const given = (text: string): Uint8Array => {
  try {
    return parseKey(text);
  } catch (error) {
    throw new Failure("usage", `BLINDRELAY_NEW_MASTER_KEY: ${(error as Error).message}`, error);
  }
};

const rewrite = (
  store: Store,
  old: Secrets,
  fresh: Secrets,
  until: number | null,
  nowMs: number,
): Promise<Omit<RekeyResult, "oldTokensUntilMs" | "oldKey">> =>
  store.write(async (tx) => {
    if (!(await replaceKeyCheck(tx, old.check(), fresh.check()))) {
      throw new Failure("refused", "somebody else rotated the key just now");
    }
    const counts = await renewTokens(tx, fresh, until, nowMs);
    const totpSecrets = await carryOver(store, tx, old, fresh);
    const recoveryCodesEnded = await dropUnreadable(tx);
    const result = { ...counts, totpSecrets, recoveryCodesEnded };
    const act = { actorId: null, action: "relay.rekey", subject: "master-key" } as const;
    await noteAct(tx, nowMs, { ...act, detail: result });
    return result;
  });

const renewTokens = async (tx: Db, fresh: Secrets, until: number | null, nowMs: number) => {
  let accounts = 0;
  let agents = 0;
  for (const { hash, user_id: userId, agent_id: agentId } of await currentTokens(tx)) {
    await issuePersistent(tx, fresh, { userId, agentId }, nowMs);
    if (until !== null) await grantGrace(tx, hash, until);
    if (agentId === null) accounts += 1;
    else agents += 1;
  }
  return { accounts, agents };
};

/** Second factors stay the same: only their encryption is renewed. */
const carryOver = async (store: Store, tx: Db, old: Secrets, fresh: Secrets): Promise<number> => {
  let carried = 0;
  for (const { id, totp_secret, totp_pending } of await wrappedSecrets(tx)) {
    const again = (wrapped: string | null) =>
      wrapped === null
        ? null
        : fresh.wrap(
            id,
            store.decoded(() => old.unwrap(id, wrapped)),
          );
    if (totp_secret !== null) carried += 1;
    await rewrap(tx, { id, totp_secret: again(totp_secret), totp_pending: again(totp_pending) });
  }
  return carried;
};
