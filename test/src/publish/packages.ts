/**
 * The packages as users get them: packed from a copy of the workspace by `npm run pack`, unpacked
 * into a folder from which the workspace cannot be reached.
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import {
  copyFileSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  symlinkSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { basename, dirname, join, resolve } from "node:path";
import { text } from "node:stream/consumers";
import { PACKAGES as BUNDLED } from "../instruments/child-environment.ts";

export const PACKAGES = [
  "protocol",
  "agent-sdk",
  "client-sdk",
  "relay-server",
  "tools",
  "simulator",
] as const;
export type Name = (typeof PACKAGES)[number];
/**
 * The packages of a program that is only an agent or a client: the libraries, without their
 * optional peers.
 */
const SDKS: readonly Name[] = ["protocol", "agent-sdk", "client-sdk"];

export const WORKSPACE = resolve(import.meta.dirname, "../../..");
const WORKSPACE_FILES = [
  ...["package.json", "pnpm-lock.yaml", "pnpm-workspace.yaml", "LICENSE"],
  ...["tsconfig.json", "tsconfig.base.json", "tsconfig.build.json", "scripts/pack.ts"],
];
const SCOPE = "@blindrelay";
/** `dist` of a package that was packed before is taken along, with the note of what it is from. */
const PACKED = "node_modules/.packed";

export interface Manifest {
  readonly name: string;
  readonly version: string;
  readonly engines: { readonly node: string };
  readonly bin?: { readonly [command: string]: string };
  readonly exports?: unknown;
  readonly dependencies?: { readonly [name: string]: string };
  readonly optionalDependencies?: { readonly [name: string]: string };
  readonly peerDependencies?: { readonly [name: string]: string };
}

export interface Needed {
  /** As `name@version`. */
  readonly always: ReadonlySet<string>;
  /** Names of what some have: for other platforms, optional peers, and what these need. */
  readonly sometimes: ReadonlySet<string>;
}

/** Runs a program to its end; rejects with its output if it fails. */
export const run = async (
  command: string,
  args: readonly string[],
  cwd: string,
  env: NodeJS.ProcessEnv = process.env,
): Promise<string> => {
  // Without the recording of nonces: it is for our sources, not for npm's.
  const child = spawn(command, args, {
    cwd,
    env: { ...env, NODE_OPTIONS: "" },
    stdio: ["ignore", "pipe", "pipe"],
  });
  const ended = once(child, "close");
  const [out, err] = await Promise.all([text(child.stdout), text(child.stderr)]);
  const [code] = await ended;
  if (code !== 0) throw new Error(`${command} ${args.join(" ")}: ${code}\n${out}${err}`);
  return out;
};

const readManifest = (folder: string): Manifest =>
  JSON.parse(readFileSync(join(folder, "package.json"), "utf8"));

/**
 * Links the contents of a node_modules folder, scopes included; those in `instead` link elsewhere.
 */
const linkModules = (from: string, to: string, instead: (name: string) => string | null): void => {
  mkdirSync(to, { recursive: true });
  for (const entry of readdirSync(from)) {
    if (entry.startsWith(".")) continue;
    const path = join(from, entry);
    if (!entry.startsWith("@")) {
      symlinkSync(realpathSync(path), join(to, entry));
      continue;
    }
    mkdirSync(join(to, entry));
    for (const name of readdirSync(path)) {
      const target = instead(`${entry}/${name}`) ?? realpathSync(join(path, name));
      symlinkSync(target, join(to, entry, name));
    }
  }
};

/** A copy, because packing may remove `dist` first, and other tests use the workspace's. */
const copyWorkspace = (copy: string): void => {
  mkdirSync(join(copy, "scripts"));
  for (const file of WORKSPACE_FILES) copyFileSync(join(WORKSPACE, file), join(copy, file));
  symlinkSync(join(WORKSPACE, "node_modules"), join(copy, "node_modules"));
  // The relay includes a bundle of the console.
  for (const name of [...PACKAGES, "console"]) {
    const isPacked = existsSync(join(WORKSPACE, name, PACKED));
    const leftOut = ["node_modules", ...(isPacked ? [] : ["dist"])];
    cpSync(join(WORKSPACE, name), join(copy, name), {
      recursive: true,
      preserveTimestamps: true,
      filter: (path) => !leftOut.includes(basename(path)),
    });
    linkModules(join(WORKSPACE, name, "node_modules"), join(copy, name, "node_modules"), (found) =>
      dirname(found) === SCOPE ? join(copy, basename(found)) : null,
    );
    if (isPacked) copyFileSync(join(WORKSPACE, name, PACKED), join(copy, name, PACKED));
  }
};

export class Packages {
  readonly folder = mkdtempSync(join(tmpdir(), "blindrelay-publish-"));
  /** The copy that was packed. */
  readonly workspace = join(this.folder, "workspace");
  /** The folder of the tarballs. */
  readonly packs = join(this.folder, "packs");
  /** What packing said. */
  installLine = "";
  /** The folder with all of them installed together. */
  readonly consumer = join(this.folder, "consumer");
  /** The folder with only the libraries. */
  readonly sdks = join(this.folder, "sdks");

