/**
 * `check`: finds everything that could keep a relay from starting or lose its data, with a fix for
 * each.
 */
import { X509Certificate } from "node:crypto";
import { existsSync, readFileSync, statfsSync, statSync } from "node:fs";
import { dirname, join } from "node:path";
import { messageOf } from "@blindrelay/protocol/command-line";
import { IS_WINDOWS, notAFile } from "@blindrelay/protocol/platform";
import { Kysely, sql } from "kysely";
import type { Clocks } from "../base/clock.ts";
import { diskProblem, networkProblem } from "../base/disk-problem.ts";
import { storePath } from "../control/data-dir.ts";
import { masterKeyPath, readMasterKey } from "../control/master-key.ts";
import { Secrets } from "../control/secrets.ts";
import type { Config } from "../settings/config.ts";
import { databaseClock } from "../store/clock.ts";
import { appliedTo, hasNoTable } from "../store/migrate.ts";
import { MIGRATIONS } from "../store/migrations/index.ts";
import { encodingProblem, PROMPT, postgresDialect } from "../store/postgres.ts";
import { readSetting } from "../store/settings.ts";
import { readOnlySqliteDialect } from "../store/sqlite.ts";
import { WAY_BACK } from "../store/sqlite-failures.ts";
import type { Tables } from "../store/tables.ts";
import { StoreDamaged, unavailability } from "../store/unavailable.ts";
import { isHotJournal } from "../store/verify.ts";

/** With less than this, or less than the store's size, a backup or a busy day may fill the disk. */
const MIN_FREE_BYTES = 256 * 1024 * 1024;
/** Certificates are usually renewed 30 days before they expire; half of that is late. */
const MIN_CERTIFICATE_DAYS = 14;
const DAY_MS = 86_400_000;
/** Permission bits. */
const OTHERS = 0o007;
const GROUP = 0o070;

export interface Finding {
  readonly what: string;
  readonly ok: boolean;
  /** What was found. */
  readonly detail: string;
  /** How to fix it; null if it is ok. */
  readonly fix: string | null;
}

type Settings = Pick<Config, "data" | "store" | "tlsCert">;

/** Checks everything and changes nothing. `masterKey`: the variable's text, if it is set. */
export const checkRelay = async (
  settings: Settings,
  masterKey: string | undefined,
  nowMs: number,
): Promise<Finding[]> => {
  const { data, store } = settings;
  const embedded = store === "sqlite";
  const startedMs = performance.now();
  const wallMs = () => nowMs + performance.now() - startedMs;
  const clocks = { wallMs, steadyMs: wallMs };
  const missing = embedded && !existsSync(storePath(data));
  return [
    ...(missing ? [noStore(data)] : await storeFindings(data, store, masterKey, clocks)),
    ...permissionFindings(data, embedded, masterKey),
    ...(existsSync(data) ? [disk(data, embedded)] : []),
    ...(settings.tlsCert === undefined ? [] : [certificate(settings.tlsCert, nowMs)]),
  ];
};

const good = (what: string, detail: string): Finding => ({ what, ok: true, detail, fix: null });
const bad = (what: string, detail: string, fix: string): Finding => ({
  what,
  ok: false,
  detail,
  fix,
});

const noStore = (data: string): Finding =>
  bad(
    "store",
    `there is none in ${data}`,
    `run blindrelay-server init --data ${data} --username NAME --password-stdin, or restore a backup to ${storePath(data)}`,
  );

const INTO_ANOTHER = "pg_dump what is in this one, and restore it into that";

const storeFindings = async (
  data: string,
  store: string,
  masterKey: string | undefined,
  machine: Clocks,
): Promise<Finding[]> => {
  const embedded = store === "sqlite";
  try {
    await using db = new Kysely<Tables>({
      dialect: embedded ? readOnlySqliteDialect(storePath(data)) : postgresDialect(store, PROMPT),
    });
    const integrity = embedded ? await sqliteIntegrity(db) : good("integrity", "PostgreSQL's own");
    const problem = embedded ? null : await encodingProblem(db as Kysely<unknown>);
    if (problem !== null) return [bad("encoding", problem, INTO_ANOTHER)];
    const clocks = embedded ? [] : [await clock(db, machine)];
    return [integrity, await schema(db), await key(db, data, masterKey), ...clocks];
  } catch (error) {
    return [embedded ? unreadable(data, error) : unreachable(error)];
  }
};

const unreachable = (error: unknown): Finding =>
  bad(
    "store",
    `cannot be read: ${messageOf(error)}`,
    "see that PostgreSQL runs and that the URL is right",
  );

/** It may be whole all the same: only a damaged one is replaced. */
const unreadable = (data: string, error: unknown): Finding => {
  const detail = `cannot be read: ${messageOf(error)}`;
  if (unavailability(error) instanceof StoreDamaged) {
    return bad("store", detail, WAY_BACK);
  }
  if (hasNoTable(error)) return unfinished(data);
  if (isHotJournal(error)) {
    const fix = "start the relay, or run the command again: either undoes what was not complete";
    return bad("store", "whole, but a command or a relay died while it wrote", fix);
  }
  const inTheWay = notAFile(storePath(data));
  if (inTheWay !== null) return bad("store", inTheWay.what, inTheWay.fix);
  const problem = diskProblem(dirname(storePath(data)));
  return bad("store", detail, problem?.fix ?? "see that this user may read and write its folder");
};

const unfinished = (data: string): Finding =>
  bad(
    "store",
    "init began to make it and did not end",
    `run blindrelay-server init --data ${data} --username NAME --password-stdin`,
  );

