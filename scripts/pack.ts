/**
 * `npm run pack -- DIR`: the public packages as tarballs, as npm will have them, beside each a
 * software bill of materials (CycloneDX), and the command that installs them. A package is built
 * again only if something that goes into it has changed.
 */
import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import {
  existsSync,
  globSync,
  mkdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { join, resolve } from "node:path";

/** In the order in which they need each other. */
const PUBLIC = [
  "protocol",
  "agent-sdk",
  "client-sdk",
  "relay-server",
  "tools",
  "simulator",
] as const;
/** Their builds also read these. */
const SHARED = ["package.json", "pnpm-lock.yaml", "pnpm-workspace.yaml", "tsconfig*.json"];
/** The relay serves it. */
const CONSOLE = "console";
const MATERIALS = ".cdx.json";
const USAGE = 2;

const root = resolve(import.meta.dirname, "..");
const stampOf = (name: string): string => join(root, name, "node_modules", ".packed");

/** Of everything that a package is built from; `name` and all before it. */
function digestOf(name: (typeof PUBLIC)[number]): string {
  const folders = [...PUBLIC.slice(0, PUBLIC.indexOf(name) + 1), CONSOLE];
  const globs = folders.flatMap((folder) => [`${folder}/*.{json,ts}`, `${folder}/{src,build}/**`]);
  const hash = createHash("sha256");
  for (const file of globSync([...SHARED, ...globs], { cwd: root, withFileTypes: true })) {
    if (!file.isFile()) continue;
    const path = join(file.parentPath, file.name);
    hash.update(`${path}\n`).update(readFileSync(path));
  }
  return hash.digest("hex");
}

function run(command: string, args: readonly string[], cwd: string): void {
  const { status, error, stdout, stderr } = spawnSync(command, args, {
    cwd,
    encoding: "utf8",
    // npm and npx are batch files on Windows, which only a shell starts.
    shell: process.platform === "win32",
  });
  if (status === 0) return;
  console.error(`pack: ${command} ${args.join(" ")} failed\n${error ?? ""}${stdout}${stderr}`);
  process.exit(1);
}

/** When the compiler last wrote into a package's `dist`, which others may have had it do. */
function builtAt(name: string): number {
  const path = join(root, name, "dist", ".tsbuildinfo");
  return existsSync(path) ? statSync(path).mtimeMs : 0;
}

/** Without a file of a source that is there no more. */
function build(name: (typeof PUBLIC)[number]): void {
  const digest = digestOf(name);
  const stamp = stampOf(name);
  if (existsSync(stamp) && readFileSync(stamp, "utf8") === `${digest} ${builtAt(name)}`) return;
  console.error(`pack: building ${name}`);
  rmSync(join(root, name, "dist"), { recursive: true, force: true });
  run("npm", ["run", "--silent", "build"], join(root, name));
  writeFileSync(stamp, `${digest} ${builtAt(name)}`);
}

const readJson = (...path: string[]) => JSON.parse(readFileSync(join(root, ...path), "utf8"));

function pnpm(...args: string[]): void {
  const { packageManager } = readJson("package.json");
  const filters = PUBLIC.flatMap((name) => ["--filter", `./${name}`]);
  run("npx", ["-y", "--prefer-offline", packageManager, ...filters, ...args], root);
}

/** The path of a package's file in `target`, without its ending. */
const packed = (target: string, name: string): string =>
  join(target, `blindrelay-${name}-${readJson(name, "package.json").version}`);

function pack(target: string): string[] {
  pnpm("-r", "pack", "--config.ignore-scripts=true", "--pack-destination", target);
  return PUBLIC.map((name) => `${packed(target, name)}.tgz`);
}

/** What a package needs comes from the lock file; what its `dist` contains, from the notices. */
function listMaterials(target: string): void {
  const out = join(target, `%s-%v${MATERIALS}`);
  pnpm("sbom", "--sbom-format", "cyclonedx", "--prod", "--split", "--out", out);
  for (const name of PUBLIC) {
    const path = `${packed(target, name)}${MATERIALS}`;
    const bill: Bill = JSON.parse(readFileSync(path, "utf8"));
    const listed = new Set(bill.components.map((component) => component.purl));
    for (const file of globSync(`${name}/dist/**/NOTICES.md`, { cwd: root })) {
      for (const [, id = "", version = ""] of readFileSync(join(root, file), "utf8").matchAll(
        /^## (\S+) (\d\S*)$/gm,
      )) {
        const purl = `pkg:npm/${id.replace("@", "%40")}@${version}`;
        if (listed.has(purl)) continue;
        listed.add(purl);
        const [own = "", group] = id.split("/").reverse();
        const names = group === undefined ? { name: own } : { name: own, group };
        bill.components.push({ type: "library", ...names, version, purl, "bom-ref": purl });
      }
    }
    writeFileSync(path, `${JSON.stringify(bill, null, 2)}\n`);
  }
}

/** CycloneDX, as far as it is used here. */
interface Bill {
  readonly components: {
    readonly type: string;
    readonly group?: string;
    readonly name: string;
    readonly version: string;
    readonly purl: string;
    readonly "bom-ref": string;
  }[];
}

const [folder, ...rest] = process.argv.slice(2);
if (folder === undefined || folder.startsWith("-") || rest.length > 0) {
  console.error("pack: usage: npm run pack -- DIR");
  process.exit(USAGE);
}
const target = resolve(folder);
mkdirSync(target, { recursive: true });
for (const name of PUBLIC) build(name);
const tarballs = pack(target);
listMaterials(target);
console.log(`npm install ${tarballs.join(" ")}`);
