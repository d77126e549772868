/**
 * Which file replaces which: suites that record nonces, and modules that create or output secrets.
 * One table for vitest (by path) and for spawned processes (by URL).
 */

const STAND_INS = {
  "/protocol/src/suites/node.ts": "nonces/recorded-node-suite.ts",
  "/protocol/src/suites/noble.ts": "nonces/recorded-noble-suite.ts",
  "/relay-server/src/log.ts": "secrets/witnessed-log.ts",
  "/relay-server/src/control/master-key.ts": "secrets/witnessed-master-key.ts",
  "/relay-server/src/control/passwords.ts": "secrets/witnessed-passwords.ts",
  "/relay-server/src/control/totp.ts": "secrets/witnessed-totp.ts",
  "/tools/src/base/show-secret.ts": "secrets/shown-secret.ts",
  "/tools/src/base/wifi.ts": "secrets/witnessed-wifi.ts",
};

const HERE = new URL(".", import.meta.url);
const REPOSITORY = new URL("../../..", HERE);

/** By URL, because it is looked up for every import of every process that a test starts. */
const TARGETS: ReadonlyMap<string, string> = new Map(
  Object.entries(STAND_INS).map(([path, file]) => [
    new URL(`.${path}`, REPOSITORY).href,
    new URL(file, HERE).href,
  ]),
);

const nameOf = (path: string): string => path.replace(/^.*\/|\.ts$/g, "");
const NAMES = new Set(Object.keys(STAND_INS).map(nameOf));

/** Whether the last segment of an import is that of a replaced module: others need no resolving. */
export const mayHaveStandIn = (source: string): boolean => NAMES.has(nameOf(source));

/**
 * What to load instead of a resolved module, as a URL: the stand-in, or for the stand-in itself the
 * original module under its own name (vitest asks again by that name, without the importer). null:
 * no replacement. `importer`: URL of the importing module.
 */
export const standIn = (url: string, importer: string | undefined): string | null => {
  const target = TARGETS.get(url);
  if (target === undefined) return null;
  return importer === target ? `${url}?plain` : target;
};
