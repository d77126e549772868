/**
 * What the published package contains in addition to its modules and artefacts:
 *
 *   dist/build/dialect.js   how `blindrelay check` and `flash` handle device programs
 *                           (device-program.ts), in one file, so that an agent on Node does not
 *                           install a parser
 *   dist/xs/device.js       what `@blindrelay/agent-sdk/engines` runs on a bare XS engine
 *   dist/NOTICES.md         licences of third-party code in that file and in the Moddable modules
 */
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { build } from "esbuild";
import { buildDeviceScript } from "./engine-scripts.ts";

const sdk = resolve(import.meta.dirname, "..");
const DIALECT = join(sdk, "build/device-program.ts");
/** Entries of xs.ts that bundle other people's code. */
const MODDABLE = [
  "src/moddable/core.ts",
  "src/moddable/suite.ts",
  "src/moddable/program-forward.ts",
  "src/moddable/program-rekey.ts",
].map((path) => join(sdk, path));

const bundle = async (entry: string, outfile: string, write: boolean): Promise<string[]> => {
  const { metafile } = await build({
    entryPoints: [entry],
    outfile,
    write,
    bundle: true,
    metafile: true,
    format: "esm",
    platform: "neutral",
    mainFields: ["module", "main"],
    target: "node20",
    minify: true,
    external: ["timer", "time", "blindrelay/*"],
    logLevel: "error",
  });
  return Object.keys(metafile.inputs).map((path) => resolve(path));
};

/** The package folder in node_modules that contains a file. */
const packageOf = (file: string): string[] => {
  const found = /^.*\/node_modules\/(?:@[^/]+\/)?[^/]+(?=\/)/.exec(file);
  return found === null ? [] : [found[0]];
};

const noticeOf = (folder: string): string => {
  const { name, version } = JSON.parse(readFileSync(join(folder, "package.json"), "utf8"));
  const licence = readdirSync(folder).find((file) => /^licen[cs]e/i.test(file));
  if (licence === undefined) throw new Error(`${name} has no licence file to ship`);
  return `## ${name} ${version}\n\n${readFileSync(join(folder, licence), "utf8").trim()}\n`;
};

const dialect = join(sdk, "dist/build/dialect.js");
const inputs = await bundle(DIALECT, dialect, true);
for (const entry of MODDABLE) inputs.push(...(await bundle(entry, "unused.js", false)));
const folders = [...new Set(inputs.flatMap(packageOf))].sort();
const notices = ["# Other people's code in this package\n", ...folders.map(noticeOf)].join("\n");
writeFileSync(join(sdk, "dist/NOTICES.md"), notices);
mkdirSync(join(sdk, "dist/xs"), { recursive: true });
writeFileSync(join(sdk, "dist/xs/device.js"), await buildDeviceScript());
console.log(`${dialect}, and notices of ${folders.length} packages`);
