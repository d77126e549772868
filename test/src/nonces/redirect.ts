/**
 * Which file stands in for which: suites that record nonces, and what makes or says secrets
 * (../secrets). One table for vitest (by path) and for spawned processes
 * (by URL).
 */

const STAND_INS = {
  "/protocol/src/suites/node.ts": "recorded-node-suite.ts",
  "/protocol/src/suites/noble.ts": "recorded-noble-suite.ts",
  "/relay-server/src/log.ts": "../secrets/witnessed-log.ts",
  "/relay-server/src/control/master-key.ts": "../secrets/witnessed-master-key.ts",
  "/relay-server/src/control/passwords.ts": "../secrets/witnessed-passwords.ts",
  "/relay-server/src/control/totp.ts": "../secrets/witnessed-totp.ts",
};

const HERE = new URL(".", import.meta.url);
const REPOSITORY = new URL("../../..", HERE);

/**
 * What is to be loaded in the place of a resolved module, as a URL: the stand-in, or for the
 * stand-in itself the plain suite under a name of its own (vitest asks again by that name, without
 * saying who imports). null: nothing to do. `importer`: URL of the importing module.
 */
export const redirect = (url: string, importer: string | undefined): string | null => {
  for (const [suffix, file] of Object.entries(STAND_INS)) {
    if (url !== new URL(`.${suffix}`, REPOSITORY).href) continue;
    const target = new URL(file, HERE).href;
    return importer === target ? `${url}?plain` : target;
  }
  return null;
};
