/**
 * What boards run, for their engines on this machine: made from the sources in a checkout, as files
 * in the published package.
 */
import { existsSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { pathToFileURL } from "node:url";
import type { Version } from "@blindrelay/protocol/crypto";

const SDK = new URL("../../", import.meta.url);
const XS_PLATFORMS: { readonly [platform: string]: string } = { linux: "lin", darwin: "mac" };

export type XsEngine =
  | { readonly kind: "found"; readonly path: string }
  | { readonly kind: "missing"; readonly reason: string };

/**
 * The XS engine of @agoric/xsnap: in a checkout our own build, which takes a minute once; otherwise
 * what the package's install script has built. `from`: a folder from which the package can be
 * resolved.
 */
export const findXs = async (from: string): Promise<XsEngine> => {
  const builder = new URL("build/xs-engine.ts", SDK);
  if (existsSync(builder)) {
    const { findXsEngine } = (await import(builder.href)) as { findXsEngine(): Promise<XsEngine> };
    return findXsEngine();
  }
  const platform = XS_PLATFORMS[process.platform];
  if (platform === undefined) {
    return { kind: "missing", reason: `@agoric/xsnap does not build on ${process.platform}` };
  }
  const folder = resolvePackage("@agoric/xsnap", [from, import.meta.dirname]);
  if (folder === null) return { kind: "missing", reason: "npm install @agoric/xsnap" };
  const path = join(folder, `xsnap-native/xsnap/build/bin/${platform}/release/xsnap-worker`);
  if (existsSync(path)) return { kind: "found", path };
  const reason = "npm rebuild @agoric/xsnap (its install script needs cc and make)";
  return { kind: "missing", reason };
};

/** The first of the folders that can resolve it decides. */
const resolvePackage = (name: string, folders: readonly string[]): string | null => {
  for (const folder of folders) {
    try {
      const from = createRequire(pathToFileURL(join(folder, "x.js")));
      return dirname(from.resolve(`${name}/package.json`));
    } catch {}
  }
  return null;
};

/**
 * What XsDevice evaluates: the Moddable build, and what stands in for the Moddable SDK. Afterwards
 * `programs.NAME` is a device program.
 */
export const xsScript = async (): Promise<string> => {
  const builder = new URL("build/engine-scripts.ts", SDK);
  if (!existsSync(builder)) return readFileSync(new URL("dist/xs/device.js", SDK), "utf8");
  const { buildDeviceScript } = (await import(builder.href)) as {
    buildDeviceScript(): Promise<string>;
  };
  return buildDeviceScript();
};

/** The SDK's file for an Espruino over WebSockets: a byte string. */
export const espruinoFile = async (version: Version): Promise<string> => {
  const builder = new URL("build/espruino.ts", SDK);
  if (!existsSync(builder)) {
    return readFileSync(new URL(`dist/espruino/blindrelay-${version}.bin`, SDK), "latin1");
  }
  const { buildEspruino } = (await import(builder.href)) as {
    buildEspruino(version: Version): { readonly stored: string };
  };
  return buildEspruino(version).stored;
};
