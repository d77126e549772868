/**
 * Bundles the console. `node build.ts FOLDER` writes everything that a relay serves, with the
 * licences of bundled packages; without a folder, only the script is written, to standard output,
 * as a relay in a checkout requires.
 */
import { cpSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { build } from "esbuild";

const here = import.meta.dirname;

const { outputFiles, metafile } = await build({
  entryPoints: [join(here, "src/main.tsx")],
  bundle: true,
  // Preact's own function: its other runtime for JSX would only add to the page.
  jsx: "transform",
  jsxFactory: "h",
  jsxFragment: "Fragment",
  inject: [join(here, "src/jsx.ts")],
  tsconfigRaw: {},
  write: false,
  metafile: true,
  absWorkingDir: here,
  format: "esm",
  target: "es2022",
  charset: "ascii",
  minify: true,
  legalComments: "none",
});
const script = outputFiles[0]?.contents ?? new Uint8Array();

/** Folders of the npm packages in the bundle. */
const bundled = (): string[] => {
  const folders = Object.keys(metafile.inputs).flatMap(
    (path) => /^.*node_modules\/(?:@[^/]+\/)?[^/]+(?=\/)/.exec(path)?.[0] ?? [],
  );
  return [...new Set(folders)].sort();
};

const notices = (): string => {
  const parts = bundled().map((folder) => {
    const read = (file: string): string => readFileSync(resolve(here, folder, file), "utf8");
    const { name, version } = JSON.parse(read("package.json"));
    return `## ${name} ${version}\n\n${read("LICENSE").trim()}`;
  });
  return `${["# Third-party code in console.js", ...parts].join("\n\n")}\n`;
};

const folder = process.argv[2];
if (folder === undefined) {
  process.stdout.write(script);
} else {
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, "console.js"), script);
  writeFileSync(join(folder, "NOTICES.md"), notices());
  for (const name of ["index.html", "console.css"]) cpSync(join(here, name), join(folder, name));
}
