/** A relay's data folder and store: created once by `init`, opened at every start. */
import { randomUUID } from "node:crypto";
import { existsSync } from "node:fs";
import { dirname, join } from "node:path";
import { Failure, messageOf } from "@blindrelay/protocol/command-line";
import { holdLock } from "@blindrelay/protocol/file-lock";
import { makeFolder } from "@blindrelay/protocol/file-owner";
import { type Clocks, systemClocks } from "../base/clock.ts";
import { withDiskProblem } from "../base/disk-problem.ts";
import { storeProblem } from "../store/address.ts";
import { databaseClock, machineClock, type StoreClock } from "../store/clock.ts";
import {
  isInitialised,
  openStore,
  type Store,
  type StoreLocation,
  StoreMissing,
} from "../store/open.ts";
import { readSetting, writeSetting } from "../store/settings.ts";
import { addUser } from "../store/users.ts";
import { verifyStore } from "../store/verify.ts";
import { userProblem } from "./account.ts";
import { issuePersistent } from "./issue.ts";
import {
  adoptNextKey,
  holdNextKey,
  MasterKeyProblem,
  MasterKeyUnreachable,
  makeMasterKey,
  readMasterKey,
  readNextKey,
} from "./master-key.ts";
import { hashPassword } from "./passwords.ts";
import { Secrets } from "./secrets.ts";
import { drawTotpSecret, otpauthUri } from "./totp.ts";

export interface DataOptions {
  /** The folder with `store/` and `key/`. */
  readonly data: string;
  /** "sqlite", the default, or a postgres:// URL. */
  readonly store?: string | undefined;
  /** Replaces the key file: 64 hexadecimal digits or base64. */
  readonly masterKey?: string | undefined;
  /** Replaces the machine's clocks. */
  readonly clocks?: Clocks;
  /** The caller rotates the key: it has called `holdNextKey`. */
  readonly holdsNextKey?: boolean;
}

export interface InitOptions extends DataOptions {
  readonly username: string;
  readonly password: string;
  /** Whether users must use TOTP; the first admin is then enrolled at once. */
  readonly totp: boolean;
}

export interface InitResult {
  readonly username: string;
  /** Base32; null without TOTP. */
  readonly totpSecret: string | null;
  readonly otpauthUri: string | null;
}

/** Creates store, master key and first admin. Rejects with a Failure; refuses if a store exists. */
export const initStore = async (options: InitOptions): Promise<InitResult> => {
  const { username, password } = options;
  const problem = userProblem(username, password);
  if (problem !== null) throw new Failure("usage", problem);
  if (await alreadyMade(options)) throw storeExists(options);
  makeStoreFolder(options.data);
  const secrets = withKey(() => makeMasterKey(options.data, options.masterKey));
  const store = await open(options, true);
  try {
    // Checked again under the lock: two processes may create the same store at once.
    if ((await readSetting(store.db, "master_key_check")) !== null) throw storeExists(options);
    const id = randomUUID();
    const nowMs = Date.now();
    const totpSecret = options.totp ? drawTotpSecret() : null;
    const passwordHash = await hashPassword(password);
    await store.write(async (tx) => {
      await writeSetting(tx, "master_key_check", secrets.check());
      await writeSetting(tx, "totp", options.totp ? "required" : "optional");
      await addUser(tx, {
        id,
        username,
        role: "admin",
        password_hash: passwordHash,
        totp_secret: totpSecret === null ? null : secrets.wrap(id, totpSecret),
        totp_confirmed: totpSecret === null ? 0 : 1,
        created_at: nowMs,
      });
      await issuePersistent(tx, secrets, { userId: id, agentId: null }, nowMs);
    });
    const uri = totpSecret === null ? null : otpauthUri(username, totpSecret);
    return { username, totpSecret, otpauthUri: uri };
  } finally {
    await store.close();
  }
};

/** Checked before anything is written: a new key is useless for a store of another key. */
const alreadyMade = async (options: DataOptions): Promise<boolean> => {
  try {
    return await isInitialised(locate(options));
  } catch (error) {
    throw unopened(options, error);
  }
};

const storeExists = ({ data, store = "sqlite" }: DataOptions): Failure =>
  new Failure(
    "refused",
    store === "sqlite"
      ? `there is a store already: choose another folder than ${data}, or start this one`
      : "there is a store already in this database: to run another relay on it, copy key/master.key from the first relay's data folder and run start instead of init; to create a separate store, specify another database",
  );

/** Ends with its store. */
export interface Data extends AsyncDisposable {
  readonly store: Store;
  readonly secrets: Secrets;
  readonly totpRequired: boolean;
  readonly clock: StoreClock;
}

/**
 * Opens what `init` created. Rejects with a Failure if there is none, or if the master key is
 * wrong.
 */
