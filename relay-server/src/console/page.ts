/**
 * The live console as this relay serves it: a page, a style sheet and a script, all static. The
 * script is a bundle for browsers (`console/` in the repository). It seals calls, so nothing here
 * imports it: this process only serves its bytes and could not run it.
 */
import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

export interface ConsoleFile {
  readonly type: string;
  readonly read: () => Promise<Buffer>;
}

/** Where the published relay and its image have the files, the same for `src` and `dist`. */
const BUILT = fileURLToPath(new URL("../../dist/viewers/console/", import.meta.url));
/** Where their sources are in a checkout. */
const SOURCES = fileURLToPath(new URL("../../../console/", import.meta.url));
const BUNDLER = join(SOURCES, "build.ts");
const MAX_SCRIPT_BYTES = 4_000_000;

/** Nothing from elsewhere, nothing inline, and no text that becomes markup. */
export const CONSOLE_POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "connect-src 'self'",
  "img-src data:",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
  "require-trusted-types-for 'script'",
  "trusted-types 'none'",
].join("; ");

const HTML = "text/html; charset=utf-8";

/** A checkout's sources go before what a build may have left beside them long ago. */
const readConsoleFile = (name: string): Promise<Buffer> =>
  readFile(join(existsSync(BUNDLER) ? SOURCES : BUILT, name));

let bundling: Promise<Buffer> | undefined;

/** In a checkout by the bundler, once in a process's life and by its own process. */
const readScript = (): Promise<Buffer> => {
  if (!existsSync(BUNDLER)) return readConsoleFile("console.js");
  bundling ??= bundle().catch((error: unknown) => {
    bundling = undefined;
    throw error;
  });
  return bundling;
};

const bundle = async (): Promise<Buffer> => {
  const options = { encoding: "buffer", maxBuffer: MAX_SCRIPT_BYTES } as const;
  const { stdout } = await promisify(execFile)(process.execPath, [BUNDLER], options);
  return stdout;
};

export const CONSOLE_PAGE: ConsoleFile = { type: HTML, read: () => readConsoleFile("index.html") };

/** The page's own files, by name. */
export const CONSOLE_FILES: Readonly<Record<string, ConsoleFile>> = {
  "console.css": { type: "text/css; charset=utf-8", read: () => readConsoleFile("console.css") },
  "console.js": { type: "text/javascript; charset=utf-8", read: readScript },
};
