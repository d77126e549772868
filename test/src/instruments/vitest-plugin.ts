/**
 * Replaces modules by their stand-ins in every unit test and everything that it imports, by any
 * specifier (package or relative path). Used in vitest.config.ts.
 */
import { fileURLToPath, pathToFileURL } from "node:url";
import type { Plugin } from "vite";
import { mayHaveStandIn, standIn } from "./stand-ins.ts";

export const loadStandIns = (): Plugin => ({
  name: "blindrelay:stand-ins",
  enforce: "pre",
  async resolveId(source, importer, options) {
    if (!mayHaveStandIn(source)) return null;
    const resolved = await this.resolve(source, importer, { ...options, skipSelf: true });
    if (resolved === null || resolved.external) return resolved;
    const from = importer === undefined ? undefined : pathToFileURL(importer).href;
    const instead = standIn(pathToFileURL(resolved.id).href, from);
    if (instead === null) return resolved;
    const url = new URL(instead);
    return fileURLToPath(url) + url.search;
  },
});