export const openData = async (options: DataOptions): Promise<Data> => {
  const store = await open(options, false);
  try {
    const check = await readSetting(store.db, "master_key_check");
    if (check === null) throw noStore(options.data);
    const secrets = rightKey(options, check);
    if (secrets === null) {
      throw new Failure(
        "refused",
        "this master key is not the one that the store was made with: restore the right one, or, if it is right, the newest backup of the store",
      );
    }
    const totpRequired = (await readSetting(store.db, "totp")) !== "optional";
    const clocks = options.clocks ?? systemClocks();
    const isEmbedded = locate(options).engine === "sqlite";
    const clock = isEmbedded ? machineClock(clocks) : await databaseClock(store.db, clocks);
    return { store, secrets, totpRequired, clock, [Symbol.asyncDispose]: store.close };
  } catch (error) {
    await store.close();
    throw error;
  }
};

/**
 * The key that the store was created with; null for a wrong one. Completes an interrupted rotation.
 */
const rightKey = (options: DataOptions, check: string): Secrets | null => {
  const { data, masterKey } = options;
  const secrets = withKey(() => readMasterKey(data, masterKey));
  if (secrets.check() === check) return secrets;
  const next = masterKey === undefined ? readNextKey(data) : null;
  if (next === null || new Secrets(next).check() !== check) return null;
  // A rotation that still runs is about to do it.
  const release = options.holdsNextKey === true ? () => undefined : holdNextKey(data);
  try {
    if (release !== null) adoptNextKey(data, Date.now());
  } finally {
    release?.();
  }
  return new Secrets(next);
};

/** With the cause, where the engine does not know it. */
const unopened = (options: DataOptions, error: unknown): Failure => {
  const location = locate(options);
  const cause =
    location.engine === "sqlite"
      ? withDiskProblem(error, dirname(location.path))
      : messageOf(error);
  return new Failure("unreachable", `cannot open the store: ${cause}`, error);
};

const makeStoreFolder = (data: string): void => {
  try {
    makeFolder(join(data, "store"));
  } catch (error) {
    throw new Failure(
      "unreachable",
      `cannot make the folder ${data}: ${withDiskProblem(error, data)}; choose one you may write`,
      error,
    );
  }
};

const withKey = (read: () => Uint8Array): Secrets => {
  try {
    return new Secrets(read());
  } catch (error) {
    if (error instanceof MasterKeyProblem) throw new Failure("refused", error.message, error);
    if (error instanceof MasterKeyUnreachable) {
      throw new Failure("unreachable", error.message, error);
    }
    throw error;
  }
};

const open = async (options: DataOptions, create: boolean): Promise<Store> => {
  try {
    return await openStore(locate(options), create);
  } catch (error) {
    if (error instanceof StoreMissing) throw noStore(options.data);
    throw unopened(options, error);
  }
};

/**
 * Opens the store for a relay. Also rejects with a Failure if another relay runs on a SQLite store;
 * PostgreSQL allows several. Commands use `openData`, also while a relay runs.
 */
export const openAlone = async (options: DataOptions): Promise<Data> => {
  await verify(options);
  const data = await openData(options);
  const { store } = data;
  try {
    const release = takeLock(options);
    const close = async () => {
      await store.close();
      release?.();
    };
    return { ...data, store: { ...store, close }, [Symbol.asyncDispose]: close };
  } catch (error) {
    await store.close();
    throw error;
  }
};

/** A damaged store is not opened: most of it might still answer. */
const verify = async (options: DataOptions): Promise<void> => {
  const location = locate(options);
  if (location.engine === "postgres" || !existsSync(location.path)) return;
  try {
    verifyStore(location.path);
  } catch (error) {
    throw unopened(options, error);
  }
};

/**
 * One relay per SQLite store: presence, lockouts and takeovers are in the memory of one process, so
 * a second one would split them. Commands that work on the store itself are not affected.
 */
const takeLock = (options: DataOptions): (() => void) | null => {
  const location = locate(options);
  if (location.engine === "postgres") return null;
  let release: (() => void) | null;
  try {
    release = holdLock(join(dirname(location.path), "running"));
  } catch (error) {
    const cause = messageOf(error);
    throw new Failure("unreachable", `cannot lock the store of ${options.data}: ${cause}`, error);
  }
  if (release !== null) return release;
  throw new Failure(
    "unreachable",
    `another relay runs on ${options.data}: stop it first, or start this one with another --data`,
  );
};

export const storePath = (data: string): string => join(data, "store", "relay.sqlite");

const locate = ({ data, store = "sqlite" }: DataOptions): StoreLocation => {
  const problem = storeProblem(store);
  if (problem !== null) throw new Failure("usage", problem);
  return store === "sqlite"
    ? { engine: "sqlite", path: storePath(data) }
    : { engine: "postgres", url: store };
};

const noStore = (data: string): Failure =>
  new Failure(
    "unreachable",
    `no store in ${data}: run blindrelay-server init --data ${data} --username NAME --password-stdin`,
  );
