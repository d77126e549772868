/**
 * Puts the recorded suites in the place of the plain ones for every test and everything a test
 * imports, however it names them (by package or by a relative path). Named in vitest.config.ts.
 */
import { fileURLToPath, pathToFileURL } from "node:url";
import type { Plugin } from "vite";
import { redirect } from "./redirect.ts";

export const recordNonces = (): Plugin => ({
  name: "blindrelay:record-nonces",
  enforce: "pre",
  async resolveId(source, importer, options) {
    if (!/suites\/|\/(node|noble|log|master-key|passwords|totp)\.ts$/.test(source)) return null;
    const resolved = await this.resolve(source, importer, { ...options, skipSelf: true });
    if (resolved === null || resolved.external) return resolved;
    const from = importer === undefined ? undefined : pathToFileURL(importer).href;
    const instead = redirect(pathToFileURL(resolved.id).href, from);
    if (instead === null) return resolved;
    const url = new URL(instead);
    return fileURLToPath(url) + url.search;
  },
});
