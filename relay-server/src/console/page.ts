/**
 * The live console as this relay serves it: a page, a style sheet, two scripts and files for
 * boards, all static. The scripts are bundles for browsers (`console/` in the repository). They
 * seal calls, so nothing here imports them: this process only serves their bytes and could not run
 * them.
 */
import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { onceByName } from "../base/once-by-name.ts";

export interface ConsoleFile {
  readonly type: string;
  readonly read: () => Promise<Buffer>;
}

/** Where the published relay and its image have the files, the same for `src` and `dist`. */
const BUILT = fileURLToPath(new URL("../../dist/viewers/console/", import.meta.url));
/** Where their sources are in a checkout. */
const SOURCES = fileURLToPath(new URL("../../../console/", import.meta.url));
const BUNDLER = join(SOURCES, "build.ts");
const MAX_MADE_BYTES = 4_000_000;

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

/** Of what browsers ask a person for, this page may ask for the port of a board. */
export const CONSOLE_PERMISSIONS = "serial=(self)";

const HTML = "text/html; charset=utf-8";

/** A checkout's sources go before what a build may have left beside them long ago. */
const isCheckout = (): boolean => existsSync(BUNDLER);

const readBuilt = onceByName((name) => readFile(join(BUILT, name)));

/** In a checkout anew each time, for whoever edits it. */
const readConsoleFile = (name: string): Promise<Buffer> =>
  isCheckout() ? readFile(join(SOURCES, name)) : readBuilt(name);

const make = onceByName(async (name) => {
  const options = { encoding: "buffer", maxBuffer: MAX_MADE_BYTES } as const;
  const args = ["--disable-warning=ExperimentalWarning", BUNDLER, "--print", name];
  const { stdout } = await promisify(execFile)(process.execPath, args, options);
  return stdout;
});

/** In a checkout by the bundler, in its own process. */
const readMade = (name: string): Promise<Buffer> => (isCheckout() ? make : readBuilt)(name);

export const CONSOLE_PAGE: ConsoleFile = { type: HTML, read: () => readConsoleFile("index.html") };

const SCRIPT = "text/javascript; charset=utf-8";

/** Of agent-sdk's files for boards, those that the page sets up: without those for bridges. */
const BOARD_FILES = ["", "wifi-"].flatMap((way) =>
  ["", "push-"].flatMap((push) =>
    ["1", "2", "any"].map((variant) => `blindrelay-${way}${push}${variant}.bin`),
  ),
);

const made = (name: string, type: string): [string, ConsoleFile] => [
  name,
  { type, read: () => readMade(name) },
];

/** The page's own files, by name. */
export const CONSOLE_FILES: Readonly<Record<string, ConsoleFile>> = {
  "console.css": { type: "text/css; charset=utf-8", read: () => readConsoleFile("console.css") },
  ...Object.fromEntries([
    ...["console.js", "board.js"].map((name) => made(name, SCRIPT)),
    ...BOARD_FILES.map((name) => made(name, "application/octet-stream")),
  ]),
};
