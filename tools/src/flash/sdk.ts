/**
 * Finds the files for boards, the output of agent-sdk's build. In a checkout the build runs if the
 * sources are newer; an installed package contains its output.
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
import {
  type SdkFile,
  type SdkVariant,
  type SdkWay,
  sdkFileName,
} from "@blindrelay/agent-sdk/board";
import { Failure } from "@blindrelay/protocol/command-line";

/** agent-sdk's folder; its entry point is one level below, in `src` or `dist`. */
export const SDK_ROOT = new URL("../", import.meta.resolve("@blindrelay/agent-sdk"));

const newestIn = (folder: URL): number =>
  readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .reduce((newest, { parentPath, name }) => {
      return Math.max(newest, statSync(join(parentPath, name)).mtimeMs);
    }, 0);

/** Whether a built file is newer than all its sources in a checkout. */
const isFresh = (built: URL): boolean => {
  if (!existsSync(built)) return false;
  const sources = ["src/", "build/", "../protocol/src/"].map((path) => new URL(path, SDK_ROOT));
  return statSync(built).mtimeMs > Math.max(...sources.map(newestIn));
};

/** Only to be faster next time, so a folder that cannot be written is not an error. */
const keepBuilt = (built: URL, content: string): void => {
  const fresh = `${fileURLToPath(built)}.${process.pid}.new`;
  try {
    mkdirSync(new URL(".", built), { recursive: true });
    writeFileSync(fresh, content, "latin1");
    renameSync(fresh, built);
  } catch {
    rmSync(fresh, { force: true });
  }
};

type Build = (variant: SdkVariant, push: boolean, rekey: boolean) => { readonly stored: string };

const BUILDS = {
  network: "buildEspruino",
  wifi: "buildEspruinoWifi",
  serial: "buildEspruinoSerial",
} as const;

/** The SDK's single file for an Espruino, a byte string. */
export const espruinoSdk = async (file: SdkFile): Promise<string> => {
  const { way, variant, push, rekey } = file;
  const name = sdkFileName(file);
  const built = new URL(`dist/espruino/${name}`, SDK_ROOT);
  const source = new URL("build/espruino.ts", SDK_ROOT);
  if (!existsSync(source) || isFresh(built)) {
    if (existsSync(built)) return readFileSync(built, "latin1");
    throw new Failure("fault", `the SDK's file is missing: ${fileURLToPath(built)}`);
  }
  const builds = (await import(source.href)) as {
    readonly [way in SdkWay as (typeof BUILDS)[way]]: Build;
  };
  const { stored } = builds[BUILDS[way]](variant, push, rekey);
  keepBuilt(built, stored);
  return stored;
};
