/**
 * Where the boards' files come from: agent-sdk's build. In a checkout it is run where the sources
 * are younger than its results, so that a board gets what the sources say; an installed package has
 * these.
 */
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { Failure } from "../failure.ts";

/** A place that boards do not run (agent-sdk/build/device-program.ts). */
export interface Refusal {
  readonly line: number;
  readonly column: number;
  readonly rule: string;
  readonly text: string;
  readonly fix: string | null;
}

/** agent-sdk's folder; its door lies one below, in `src` or `dist`. */
export const SDK_ROOT = new URL("../", import.meta.resolve("@blindrelay/agent-sdk"));

const newestIn = (folder: URL): number =>
  readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .reduce((newest, { parentPath, name }) => {
      return Math.max(newest, statSync(join(parentPath, name)).mtimeMs);
    }, 0);

/** Whether a built file is younger than everything in a checkout that it is made of. */
const isFresh = (built: URL): boolean => {
  if (!existsSync(built)) return false;
  const sources = ["src/", "build/", "../protocol/src/"].map((path) => new URL(path, SDK_ROOT));
  return statSync(built).mtimeMs > Math.max(...sources.map(newestIn));
};

/** Only to be quicker next time, so a folder that cannot be written is no failure. */
const keepBuilt = (built: URL, code: string): void => {
  const fresh = `${fileURLToPath(built)}.${process.pid}.new`;
  try {
    mkdirSync(new URL(".", built), { recursive: true });
    writeFileSync(fresh, code);
    renameSync(fresh, built);
  } catch {
    rmSync(fresh, { force: true });
  }
};

interface Builds {
  buildEspruino(): { readonly code: string };
  buildEspruinoSerial(): { readonly code: string };
}

/** The SDK's one file for Espruino; `overSerial`: the one for a board that hangs on a bridge. */
export const espruinoSdk = async (overSerial: boolean): Promise<string> => {
  const name = overSerial ? "blindrelay-serial.js" : "blindrelay.js";
  const built = new URL(`dist/espruino/${name}`, SDK_ROOT);
  const source = new URL("build/espruino.ts", SDK_ROOT);
  if (!existsSync(source) || isFresh(built)) {
    if (existsSync(built)) return readFileSync(built, "latin1");
    throw new Failure("fault", `the SDK's file is missing: ${fileURLToPath(built)}`);
  }
  const builds = (await import(source.href)) as Builds;
  const { code } = overSerial ? builds.buildEspruinoSerial() : builds.buildEspruino();
  keepBuilt(built, code);
  return code;
};

/** agent-sdk/build/device-program.ts. */
export interface Dialect {
  /** What boards would not run as written, and the names that only a board knows. */
  checkProgram(code: string): {
    readonly refused: readonly Refusal[];
    readonly asked: readonly string[];
  };
  /** What Espruino's `require` evaluates. */
  toModule(code: string): string;
  /** With decimal literals as Espruino reads them exactly; lines stay where they are. */
  exactDecimals(code: string): string;
}

export const loadDialect = async (): Promise<Dialect> => {
  const source = new URL("build/device-program.ts", SDK_ROOT);
  const place = existsSync(source) ? source : new URL("dist/build/dialect.js", SDK_ROOT);
  return (await import(place.href)) as Dialect;
};
