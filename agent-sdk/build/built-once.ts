/**
 * What tests build from sources in node_modules: once, into node_modules/.cache, and reused
 * afterwards. Of processes that want the same, one builds and the others wait.
 */
import {
  existsSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { join, resolve } from "node:path";
import { setTimeout as wait } from "node:timers/promises";

type Built =
  | { readonly kind: "found"; readonly path: string }
  | { readonly kind: "missing"; readonly reason: string };

/** A build takes up to a minute on a busy machine; a lock this old belongs to no process. */
const STALE_LOCK_MS = 600_000;
const POLL_MS = 500;

const cache = resolve(import.meta.dirname, "../../node_modules/.cache/blindrelay");

/** Its holder may have been killed. */
const isStale = (lock: string): boolean => {
  try {
    if (Date.now() - statSync(lock).mtimeMs > STALE_LOCK_MS) return true;
    process.kill(Number(readFileSync(lock, "utf8")), 0);
    return false;
  } catch (error) {
    // Otherwise the holder has just released it, or belongs to somebody else.
    return (error as NodeJS.ErrnoException).code === "ESRCH";
  }
};

/**
 * The file `path` in the folder `name` of the cache. `make` fills a folder under another name, or
 * returns why it cannot.
 */
export const builtOnce = async (
  name: string,
  path: string,
  make: (work: string) => string | null,
): Promise<Built> => {
  const folder = join(cache, name);
  const found: Built = { kind: "found", path: join(folder, path) };
  const lock = `${folder}.lock`;
  mkdirSync(cache, { recursive: true });
  while (!existsSync(found.path)) {
    try {
      writeFileSync(lock, String(process.pid), { flag: "wx" });
    } catch {
      if (isStale(lock)) rmSync(lock, { recursive: true, force: true });
      await wait(POLL_MS);
      continue;
    }
    const work = `${folder}.${process.pid}`;
    try {
      if (existsSync(found.path)) return found;
      const reason = make(work);
      if (reason !== null) return { kind: "missing", reason };
      rmSync(folder, { recursive: true, force: true });
      renameSync(work, folder);
    } finally {
      rmSync(work, { recursive: true, force: true });
      rmSync(lock, { recursive: true, force: true });
    }
  }
  return found;
};
