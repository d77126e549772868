/**
 * The two programs that show the API in a browser. Each is a bundle from a package with many
 * dependencies, so the published relay contains a copy (`build/viewers.ts`) instead of installing
 * the packages; a checkout reads them from node_modules.
 */
import { existsSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

/** The folder of the copies, the same for `src` and `dist`. */
export const COPIES = fileURLToPath(new URL("../../../dist/viewers/", import.meta.url));

/** By package: the files that are served, and their licences. */
export const VIEWERS = {
  "swagger-ui-dist": {
    files: ["swagger-ui.css", "swagger-ui-bundle.js"],
    licences: ["LICENSE", "NOTICE", "swagger-ui-bundle.js.LICENSE.txt"],
  },
  redoc: {
    files: ["bundles/redoc.standalone.js"],
    licences: ["LICENSE", "bundles/redoc.standalone.js.LICENSE.txt"],
  },
} as const;

export type Viewer = keyof typeof VIEWERS;

const require = createRequire(import.meta.url);

/** A package's folder in node_modules. Throws if it is not installed. */
export const installedFolder = (viewer: Viewer): string =>
  dirname(require.resolve(`${viewer}/package.json`));

export const readViewerFile = (viewer: Viewer, path: string): Promise<Buffer> => {
  const copy = join(COPIES, viewer);
  return readFile(join(existsSync(copy) ? copy : installedFolder(viewer), path));
};