  /** Packs, and installs as `npm install ./*.tgz` would, but without the registry. */
  async make(): Promise<void> {
    // What is published loads the packages that it needs as they are.
    delete process.env[BUNDLED];
    mkdirSync(this.workspace);
    copyWorkspace(this.workspace);
    const packed = await run(process.execPath, ["scripts/pack.ts", this.packs], this.workspace);
    this.installLine = packed.trim();
    for (const name of PACKAGES) await this.install(name, this.consumer);
    for (const name of SDKS) await this.install(name, this.sdks);
    for (const name of PACKAGES) this.linkPeers(name, this.consumer);
    for (const name of SDKS) this.linkPeers(name, this.sdks);
  }

  path(name: Name, ...parts: string[]): string {
    return join(this.consumer, "node_modules", SCOPE, name, ...parts);
  }

  manifest(name: Name): Manifest {
    return readManifest(this.path(name));
  }

  /** The file of a package's command. */
  command(name: Name): string {
    const [file] = Object.values(this.manifest(name).bin ?? {});
    if (file === undefined) throw new Error(`${name} has no command`);
    return this.path(name, file);
  }

  /** Paths of all files in the tarball. */
  async files(name: Name): Promise<string[]> {
    const list = await run("tar", ["-tzf", this.tarball(name)], this.folder);
    return list
      .trim()
      .split("\n")
      .map((path) => path.replace(/^package\//, ""));
  }

  tarball(name: Name): string {
    const found = readdirSync(this.packs).find(
      (file) => file.startsWith(`blindrelay-${name}-`) && file.endsWith(".tgz"),
    );
    if (found === undefined) throw new Error(`${name} was not packed`);
    return join(this.packs, found);
  }

  /** Its bill of materials, as `name@version`, of itself and of its components. */
  materials(name: Name): { readonly of: string; readonly listed: ReadonlySet<string> } {
    const bill = JSON.parse(readFileSync(this.tarball(name).replace(/tgz$/, "cdx.json"), "utf8"));
    const textOf = ({ group, name: own, version }: { [field: string]: string }): string =>
      `${group === undefined ? own : `${group}/${own}`}@${version}`;
    return { of: textOf(bill.metadata.component), listed: new Set(bill.components.map(textOf)) };
  }

  /** What is installed for a package, followed from its package.json through all that it needs. */
  needed(name: Name): Needed {
    const always = new Set<string>();
    const sometimes = new Set<string>();
    const visit = (folder: string, isPeer: boolean): void => {
      const { dependencies, optionalDependencies = {}, peerDependencies } = readManifest(folder);
      const sure = Object.keys({ ...dependencies, ...optionalDependencies });
      for (const dependency of new Set([...sure, ...Object.keys(peerDependencies ?? {})])) {
        const found =
          dirname(dependency) === SCOPE
            ? this.path(basename(dependency) as Name)
            : installedFrom(folder, dependency);
        const isSure = !isPeer && sure.includes(dependency);
        if (!isSure || (found === null && dependency in optionalDependencies)) {
          const isNew = !sometimes.has(dependency);
          sometimes.add(dependency);
          if (isNew && found !== null) visit(found, true);
          continue;
        }
        if (found === null) throw new Error(`${folder}: no ${dependency}`);
        const { name: own, version } = readManifest(found);
        if (always.has(`${own}@${version}`)) continue;
        always.add(`${own}@${version}`);
        visit(found, false);
      }
    };
    visit(this.path(name), false);
    return { always, sometimes };
  }

  private async install(name: Name, consumer: string): Promise<void> {
    const folder = join(consumer, "node_modules", SCOPE, name);
    mkdirSync(folder, { recursive: true });
    await run("tar", ["-xzf", this.tarball(name), "--strip-components=1"], folder);
    // Only what the package itself declares, so that a missing declaration is found.
    const { dependencies, optionalDependencies } = readManifest(folder);
    for (const dependency of Object.keys({ ...dependencies, ...optionalDependencies })) {
      if (dirname(dependency) !== SCOPE) link(name, dependency, folder);
    }
  }

  /** Peer dependencies come from the folder that installs, here as npm would hoist them. */
  private linkPeers(name: Name, folder: string): void {
    for (const peer of Object.keys(this.manifest(name).peerDependencies ?? {})) {
      link(name, peer, folder);
    }
  }
}

/** Where a package's module finds a dependency; null: nowhere. */
const installedFrom = (folder: string, dependency: string): string | null => {
  const path = join(folder, "node_modules", dependency);
  if (existsSync(path)) return realpathSync(path);
  return dirname(folder) === folder ? null : installedFrom(dirname(folder), dependency);
};

/** Links a dependency of the workspace's package `name` into a folder's node_modules. */
const link = (name: Name, dependency: string, folder: string): void => {
  const path = join(folder, "node_modules", dependency);
  mkdirSync(dirname(path), { recursive: true });
  symlinkSync(realpathSync(join(WORKSPACE, name, "node_modules", dependency)), path);
};

/** A Node outside the workspace: the one that ran `npm test`. Null if there is none. */
export const nodeOfMachine = (): string | null => {
  const folders = (process.env.PATH ?? "").split(":");
  const outside = folders.filter((folder) => folder !== "" && !folder.includes("node_modules"));
  return outside.map((folder) => join(folder, "node")).find((path) => existsSync(path)) ?? null;
};

/**
 * The oldest Node that the commands promise to run on; on a machine other than Linux on x64, the
 * one that runs this.
 */
export const oldestNode = (): string => {
  const path = join(WORKSPACE, "scripts/oldest-node/node_modules/oldest-node/bin/node");
  return process.platform === "linux" && process.arch === "x64" ? path : process.execPath;
};