const sqliteIntegrity = async (db: Kysely<Tables>): Promise<Finding> => {
  const pages = await sql<{ integrity_check: string }>`pragma integrity_check`.execute(db);
  const links = await sql`pragma foreign_key_check`.execute(db);
  const problem = pages.rows[0]?.integrity_check ?? "no answer";
  if (problem === "ok" && links.rows.length === 0) return good("integrity", "every page and link");
  return bad(
    "integrity",
    problem === "ok" ? `${links.rows.length} rows point nowhere` : problem,
    WAY_BACK,
  );
};

const clock = async (db: Kysely<Tables>, machine: Clocks): Promise<Finding> => {
  const { aheadMs, isApart } = await databaseClock(db, machine);
  const detail = `${(aheadMs() / 1000).toFixed(1)} s ahead of PostgreSQL's`;
  return isApart()
    ? bad("clock", detail, "set both machines' clocks by NTP")
    : good("clock", detail);
};

const schema = async (db: Kysely<Tables>): Promise<Finding> => {
  const { missing, unknown, additions } = await appliedTo(db as Kysely<unknown>);
  if (unknown.length > 0) {
    return bad("schema", `has ${unknown.join(", ")}`, "run a newer blindrelay-server");
  }
  if (additions.length > 0) {
    return good("schema", `a newer version's, which added ${additions.join(", ")}`);
  }
  const newest = MIGRATIONS.filter((each) => !missing.includes(each)).at(-1)?.name ?? "nothing";
  if (missing.length === 0) return good("schema", newest);
  const breaking = missing.some(({ additive }) => !additive);
  return good(
    "schema",
    `${newest}; the next start applies ${missing.length} more, after which the version before ${breaking ? "does not start" : "still starts"}`,
  );
};

const key = async (
  db: Kysely<Tables>,
  data: string,
  masterKey: string | undefined,
): Promise<Finding> => {
  try {
    const expected = await readSetting(db, "master_key_check");
    if (expected === null) return unfinished(data);
    const check = new Secrets(readMasterKey(data, masterKey)).check();
    if (check === expected) {
      return good("master key", "the one that the store was made with");
    }
    return bad("master key", "not the one that the store was made with", "put the right one back");
  } catch (error) {
    return bad("master key", messageOf(error), "put back the copy that you keep apart");
  }
};

const permissionFindings = (
  data: string,
  embedded: boolean,
  masterKey: string | undefined,
): Finding[] => {
  if (privatePaths(data, embedded, masterKey).length === 0) return []; // there is nothing to read
  const open = openPaths(data, embedded, masterKey);
  if (open.others.length > 0) {
    return open.others.map((path) =>
      bad("permissions", `others may enter or read ${path}`, `chmod go= ${path}`),
    );
  }
  if (open.group.length === 0) return [good("permissions", "store and key are the owner's alone")];
  return [good("permissions", `besides the owner, a group may enter ${open.group.join(", ")}`)];
};

/**
 * Parts of store and key that others than the owner can access; a key passed as text has no file. A
 * group may be meant: a Kubernetes volume is for the group of the pod (fsGroup).
 */
export const openPaths = (
  data: string,
  embedded: boolean,
  masterKey: string | undefined,
): { readonly others: string[]; readonly group: string[] } => {
  const paths = IS_WINDOWS ? [] : privatePaths(data, embedded, masterKey);
  const opened = (bits: number) => paths.filter((path) => (statSync(path).mode & bits) !== 0);
  const others = opened(OTHERS);
  return { others, group: opened(GROUP).filter((path) => !others.includes(path)) };
};

const privatePaths = (data: string, embedded: boolean, masterKey: string | undefined): string[] =>
  [
    ...(embedded ? [dirname(storePath(data)), storePath(data)] : []),
    ...(masterKey === undefined ? [join(data, "key"), masterKeyPath(data)] : []),
  ].filter((path) => existsSync(path));

const freeSpace = (data: string, embedded: boolean): Finding => {
  const { blocks, bavail, bsize } = statfsSync(data);
  if (blocks === 0) return good("free space", "unknown: its file system does not tell");
  const free = bavail * bsize;
  const path = storePath(data);
  const used = embedded && existsSync(path) ? statSync(path).size : 0;
  const detail = `${megabytes(free)} free, the store has ${megabytes(used)}`;
  return free >= Math.max(MIN_FREE_BYTES, used)
    ? good("free space", detail)
    : bad("free space", detail, `make room on the disk of ${data}, or move it to a larger one`);
};

const disk = (data: string, embedded: boolean): Finding => {
  const folder = dirname(storePath(data));
  const problem = embedded ? (diskProblem(folder) ?? networkProblem(folder)) : null;
  return problem === null ? freeSpace(data, embedded) : bad("disk", problem.what, problem.fix);
};

const certificate = (path: string, nowMs: number): Finding => {
  try {
    const ends = new Date(new X509Certificate(readFileSync(path)).validTo).getTime();
    const days = Math.floor((ends - nowMs) / DAY_MS);
    return days >= MIN_CERTIFICATE_DAYS
      ? good("certificate", `good for ${days} days`)
      : bad("certificate", days < 0 ? "it has expired" : `expires in ${days} days`, "renew it");
  } catch (error) {
    return bad("certificate", messageOf(error), `put a PEM file at ${path}`);
  }
};

const megabytes = (bytes: number): string => `${Math.ceil(bytes / 1_048_576)} MiB`;
