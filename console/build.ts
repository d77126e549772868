/**
 * Makes what a relay serves as the console. `node build.ts FOLDER` writes all of it, with the
 * licences of bundled packages; `node build.ts --print NAME` writes one made file to standard
 * output, as a relay in a checkout requires.
 */
import { cpSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { BOARD_FILES } from "@blindrelay/agent-sdk/build/files";
import { build } from "esbuild";

const here = import.meta.dirname;

/** The page's script, and the one that it loads when somebody adds a device. */
const SCRIPTS: { readonly [name: string]: string } = {
  "console.js": "src/main.tsx",
  "board.js": "src/board/main.ts",
};

/** What a board without a bridge may need: the page sets up no other. */
const boardFiles = BOARD_FILES.filter(({ way, rekey }) => way !== "serial" && !rekey);

/** Files that were bundled. */
const inputs = new Set<string>();

const script = async (name: string): Promise<Uint8Array> => {
  const { outputFiles, metafile } = await build({
    entryPoints: [join(here, SCRIPTS[name] as string)],
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
  for (const path of Object.keys(metafile.inputs)) inputs.add(path);
  return outputFiles[0]?.contents ?? new Uint8Array();
};

const make = async (name: string): Promise<Uint8Array> => {
  if (Object.hasOwn(SCRIPTS, name)) return script(name);
  const file = boardFiles.find((one) => one.name === name);
  if (file === undefined) throw new Error(`nothing makes ${name}`);
  return Buffer.from(file.build().stored, "latin1");
};

/** Folders of the npm packages in the bundles. */
const bundled = (): string[] => {
  const folders = [...inputs].flatMap(
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
  return `${["# Third-party code in the scripts", ...parts].join("\n\n")}\n`;
};

const [folder, name = ""] = process.argv.slice(2);
if (folder === undefined) throw new Error("usage: node build.ts FOLDER, or --print NAME");
if (folder === "--print") {
  process.stdout.write(await make(name));
} else {
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  for (const made of [...Object.keys(SCRIPTS), ...boardFiles.map((file) => file.name)]) {
    writeFileSync(join(folder, made), await make(made));
  }
  writeFileSync(join(folder, "NOTICES.md"), notices());
  for (const name of ["index.html", "console.css"]) cpSync(join(here, name), join(folder, name));
}
